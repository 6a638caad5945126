#pragma once

#include "harness/data/tensor_set.hpp"
#include "harness/families/family.hpp"
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
    std::int64_t disagreements_;
};

/// Writes the caches and Q as they are afterwards; NaN wherever nothing is written. Returns the number of rows.
std::size_t write_appended(const AppendKvArgs& args, const TensorSet& tensors,
                           const std::filesystem::path& folder);

} // namespace fmha::harness
