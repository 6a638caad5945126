#pragma once

#include "dispatcher/types/args.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace fmha::reference::test {

/// How the logarithms of the splits of a row lie.
enum class Spread : std::uint8_t {
    normal, ///< around 0
    far,    ///< around one large number of either sign
    wide,   ///< hundreds apart
    equal,  ///< all the same
};

/// What drawn partial results must have; the rest is left to chance.
struct PartialsWish {
    bool sinks = false, group = false, several_heads = false, empty_splits = false, far = false, wide = false;
};

/// Partial results of split-KV in strided memory, drawn from a seed. What no row owns is NaN, and so is o_acc of splits
/// without keys.
class RandomPartials {
  public:
    explicit RandomPartials(std::uint64_t seed, PartialsWish wish = {});
    RandomPartials(const RandomPartials&) = delete;
    RandomPartials& operator=(const RandomPartials&) = delete;
    ~RandomPartials() = default;

    const SplitKvArgs& args() const { return args_; }
    SplitKvArgs& args() { return args_; }
    std::string text() const;

  private:
    std::int64_t between(std::int64_t low, std::int64_t high);
    bool chance(double probability);
    double normal();
    void draw_extents();
    TensorView view(std::vector<float>& memory, std::int64_t cols);
    void fill_row(std::int64_t b, std::int64_t h, std::int64_t row);

    std::mt19937_64 engine_;
    PartialsWish wish_;
    SplitKvArgs args_;
    Spread spread_ = Spread::normal;
    double empty_ = 0.0;
    std::int64_t rows_ = 0; ///< of the tensors
    std::vector<std::int32_t> starts_;
    std::vector<float> o_acc_, lse_acc_, sinks_;
};

} // namespace fmha::reference::test
