#pragma once

#include "dispatcher/types/args.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace fmha::reference::test {

/// What a drawn problem of append-KV must have; the rest is left to chance.
struct AppendWish {
    bool rope = false, interleaved = false, half_rotated = false,
         tail = false; ///< tail: channels beyond rotary_dim
    bool paged = false, slots = false, queries = false, keys = false, mask = false, no_mask = false;
};

/// A problem of append-KV in strided memory, drawn from a seed. Everything that no logical row owns is NaN or a page that does
/// not exist. Rotated channels hold numbers of all sizes, the others any bits.
class RandomAppend {
  public:
    explicit RandomAppend(std::uint64_t seed, AppendWish wish = {});
    RandomAppend(const RandomAppend&) = delete;
    RandomAppend& operator=(const RandomAppend&) = delete;
    ~RandomAppend() = default;

    const AppendKvArgs& args() const { return args_; }
    AppendKvArgs& args() { return args_; }
    std::vector<std::int32_t>& cached() { return cached_; }
    std::vector<std::int32_t>& block_table() { return block_table_; }
    std::vector<std::int32_t>& slots() { return cache_batch_idx_; }
    std::string text() const;

  private:
    std::int64_t between(std::int64_t low, std::int64_t high);
    bool chance(double probability);
    void draw_extents();
    void draw_place();
    TensorView view(ElementType type, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                    std::int64_t cols);
    void fill(const TensorView& view, std::int64_t batch, std::int64_t heads, std::int64_t rows,
              std::int64_t cols, std::int64_t numbers);
    std::uint32_t code(ElementType type, bool number);

    std::mt19937_64 engine_;
    AppendWish wish_;
    AppendKvArgs args_;
    std::int64_t slots_ = 0, slot_rows_ = 0; ///< of the cache's view
    std::vector<std::int32_t> cached_, block_table_, cache_batch_idx_;
    std::vector<std::vector<std::byte>> memory_;
};

} // namespace fmha::reference::test
