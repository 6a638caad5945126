#pragma once

#include "reference/backward.hpp"
#include "tests/reference/random_problem.hpp"

#include <deque>
#include <string>
#include <vector>

namespace fmha::reference::test {

/// A backward problem: a drawn forward problem, O and LSE as forward stores them, and dO. Everything outside the logical
/// ranges is NaN.
class RandomGradients {
  public:
    /// `stored_bytes`: the random bytes lie in memory, and are not those of the generator.
    explicit RandomGradients(std::uint64_t seed, Wish wish = {}, bool stored_bytes = false);

    const BwdArgs& args() const { return args_; }
    BwdArgs& args() { return args_; }
    /// Everything that can be asked for.
    GradientRequest everything() const;
    std::string text() const;

  private:
    TensorView tensor(ElementType type, std::int64_t heads, std::int64_t rows, std::int64_t cols);

    RandomProblem problem_;
    BwdArgs args_;
    std::deque<std::vector<std::byte>> bytes_;
};

/// Of a reference that computes in one thread, for kernels that round P so.
GradientOptions one_thread(double u_p = 0x1p-11, double f_p = 0x1p-25);

/// Writes `value`, rounded, to one element.
void put(const TensorView& view, std::int64_t offset, double value);

} // namespace fmha::reference::test
