#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/numerics.hpp"
#include "tests/kernels/host/fwd_problem.hpp"
#include "tests/kernels/host/judge.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fmha::test {

enum class Cache : std::uint8_t { contiguous, slots, pages, gappy_pages };

struct CacheSpec {
    Cache cache = Cache::pages;
    std::int64_t page_size = 128;
    std::int64_t splits = 1;
    bool share_first_page = false; ///< entries with the same first page (P-5)
    std::uint64_t order = 1;       ///< of pages or slots, and of what lies between the keys
    std::string text() const;
};

/// A problem of forward whose keys lie in a cache, for kernels of paged-KV and split-KV. What no key needs is NaN in the pool and
/// out of bounds in the table.
class CachedProblem {
  public:
    CachedProblem(const host_target::test::Shape& shape, const CacheSpec& spec);
    CachedProblem(const CachedProblem&) = delete;
    CachedProblem& operator=(const CachedProblem&) = delete;
    ~CachedProblem() = default;

    const PagedKvArgs& paged() const { return paged_; }
    const SplitKvArgs& split() const { return split_; }
    /// A kernel of `family` for this problem with the given tile.
    KernelConfig config(KernelFamily family, Tile tile) const;

    /// O and LSE against forward over the same keys one after another.
    host_target::test::Distance judge(const Numerics& numerics) const {
        return host_target::test::judge(fwd_, numerics);
    }
    /// The partial results of every split against S-2, in units of the limits of B.2 and B.4; infinite where something else
    /// was written. `worst` says where.
    double judge_partials(const Numerics& numerics, std::string& worst) const;
    std::vector<std::uint8_t> outputs() const;
    void poison_outputs();

  private:
    using Bytes = std::vector<std::byte>;
    TensorView pool(const TensorView& from, std::int64_t cols, bool by_column, Bytes& memory) const;
    void place_entries();
    void make_partials();

    host_target::test::FwdProblem fwd_;
    CacheSpec spec_;
    std::vector<std::int64_t> keys_, first_slot_;
    std::vector<std::vector<std::int32_t>> page_of_;
    std::int64_t pages_ = 0, page_rows_ = 0;
    std::vector<std::int32_t> table_, slots_, seqlen_k_, seqstart_k_;
    Bytes k_, v_;
    std::vector<float> o_acc_, lse_acc_;
    PagedKvArgs paged_;
    SplitKvArgs split_;
};

/// A problem that `kernel` can be launched with; `turn` chooses among several.
struct CachedSpec {
    host_target::test::Shape shape;
    CacheSpec cache;
};
CachedSpec spec_for(const KernelConfig& kernel, std::size_t turn);

} // namespace fmha::test
