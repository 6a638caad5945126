#include "harness/cli/store_option.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/processor.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cli/run_identity.hpp"
#include "harness/cli/today.hpp"

#include <filesystem>

namespace fmha::cli {

void StoreOption::declare(OptionSet& options) {
    options.output("--store", file_,
                   "Append the run to this SQLite file, which `fmha history` and `fmha gate` read");
}

void StoreOption::check() const {
    if (file_.empty()) return;
    if (std::filesystem::exists(file_))
        static_cast<void>(store::Store(file_, store::Access::write));
    else
        system::check_writable(file_);
}

std::unique_ptr<store::Recording> StoreOption::begin(const store::RunRecord& run) const {
    if (file_.empty()) return nullptr;
    store::RunRecord identified = run;
    if (!identified.identity.contains("program_sha256"))
        identified.identity["program_sha256"] = program_sha256();
    return std::make_unique<store::Recording>(file_, identified);
}

store::RunRecord new_run(store::RunKind kind, const std::string& invocation) {
    store::RunRecord run;
    run.id = store::new_run_id();
    run.kind = kind;
    run.command = invocation;
    run.version = FMHA_VERSION;
    run.commit = built_commit();
    run.machine = system::processor_description();
    run.compiler = __VERSION__;
    run.started = now_utc();
    return run;
}

void finish(store::Recording* recording, double seconds, bool green) {
    if (recording == nullptr) return;
    recording->finish(seconds, green ? "green" : "red");
    if (!recording->failure().empty()) throw InputError(recording->failure());
}

} // namespace fmha::cli
