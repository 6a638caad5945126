#pragma once

#include "dispatcher/types/args.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace fmha::reference::test {

/// What a drawn problem must have; the rest is left to chance.
struct Wish {
    bool long_sequences = false; ///< beyond one block of keys and one chunk of rows
    bool elementwise = false, alibi = false, dropout = false, sink_logits = false, mask = false;
    bool causal = false;
    bool differentiable = false; ///< only what backward has (20.1)
};

/// A forward problem with every feature drawn from a seed, and its tensors. Everything outside the logical
/// ranges holds set bits, which are NaN in every format that has one there.
class RandomProblem {
  public:
    explicit RandomProblem(std::uint64_t seed, Wish wish = {});
    RandomProblem(const RandomProblem&) = delete;
    RandomProblem& operator=(const RandomProblem&) = delete;
    ~RandomProblem() = default;

    const FwdArgs& args() const { return args_; }
    FwdArgs& args() { return args_; }
    const ElementTypes& types() const { return types_; }
    std::string text() const;

  private:
    std::int64_t between(std::int64_t low, std::int64_t high);
    bool chance(double probability);

    void draw_extents();
    void draw_lengths();
    void draw_tensors();
    void draw_mask();
    void draw_bias();
    void draw_dropout_and_sinks();
    void draw_scales();

    /// A view with random order of its axes and padded strides; `fill(b, h, row, col)` gives the logical
    /// values, rows counted from the start of their entry in packed tensors.
    struct Extents {
        std::int64_t batch, heads, rows, cols;
    };
    TensorView tensor(ElementType type, const Extents& extents, bool column_major,
                      const std::function<bool(std::int64_t, std::int64_t)>& is_logical,
                      const std::function<double()>& value);
    const std::int32_t* ints(std::vector<std::int32_t> values);
    const float* floats(std::vector<float> values);

    std::mt19937_64 engine_;
    Wish wish_;
    DataType tag_ = DataType::fp16;
    ElementTypes types_;
    FwdArgs args_;
    std::vector<std::int64_t> physical_q_, physical_k_, logical_q_, logical_k_;
    std::deque<std::vector<std::byte>> bytes_;
    std::deque<std::vector<std::int32_t>> ints_;
    std::deque<std::vector<float>> floats_;
};

} // namespace fmha::reference::test
