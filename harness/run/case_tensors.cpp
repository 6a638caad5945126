#include "harness/run/case_tensors.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/run/case_memory.hpp"
#include "harness/run/fwd_execution.hpp"

#include <fmt/format.h>

namespace fmha::harness {
namespace {

/// Tensors beyond this many bytes are about reaching all of them, and filling them takes seconds.
constexpr std::int64_t most_moved_bytes = std::int64_t{1} << 30;

/// Whether the case may lie in memory a second time, in another layout. One whose point is a stride may not.
bool may_move(const FwdCase& c, const FwdCase& moved, Fp8Flavour flavour, const FwdRunOptions& options) {
    const std::int64_t bytes = memory_of(moved, flavour, options.reference_threads).tensors;
    return c.wide_tensor.empty() && bytes <= most_moved_bytes &&
           (options.memory_limit == 0 ||
            memory_of(c, flavour, options.reference_threads).total() + bytes <= options.memory_limit);
}

/// Floating-point operations of both products, with hidden keys.
double work_of(const FwdCase& c) {
    const auto of_entry = [](const std::vector<std::int64_t>& lengths, std::int64_t b) {
        return static_cast<double>(lengths.size() == 1 ? lengths[0] : lengths[static_cast<std::size_t>(b)]);
    };
    double pairs = 0.0;
    for (std::int64_t b = 0; b < c.batch; ++b) pairs += of_entry(c.seqlen_q, b) * of_entry(c.seqlen_k, b);
    return 2.0 * pairs * static_cast<double>(c.nhead_q * (c.hdim_q + c.hdim_v));
}

} // namespace

bool exceeds_limit(CaseResult& result, const FwdCase& c, Fp8Flavour flavour, const FwdRunOptions& options) {
    const CaseMemory memory = memory_of(c, flavour, options.reference_threads);
    if (options.memory_limit > 0 && memory.total() > options.memory_limit) {
        result.not_run_reason = NotRunReason::no_memory;
        result.message = fmt::format(
            "it needs {} bytes ({} of tensors, {} of copies of its outputs, {} of the "
            "reference), {} are allowed",
            memory.total(), memory.tensors, memory.copies, memory.reference, options.memory_limit);
        return true;
    }
    if (options.work_limit > 0.0 && work_of(c) > options.work_limit) {
        result.not_run_reason = NotRunReason::too_much_work;
        result.message = fmt::format("it needs {:.3g} GFLOP, this target takes on at most {:.3g}",
                                     work_of(c) * 1e-9, options.work_limit * 1e-9);
        return true;
    }
    return false;
}

void require_runnable(const FwdCase& c, const std::string& arch) {
    if (c.expect == Expectation::no_kernel && !c.expect_rule.empty() && !parse_reason(c.expect_rule))
        throw InputError(fmt::format("{}: expect no_kernel:{}: not a reason; allowed: {}", c.id,
                                     c.expect_rule, allowed_names<Reason>()));
    try {
        to_problem(c, arch);
    } catch (const ProblemError&) {
        return;
    }
    try {
        memory_of(c, fp8_flavour(arch), 1);
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", c.id, error.what()));
    }
}

CaseTensors::CaseTensors(const FwdCase& c, Fp8Flavour flavour, const FwdRunOptions& options)
    : here_(c, flavour), moved_(in_another_layout(c)) {
    try {
        if (may_move(c, moved_, flavour, options)) elsewhere_.emplace(moved_, flavour);
    } catch (const NoRoomForTensor&) {
        elsewhere_.reset(); // as if it were beyond the memory limit
    }
}

} // namespace fmha::harness
