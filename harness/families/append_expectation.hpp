#pragma once

#include "harness/data/tensor_set.hpp"
#include "harness/families/family.hpp"
#include "harness/gates/append_gates.hpp"
#include "reference/append.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace fmha::harness {

/// Calls visit(view of the tensor, offset in it, channel, row) for every element that append-KV writes.
template <class Visit>
void each_appended(const AppendKvArgs& args, const reference::AppendedRows& rows, Visit&& visit) {
    for (const reference::AppendedRow& row : rows.rows) {
        const TensorView& view = row.target == reference::AppendTarget::k   ? args.k
                                 : row.target == reference::AppendTarget::v ? args.v
                                                                            : args.q;
        for (std::int64_t c = 0; c < row.cols; ++c)
            visit(view, view.offset(row.slot, row.h, row.row, c), c, row);
    }
}

/// Calls visit(offset in Q, row, channel) for every channel of Q that is not rotated and keeps its bits (V-4).
template <class Visit>
void each_kept_query(const AppendKvArgs& args, Visit&& visit) {
    if (!args.q.present()) return;
    for (std::int64_t b = 0; b < args.shape.batch; ++b)
        for (std::int64_t h = 0; h < args.shape.nhead_q; ++h)
            for (std::int64_t i = 0; i < args.shape.seqlen_q; ++i)
                for (std::int64_t c = first_kept_channel(args); c < args.shape.hdim_q; ++c)
                    visit(args.q.offset(b, h, i, c), reference::RowId{b, h, i}, c);
}

/// The results of the reference for append-KV, from the inputs as they are when this is made: Q is rotated in place.
class AppendExpectation final : public CaseExpectation {
  public:
    /// The memory of `args` must outlive this.
    explicit AppendExpectation(const AppendKvArgs& args);

    /// Infinite where the oracles differ in a bit.
    double oracle_disagreement() override;
    StageVerdict judge(KernelFamily stage, const Outputs& outputs, const Numerics& numerics,
                       InputOrigin inputs) override;

    const reference::AppendedRows& expected() const { return expected_; }

  private:
    AppendKvArgs args_;
    reference::AppendedRows expected_;
    Outputs queries_; ///< Q as it came, absent without one
    std::int64_t disagreements_;
};

/// Writes the caches and Q as they are afterwards; NaN wherever nothing is written to a cache. Returns the number of rows.
std::size_t write_appended(const AppendKvArgs& args, const TensorSet& tensors,
                           const std::filesystem::path& folder);

} // namespace fmha::harness
