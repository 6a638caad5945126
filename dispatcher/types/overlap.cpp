#include "dispatcher/types/overlap.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <optional>
#include <span>

namespace fmha {
namespace {

/// Multiples of a number of bits, from `low` to `high` of them.
struct Steps {
    std::int64_t bits = 0, low = 0, high = 0;
};

/// Runs of bits, the same everywhere: one begins at `begin` plus any sum of the steps.
struct Runs {
    std::int64_t begin = 0, length = 0, reach = 0; ///< `reach`: from the first bit to behind the last
    std::array<Steps, 4> steps;                    ///< ascending
    std::size_t count = 0;
};

/// Sums of a dozen numbers up to here fit into 64 bits.
constexpr std::int64_t most = std::int64_t{1} << 59;

bool multiply(std::int64_t a, std::int64_t b, std::int64_t& product) {
    return !__builtin_mul_overflow(a, b, &product) && product > -most && product < most;
}

bool has_elements(const TensorView& view, const TensorExtents& extents) {
    return view.present() && std::ranges::all_of(extents, [](std::int64_t extent) { return extent > 0; });
}

/// Of a tensor with elements; nothing when its addresses do not fit.
std::optional<Runs> runs_of(const TensorView& view, const TensorExtents& extents) {
    Runs runs;
    runs.length = element_bits(view.type);
    const auto address = reinterpret_cast<std::uintptr_t>(view.data);
    if (address > static_cast<std::uintptr_t>(most) ||
        !multiply(static_cast<std::int64_t>(address), 8, runs.begin))
        return std::nullopt;
    const std::array strides{view.batch_stride, view.head_stride, view.row_stride, view.col_stride};
    runs.reach = runs.length;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
        if (extents[axis] == 1 || strides[axis] == 0) continue;
        std::int64_t step = 0, way = 0;
        if (!multiply(strides[axis], runs.length, step) || !multiply(step, extents[axis] - 1, way))
            return std::nullopt;
        if (way < 0) runs.begin += way;
        runs.steps[runs.count++] = {std::abs(step), 0, extents[axis] - 1};
        runs.reach += std::abs(way);
    }
    const auto used = std::span(runs.steps).first(runs.count);
    std::ranges::sort(used, {}, &Steps::bits);
    // What follows without a gap is one longer run.
    std::size_t joined = 0;
    for (; joined < used.size() && used[joined].bits <= runs.length; ++joined)
        runs.length += used[joined].bits * used[joined].high;
    std::ranges::copy(used.subspan(joined), used.begin());
    runs.count -= joined;
    return runs;
}

/// Looks for a sum of steps between two numbers.
class Search {
  public:
    /// Steps of one tensor forwards and of the other backwards; those of the same size count together.
    Search(const Runs& forwards, const Runs& backwards) {
        for (const Steps& steps : std::span(forwards.steps).first(forwards.count)) add(steps);
        for (const Steps& steps : std::span(backwards.steps).first(backwards.count))
            add({steps.bits, -steps.high, 0});
        std::ranges::sort(std::span(steps_).first(count_), std::ranges::greater(), &Steps::bits);
        for (std::size_t n = count_; n-- > 0;) {
            lowest_[n] = lowest_[n + 1] + steps_[n].bits * steps_[n].low;
            highest_[n] = highest_[n + 1] + steps_[n].bits * steps_[n].high;
        }
    }

    /// Whether the steps from the n-th on have a sum in [low, high].
    bool finds(std::int64_t low, std::int64_t high, std::size_t n = 0) {
        if (n == count_) return low <= 0 && high >= 0;
        const Steps& steps = steps_[n];
        // The later steps have to lead from here into the interval.
        const std::int64_t first = std::max(steps.low, divide_up(low - highest_[n + 1], steps.bits));
        const std::int64_t last = std::min(steps.high, -divide_up(lowest_[n + 1] - high, steps.bits));
        for (std::int64_t k = first; k <= last && budget_ > 0; ++k, --budget_)
            if (finds(low - k * steps.bits, high - k * steps.bits, n + 1)) return true;
        return false;
    }

  private:
    static std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

    void add(const Steps& more) {
        for (Steps& steps : std::span(steps_).first(count_))
            if (steps.bits == more.bits) {
                steps.low += more.low;
                steps.high += more.high;
                return;
            }
        steps_[count_++] = more;
    }

    std::array<Steps, 8> steps_; ///< descending
    std::size_t count_ = 0;
    std::array<std::int64_t, 9> lowest_{}, highest_{}; ///< sums of the steps from here on
    int budget_ = 4096;
};

} // namespace

bool addressable(const TensorView& view, const TensorExtents& extents) {
    return !has_elements(view, extents) || runs_of(view, extents).has_value();
}

bool overlap(const TensorView& one, const TensorExtents& of_one, const TensorView& other,
             const TensorExtents& of_other) {
    if (!has_elements(one, of_one) || !has_elements(other, of_other)) return false;
    const auto a = runs_of(one, of_one), b = runs_of(other, of_other);
    if (!a || !b) return false;
    const std::int64_t way = b->begin - a->begin;
    if (way >= a->reach || -way >= b->reach) return false;
    return Search(*a, *b).finds(way - a->length + 1, way + b->length - 1);
}

} // namespace fmha
