#include "harness/cli/exchange_case.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/load.hpp"
#include "kernels/arch/arch.hpp"

#include <fmt/format.h>

namespace fmha::cli {

harness::FwdCase load_exchange_case(const std::string& text, const std::string& root,
                                    const std::string& arch) {
    static_cast<void>(arch::ArchSet::built_in().at(arch));
    harness::LoadOptions load{.root = root, .tier = harness::Tier::nightly};
    auto cases = harness::load_cases({text}, load);
    if (cases.size() != 1)
        throw InputError(fmt::format("--case {}: is {} cases; name one of them, for example '{}'", text,
                                     cases.size(), cases.empty() ? "" : cases.front().id));
    harness::FwdCase& c = cases.front();
    // Files have no gaps between rows or entries.
    c.wide_tensor.clear();
    static_cast<void>(harness::to_problem(c, arch));
    return c;
}

} // namespace fmha::cli
