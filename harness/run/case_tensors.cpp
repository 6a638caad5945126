#include "harness/run/case_tensors.hpp"

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/run/execution.hpp"

#include <fmt/format.h>

namespace fmha::harness {
namespace {

/// Tensors beyond this many bytes are about reaching all of them, and filling them takes seconds.
constexpr std::int64_t most_moved_bytes = std::int64_t{1} << 30;

/// Whether the case may lie in memory a second time, in another layout. One whose point is a stride may not.
bool may_move(const Family& family, const Case& c, const Case& moved, Fp8Flavour flavour,
              const CaseRunOptions& options) {
    const std::int64_t bytes = family.bytes(moved, flavour, options.reference_threads).tensors;
    return launches_of(c, options) > 1 && c.wide_tensor.empty() && bytes <= most_moved_bytes &&
           (options.memory_limit == 0 ||
            family.bytes(c, flavour, options.reference_threads).total() + bytes <= options.memory_limit);
}

std::unique_ptr<CaseData> allocate(const Family& family, const Case& c, Fp8Flavour flavour,
                                   const RowTile& tile) {
    return tile.rows > 0 ? family.allocate_few_rows(c, flavour, tile) : family.allocate(c, flavour);
}

} // namespace

std::string beyond_limit(const CaseBytes& bytes, std::int64_t limit) {
    if (limit == 0 || bytes.total() <= limit) return {};
    return fmt::format("it needs {} bytes ({} of tensors, {} of copies of its outputs, {} of the "
                       "reference), {} are allowed",
                       bytes.total(), bytes.tensors, bytes.copies, bytes.reference, limit);
}

bool exceeds_limit(CaseResult& result, const Family& family, const Case& c, Fp8Flavour flavour,
                   const CaseRunOptions& options, const RowTile& tile) {
    const CaseBytes bytes = tile.rows > 0 ? family.bytes_of_few_rows(c, flavour, options.reference_threads)
                                          : family.bytes(c, flavour, options.reference_threads);
    if (result.message = beyond_limit(bytes, options.memory_limit); !result.message.empty()) {
        result.not_run_reason = NotRunReason::no_memory;
        return true;
    }
    const double flops = family.flops(c);
    if (options.work_limit > 0.0 && flops > options.work_limit) {
        result.not_run_reason = NotRunReason::too_much_work;
        result.message = fmt::format("it needs {:.3g} GFLOP, this target takes on at most {:.3g}",
                                     flops * 1e-9, options.work_limit * 1e-9);
        return true;
    }
    return false;
}

void require_runnable(const Case& c, const std::string& arch) {
    if (c.expect == Expectation::no_kernel && !c.expect_rule.empty() && !parse_reason(c.expect_rule))
        throw InputError(fmt::format("{}: expect no_kernel:{}: not a reason; allowed: {}", c.id,
                                     c.expect_rule, allowed_names<Reason>()));
    try {
        to_problem(c, arch);
    } catch (const ProblemError&) {
        return;
    }
    try {
        family_of(c.family).bytes(c, fp8_flavour(arch), 1);
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", c.id, error.what()));
    }
}

void require_room(const Case& c, Fp8Flavour flavour, std::int64_t limit) {
    const int threads = system::threads_of_each(1); // the reference has all of them
    if (const auto mistake = beyond_limit(family_of(c.family).bytes(c, flavour, threads), limit);
        !mistake.empty())
        throw InputError(fmt::format("{}: {} (--memory-limit)", c.id, mistake));
}

CaseTensors::CaseTensors(const Family& family, const Case& c, Fp8Flavour flavour,
                         const CaseRunOptions& options, const RowTile& tile)
    : here_(allocate(family, c, flavour, tile)), moved_(in_another_layout(c)) {
    try {
        if (may_move(family, c, moved_, flavour, options))
            elsewhere_ = allocate(family, moved_, flavour, tile);
    } catch (const NoRoomForTensor&) {
        elsewhere_.reset(); // as if it were beyond the memory limit
    }
}

} // namespace fmha::harness
