// libFuzzer target over every JSON that the dispatcher reads: problems, upstream problems, sweep configurations.
// Only errors of the project may leave a reader; anything else, and any finding of the sanitizers, is a defect.
#include "dispatcher/plan/workspace.hpp"
#include "dispatcher/problem_json.hpp"
#include "dispatcher/selection/match.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/upstream/problem.hpp"
#include "kernels/catalog/sweep_config.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace {

/// What planning computes from a problem that was accepted.
void use(fmha::Problem problem) {
    static_cast<void>(problem.num_ops());
    static_cast<void>(problem.canonical_key());
    static_cast<void>(problem.to_string());
    problem.num_splits = fmha::choose_num_splits(problem, problem.compute_units, 64);
    fmha::KernelConfig kernel;
    kernel.signature = problem.signature;
    kernel.signature.hdim_q = kernel.signature.hdim_v = 256;
    kernel.algorithm.constraint = "blocks64_le_cus";
    const auto query = fmha::make_query(problem, problem.signature.family);
    static_cast<void>(fmha::describe(fmha::match(query, kernel), problem, kernel));
    static_cast<void>(
        fmha::splitkv_workspace(1, problem.nhead_q, problem.signature.hdim_v, problem.num_splits));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
    try {
        switch (data[0] % 3) {
        case 0:
            for (const fmha::Problem& problem : fmha::problems_from_text(text, "input")) use(problem);
            break;
        case 1: {
            const auto line = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
            if (!line.is_discarded()) static_cast<void>(fmha::upstream::problem_from_json(line, "input"));
            break;
        }
        default:
            static_cast<void>(
                fmha::catalog::parse_sweep_config(text, "input", fmha::catalog::SweepUse::sweep));
        }
    } catch (const fmha::Error&) {
        // Refused with a sentence: what bad input is for.
    }
    return 0;
}
