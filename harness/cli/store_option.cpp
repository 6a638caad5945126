#include "harness/cli/store_option.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/processor.hpp"
#include "dispatcher/system/sha256.hpp"
#include "dispatcher/types/error.hpp"

#include <ctime>
#include <fmt/chrono.h>

namespace fmha::cli {

void StoreOption::declare(OptionSet& options) {
    options.option("--store", file_,
                   "Append the run to this SQLite file, which `fmha history` and `fmha gate` read");
}

std::unique_ptr<store::Recording> StoreOption::begin(const store::RunRecord& run) const {
    return file_.empty() ? nullptr : std::make_unique<store::Recording>(file_, run);
}

store::RunRecord new_run(std::string_view kind, const std::string& invocation) {
    store::RunRecord run;
    run.id = store::new_run_id();
    run.kind = kind;
    run.command = invocation;
    run.version = FMHA_VERSION;
    run.commit = built_commit();
    run.machine = system::processor_description();
    run.compiler = __VERSION__;
    run.started = now_utc();
    run.identity = Json{{"program_sha256", system::sha256(system::read_file("/proc/self/exe"))}};
    return run;
}

void finish(store::Recording* recording, double seconds, bool green) {
    if (recording == nullptr) return;
    recording->finish(seconds, green ? "green" : "red");
    if (!recording->failure().empty()) throw InputError(recording->failure());
}

std::string now_utc() {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

} // namespace fmha::cli
