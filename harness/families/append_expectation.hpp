#pragma once

#include "harness/data/tensor_set.hpp"
#include "harness/families/family.hpp"
#include "reference/append.hpp"

#include <cstddef>
#include <filesystem>

namespace fmha::harness {

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
