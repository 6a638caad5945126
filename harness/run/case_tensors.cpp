#include "harness/run/case_tensors.hpp"

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/value_order.hpp"
#include "harness/data/geometry.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fmha::harness {
namespace {

/// Tensors beyond this many bytes are about reaching all of them, and filling them takes seconds.
constexpr std::int64_t most_moved_bytes = std::int64_t{1} << 30;

/// The entries of more take seconds and gigabytes. A worker lays them out, which limits and interrupts end.
constexpr std::int64_t most_entries_here = std::int64_t{1} << 20;

/// What a reference of so many threads needs. Limits decide by one thread, so that what a run asks does not depend on how many share
/// the machine.
CaseBytes bytes_of(const Family& family, const Case& c, Fp8Flavour flavour, const RowTile& tile,
                   int threads) {
    return tile.rows > 0 ? family.bytes_of_few_rows(c, flavour, threads) : family.bytes(c, flavour, threads);
}

/// Of the threads that are offered to the reference, as many as `limit` has memory for; `needed(n)` bytes of n threads.
template <class Needed>
int threads_with_room(int threads, std::int64_t limit, const Needed& needed) {
    while (limit != 0 && threads > 1 && needed(threads) > limit) threads /= 2;
    return threads;
}

/// Whether the case may lie in memory a second time, in another layout. One whose point is a stride may not.
bool may_move(const Family& family, const Case& c, const Case& moved, Fp8Flavour flavour,
              const CaseRunOptions& options) {
    const std::int64_t bytes = family.bytes(moved, flavour, 1).tensors;
    return launches_of(c, options) > 1 && c.wide_tensor.empty() && bytes <= most_moved_bytes &&
           (options.memory_limit == 0 || family.bytes(c, flavour, 1).total() + bytes <= options.memory_limit);
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
    // To count the bytes of entries takes as much as these.
    const std::int64_t of_entries = c.batch * static_cast<std::int64_t>(sizeof(EntryGeometry));
    if (options.memory_limit != 0 && of_entries > options.memory_limit) {
        result.not_run_reason = NotRunReason::no_memory;
        result.message = fmt::format("its {} entries alone need {} bytes, {} are allowed", c.batch,
                                     of_entries, options.memory_limit);
        return true;
    }
    const CaseBytes bytes = bytes_of(family, c, flavour, tile, 1);
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
    if (c.batch > most_entries_here) return;
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

std::int64_t bytes_of_use(FileUse use, const CaseBytes& bytes) {
    const FileBytes& files = bytes.files;
    if (use == FileUse::write_reference)
        return bytes.tensors + std::max(files.largest, files.reference + bytes.values);
    // The outputs are copied once, and those of an earlier folder are kept.
    return bytes.tensors + std::max(files.largest + files.updated,
                                    2 * bytes.copies / CaseBytes::copies_of_run + bytes.reference);
}

int reference_threads_within(std::int64_t limit, FileUse use, const Case& c, Fp8Flavour flavour) {
    const Family& family = family_of(c.family);
    const CaseBytes least = family.bytes(c, flavour, 1);
    if (const std::int64_t needed = bytes_of_use(use, least); limit != 0 && needed > limit)
        throw InputError(
            fmt::format("{}: it needs {} bytes ({} of tensors, {} of files and the reference), {} "
                        "are allowed (--memory-limit)",
                        c.id, needed, least.tensors, needed - least.tensors, limit));
    return threads_with_room(system::threads_of_each(1), limit, [&](int threads) {
        return bytes_of_use(use, family.bytes(c, flavour, threads));
    });
}

CaseTensors::CaseTensors(const Family& family, const Case& c, Fp8Flavour flavour,
                         const CaseRunOptions& options, const RowTile& tile)
    : family_(family), flavour_(flavour), tile_(tile), here_(allocate(family, c, flavour, tile)),
      in_order_(in_another_layout(c)),
      // Few rows are those of certain entries and heads.
      moved_(tile.rows > 0 ? in_order_ : in_reverse_order(in_order_)) {
    try {
        if (may_move(family, c, moved_, flavour, options))
            elsewhere_ = allocate(family, moved_, flavour, tile);
    } catch (const NoRoomForTensor&) {
        elsewhere_.reset(); // as if it were beyond the memory limit
    }
    const std::int64_t moved = elsewhere_ ? family.bytes(moved_, flavour, 1).tensors : 0;
    has_room_for_three_ =
        options.memory_limit == 0 || family.bytes(c, flavour, 1).total() + 2 * moved <= options.memory_limit;
    reference_threads_ = threads_with_room(options.reference_threads, options.memory_limit, [&](int threads) {
        return bytes_of(family, c, flavour, tile, threads).total() + moved;
    });
}

Elsewhere CaseTensors::elsewhere() {
    return {elsewhere_.get(), &moved_, [this] { return in_order(); }};
}

std::unique_ptr<CaseData> CaseTensors::in_order() const {
    if (!has_room_for_three_) return nullptr;
    try {
        return allocate(family_, in_order_, flavour_, tile_);
    } catch (const NoRoomForTensor&) {
        return nullptr;
    }
}

} // namespace fmha::harness
