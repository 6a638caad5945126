#include "harness/cli/case_options.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/load.hpp"
#include "harness/cli/cases_root.hpp"
#include "harness/run/planned_kernels.hpp"
#include "kernels/arch/arch.hpp"

#include <fmt/format.h>

namespace fmha::cli {

void CaseOptions::declare(OptionSet& options) {
    options.required_option("--case", case_, "Printed name of a case, or a file with a single case");
    declare_cases_root(options, root_);
    options.option("--arch", arch_, "Architecture, which decides the 8-bit flavour");
    arch_files_.declare(options);
    memory_.declare(options, "refused", "files");
}

harness::Case CaseOptions::load() const {
    memory_.check();
    const arch::ArchSet archs = arch_files_.load();
    static_cast<void>(archs.at(arch_));
    const harness::LoadOptions options{.root = cases_root(root_),
                                       .tier = harness::Tier::nightly,
                                       .planned_tile = harness::house_tiles(arch_, archs)};
    auto cases = harness::load_cases({case_}, options);
    if (cases.size() != 1)
        throw InputError(fmt::format("--case {}: is {} cases; name one of them, for example '{}'", case_,
                                     cases.size(), cases.empty() ? "" : cases.front().id));
    harness::Case& c = cases.front();
    harness::require_runnable(c, arch_);
    // Files have no gaps between rows or entries.
    c.wide_tensor.clear();
    static_cast<void>(harness::to_problem(c, arch_));
    return c;
}

int CaseOptions::reference_threads(const harness::Case& c, harness::FileUse use) const {
    return harness::reference_threads_within(memory_.bytes(), use, c, fp8_flavour(arch_));
}

} // namespace fmha::cli
