#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_config.hpp"

#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <string>
#include <vector>

namespace fmha::host_target::test {

/// What a test varies; everything else of a forward launch follows from it.
struct Shape {
    DataType data_type = DataType::fp16;
    std::string arch = "gfx950";
    std::vector<std::int64_t> seqlen_q{70},
        seqlen_k{83}; ///< one value per entry: group mode when they differ
    bool group = false;
    std::int64_t batch = 2, nhead_q = 4, nhead_k = 2, hdim_q = 40, hdim_v = 24;
    VLayout v_layout = VLayout::row;
    MaskArgs mask;
    BiasType bias = BiasType::no_bias;
    float soft_cap = 0.0F;
    float p_drop = 0.0F;
    bool sink_logit = false;
    QScale qscale = QScale::no_scale;
    std::int64_t min_seqlen_q = 0;
    bool positive_values = false; ///< V ≥ 0, which makes one-sided roundings add up
    std::int64_t padding = 8;     ///< elements of NaN behind every row of an input
    std::int64_t extra = 0;       ///< rows of NaN behind every entry (seqlen arrays say where the entry ends)
};

/// A forward launch with its memory: inputs in storage types, NaN around them, outputs pre-filled with a
/// pattern.
class FwdProblem {
  public:
    explicit FwdProblem(const Shape& shape, std::uint64_t seed = 1);
    FwdProblem(const FwdProblem&) = delete;
    FwdProblem& operator=(const FwdProblem&) = delete;
    ~FwdProblem() = default;

    const Shape& shape() const { return shape_; }
    const FwdArgs& args() const { return args_; }
    FwdArgs& args() { return args_; }

    /// A configuration that runs this problem with the given tile (m0, n0, k0, n1, k1, k0max).
    KernelConfig config(Tile tile) const;

    /// Decoded O and LSE of a logical row.
    double o(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) const;
    double lse(std::int64_t b, std::int64_t h, std::int64_t i) const;
    std::uint8_t random_byte(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;

    /// All bytes of the outputs, for bitwise comparisons.
    std::vector<std::uint8_t> output_bytes() const;
    void poison_outputs();
    /// True when every byte of O, LSE and the random bytes outside the logical elements still holds the
    /// pattern (L-5).
    bool only_logical_elements_written() const;

  private:
    TensorView make(ElementType type, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                    std::int64_t cols, bool column_major, std::vector<std::uint8_t>** storage);
    std::int64_t start(const std::vector<std::int32_t>& starts, std::int64_t b) const;

    Shape shape_;
    FwdArgs args_;
    ElementTypes types_;
    std::deque<std::vector<std::uint8_t>> inputs_;
    std::vector<std::uint8_t> o_, lse_, randval_;
    std::vector<std::int32_t> seqstart_q_, seqstart_k_, seqlen_q_, seqlen_k_, blocks_q_, blocks_k_;
    std::vector<float> slopes_, sinks_;
};

} // namespace fmha::host_target::test
