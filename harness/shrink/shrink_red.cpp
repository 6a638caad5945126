#include "harness/shrink/shrink_red.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cases/plain_case.hpp"
#include "harness/results/kernel_names.hpp"
#include "harness/shrink/isolated_judge.hpp"

#include <algorithm>

namespace fmha::harness {
namespace {

std::string smaller_text(const CaseResult& result, const Case& c, const KernelSource& source,
                         const RunOptions& run, const ShrinkRed& red) {
    CaseRunOptions options = run.of_case;
    // One kernel is named; the kernels of several stages are not one name.
    if (options.all_kernels && kernel_names(result.kernel).size() == 1) options.kernel_filter = result.kernel;
    const CaseJudge judge = isolated_judge(source, options, run.timeout, red.options.stop);
    try {
        const auto shrunk = shrink(c, plain_case(c.family, red.root), judge, red.options, RedMark(result));
        if (!shrunk && red.options.stop && red.options.stop()) return "no smaller case: interrupted\n";
        if (!shrunk) return "no smaller case: it was not red by the same gate when it ran again\n";
        return to_text(*shrunk, shrunk->result.reproduce);
    } catch (const InputError& error) {
        return std::string("no smaller case: ") + error.what() + "\n";
    }
}

} // namespace

void shrink_red(std::vector<CaseResult>& results, std::span<const Case> cases, const KernelSource& source,
                const RunOptions& run, const ShrinkRed& red) {
    std::int64_t done = 0;
    for (CaseResult& result : results) {
        if (done == red.most || (red.options.stop && red.options.stop())) return;
        if (is_green(result.outcome) || is_pass(result.outcome)) continue;
        const auto c = std::ranges::find(cases, result.name, &Case::id);
        if (c == cases.end()) continue;
        result.smaller = smaller_text(result, *c, source, run, red);
        ++done;
    }
}

} // namespace fmha::harness
