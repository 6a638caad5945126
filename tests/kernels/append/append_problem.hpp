#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_config.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace fmha::test {

/// A problem of append-KV, for kernels of any rope and paging.
struct AppendSpec {
    std::int64_t batch = 2, heads_q = 4, heads_k = 2;
    std::int64_t queries = 3; ///< 0 = there is no Q
    std::int64_t added = 1;
    std::vector<std::int32_t> cached{5}; ///< of the entries, in turn
    std::int64_t hdim_q = 0, hdim_v = 0; ///< 0 = the kernel's
    std::int64_t rotary_dim = 0;         ///< 0 = all of hdim_q
    std::int64_t page_size = 128;        ///< of a kernel for pages
    bool slots = false;                  ///< the cache has more slots than entries, in another order
    bool has_mask = false;
    bool rows_outermost = false; ///< the heads of a row lie together
    std::int64_t gap = 0;        ///< elements between lines, of which no kernel may know
    std::uint64_t seed = 1;

    std::string text() const;
};

/// What a run of a kernel left of the rules of section 18.
struct AppendVerdict {
    std::int64_t wrong_copies = 0;  ///< elements that are not the bits of what is copied
    std::int64_t wrong_rotated = 0; ///< rotated channels more than one value from rd(exact)
    bool rest_untouched = true;     ///< no other byte of Q, K and V, or around them, has changed
    std::string worst;

    bool acceptable() const { return wrong_copies == 0 && wrong_rotated == 0 && rest_untouched; }
    std::string text() const;
};

/// Tensors for an append kernel and memory around them. The cache, and what lies between logical elements, is a pattern that
/// depends on the place. Elements that are copied hold any bits, NaN with payloads among them.
class AppendProblem {
  public:
    AppendProblem(const KernelConfig& kernel, const AppendSpec& spec);
    AppendProblem(const AppendProblem&) = delete;
    AppendProblem& operator=(const AppendProblem&) = delete;
    ~AppendProblem() = default;

    const AppendKvArgs& args() const { return args_; }
    AppendKvArgs& args() { return args_; }
    /// Of the tensors as they were before a kernel ran, and as they are.
    AppendVerdict judge() const;
    /// Bytes of Q, K and V with everything around them.
    std::vector<std::byte> outputs() const;
    /// Whether they are as they were.
    bool untouched() const { return outputs() == before_; }

  private:
    struct Memory {
        std::vector<std::byte> bytes;
        TensorView view;
    };
    Memory memory(ElementType type, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                  std::int64_t cols);
    void fill(Memory& memory, std::int64_t batch, std::int64_t heads, std::int64_t rows, std::int64_t cols,
              std::int64_t numbers);
    void place_keys(std::int64_t added_room);
    void make_tables(ElementType type);

    AppendSpec spec_;
    std::mt19937_64 engine_;
    std::vector<std::int32_t> cached_, block_table_, slots_;
    std::int64_t cache_slots_ = 0, slot_rows_ = 0;
    Memory q_, k_, v_, k_new_, v_new_, cos_, sin_;
    std::vector<std::byte> before_;
    AppendKvArgs args_;
};

} // namespace fmha::test
