#pragma once

#include "kernels/targets/hip/emulated/emulation_error.hpp"

#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

namespace fmha::hip_target {

/// `count` registers of every thread of a block. Unwritten registers are NaN, or all ones.
template <class T>
class EmulatedRegisters {
  public:
    EmulatedRegisters() = default;
    EmulatedRegisters(int threads, int count)
        : threads_(threads), count_(count),
          values_(static_cast<std::size_t>(threads) * static_cast<std::size_t>(count), unwritten()) {}

    int threads() const { return threads_; }
    int count() const { return count_; }

    T& at(int thread, int r) { return values_[index(thread, r)]; }
    const T& at(int thread, int r) const { return values_[index(thread, r)]; }

  private:
    static T unwritten() {
        if constexpr (std::is_floating_point_v<T>)
            return std::numeric_limits<T>::quiet_NaN();
        else
            return static_cast<T>(-1);
    }
    std::size_t index(int thread, int r) const {
        if (thread < 0 || thread >= threads_ || r < 0 || r >= count_) fail(thread, r);
        return static_cast<std::size_t>(thread) * static_cast<std::size_t>(count_) +
               static_cast<std::size_t>(r);
    }
    [[noreturn]] void fail(int thread, int r) const {
        throw EmulationError(Hazard::out_of_range, "register " + std::to_string(r) + " of thread " +
                                                       std::to_string(thread) + " was used, there are " +
                                                       std::to_string(count_) + " in each of " +
                                                       std::to_string(threads_) + " threads");
    }

    int threads_ = 0, count_ = 0;
    std::vector<T> values_;
};

} // namespace fmha::hip_target
