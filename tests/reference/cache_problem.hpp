#pragma once

#include "reference/attention.hpp"
#include "tests/reference/random_problem.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

namespace fmha::reference::test {

/// How a cache finds the keys of an entry.
enum class CacheKind : std::uint8_t { slots, table, gappy_table, page_list };

struct CacheWish {
    CacheKind kind = CacheKind::table;
    bool vectorized = false;
    Wish problem;
};

/// A random problem of forward whose keys and values lie in a cache: in another order, with holes, and among elements that are
/// NaN. Entries of the table that no key needs are −1.
class CacheProblem {
  public:
    CacheProblem(std::uint64_t seed, const CacheWish& wish);
    CacheProblem(const CacheProblem&) = delete;
    CacheProblem& operator=(const CacheProblem&) = delete;
    ~CacheProblem() = default;

    /// False where forward has a mode that no family with a cache has.
    bool possible() const { return possible_; }
    const AttentionArgs& args() const { return args_; }
    AttentionArgs& args() { return args_; }
    /// The same keys one after another.
    const FwdArgs& contiguous() const { return base_.args(); }
    std::string text() const;

  private:
    std::int64_t between(std::int64_t low, std::int64_t high);
    void draw_places();
    TensorView pool(const TensorView& from, std::int64_t cols, bool keys);

    std::mt19937_64 engine_;
    CacheWish wish_;
    RandomProblem base_;
    AttentionArgs args_;
    bool possible_ = false;
    std::int64_t pages_ = 0, page_rows_ = 0;
    std::vector<std::int64_t> keys_, first_slot_;    ///< of each entry
    std::vector<std::vector<std::int32_t>> page_of_; ///< physical page of each page of an entry
    std::deque<std::vector<std::byte>> bytes_;
    std::vector<std::int32_t> seqlen_k_, seqstart_k_, table_, indptr_, indices_, last_, slots_;
};

} // namespace fmha::reference::test
