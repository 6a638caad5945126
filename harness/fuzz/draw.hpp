#pragma once

#include "harness/data/random.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fmha::harness {

/// Consecutive draws of one generator.
class Draw {
  public:
    /// The default stream is other than those of data, whose seed is the same.
    explicit Draw(std::uint64_t seed, std::uint64_t stream = 131) : random_(seed, stream) {}
    /// Both ends included.
    std::int64_t between(std::int64_t lo, std::int64_t hi) { return random_.integer(next_++, lo, hi); }
    bool one_in(std::int64_t n) { return between(1, n) == 1; }
    template <class T, std::size_t N>
    T any(const T (&choices)[N]) {
        return choices[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(N) - 1))];
    }

    /// Draws nothing where there is one choice.
    template <class T>
    T any(const std::vector<T>& choices) {
        if (choices.size() == 1) return choices.front();
        return choices[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(choices.size()) - 1))];
    }

  private:
    Random random_;
    std::uint64_t next_ = 0;
};

} // namespace fmha::harness
