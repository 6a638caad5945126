#pragma once

#include "dispatcher/types/enums.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

/// What rooms ask about a family instead of which one it is: a row a family, a column a question. A new family is a row in each
/// table and its own files; `tests/architecture` refuses comparisons with a family elsewhere.
namespace fmha {

/// An API family.
struct ApiTraits {
    ApiFamily api = ApiFamily::fwd;
    std::string_view short_name;            ///< of its folder in cases/
    std::span<const KernelFamily> stages{}; ///< in launch order, whether or not a plan needs all of them
    KernelFamily main = KernelFamily::fwd;  ///< the stage that the others follow
    bool attends = true;                    ///< computes scores
    bool gradients = false;                 ///< computes gradients, from O and LSE of forward
    bool reads_cache = false;               ///< K and V lie in a cache (P-1)
    bool stores_keys = false;               ///< puts new keys and values into a cache (V-1)
    bool splits_keys = false;               ///< partial results of splits are combined (S-1)
    bool always_paged = false;              ///< reads K and V from pages only
    bool lists_pages = false;               ///< problems state layout and look-up of pages (B-1)
    bool dropout = false;                   ///< knows dropout (D-8)
    bool min_seqlen_q = false;              ///< skips entries below min_seqlen_q (N-5)
    bool tensor_maps = false;               ///< has kernels that copy by tensor maps (L-1)

    /// Computes O.
    constexpr bool forward() const { return attends && !gradients; }
    /// Computes O from K and V that follow one another.
    constexpr bool contiguous() const { return forward() && !reads_cache; }
};

namespace api_stages {
inline constexpr std::array forward{KernelFamily::fwd};
inline constexpr std::array pagedkv{KernelFamily::fwd_pagedkv};
inline constexpr std::array splitkv{KernelFamily::fwd_splitkv, KernelFamily::fwd_splitkv_combine};
inline constexpr std::array appendkv{KernelFamily::fwd_appendkv};
inline constexpr std::array prefill{KernelFamily::batch_prefill};
inline constexpr std::array backward{KernelFamily::bwd_dot_do_o, KernelFamily::bwd_dq_dk_dv,
                                     KernelFamily::bwd_convert_dq};
} // namespace api_stages

inline constexpr std::array<ApiTraits, EnumTable<ApiFamily>::names.size()> api_table{{
    {.api = ApiFamily::fwd,
     .short_name = "fwd",
     .stages = api_stages::forward,
     .main = KernelFamily::fwd,
     .dropout = true,
     .min_seqlen_q = true,
     .tensor_maps = true},
    {.api = ApiFamily::fwd_pagedkv,
     .short_name = "pagedkv",
     .stages = api_stages::pagedkv,
     .main = KernelFamily::fwd_pagedkv,
     .reads_cache = true,
     .always_paged = true,
     .tensor_maps = true},
    {.api = ApiFamily::fwd_splitkv,
     .short_name = "splitkv",
     .stages = api_stages::splitkv,
     .main = KernelFamily::fwd_splitkv,
     .reads_cache = true,
     .splits_keys = true},
    {.api = ApiFamily::fwd_appendkv,
     .short_name = "appendkv",
     .stages = api_stages::appendkv,
     .main = KernelFamily::fwd_appendkv,
     .attends = false,
     .reads_cache = true,
     .stores_keys = true},
    {.api = ApiFamily::batch_prefill,
     .short_name = "batch_prefill",
     .stages = api_stages::prefill,
     .main = KernelFamily::batch_prefill,
     .reads_cache = true,
     .always_paged = true,
     .lists_pages = true},
    {.api = ApiFamily::bwd,
     .short_name = "bwd",
     .stages = api_stages::backward,
     .main = KernelFamily::bwd_dq_dk_dv,
     .gradients = true,
     .dropout = true},
}};

/// The matrix products of a block.
enum class MatrixProducts : std::uint8_t {
    none,
    two, ///< Q by K and P by V
    five ///< those of backward
};

/// A kernel family: a stage of an API.
struct KernelTraits {
    KernelFamily family = KernelFamily::fwd;
    ApiFamily api = ApiFamily::fwd;
    MatrixProducts products = MatrixProducts::none;
    bool key_axis = true;         ///< a tile has keys
    bool query_dim = true;        ///< depends on hdim_q
    bool value_dim = true;        ///< depends on hdim_v
    bool query_tiles = true;      ///< without pad_s a kernel takes whole tiles of rows only
    bool key_tiles = false;       ///< without pad_sk a kernel takes whole tiles of keys only
    bool stores_splits = false;   ///< fp32 results of each split, for the next stage (S-3)
    bool combines_splits = false; ///< makes O of them
    bool row_sums = false; ///< makes the row sums of O and dO, and of them the gradient of the sink logits
    bool completes_dq = false; ///< makes dQ of partial sums, where the main stage leaves some
};

inline constexpr std::array<KernelTraits, EnumTable<KernelFamily>::names.size()> kernel_table{{
    {.family = KernelFamily::fwd, .api = ApiFamily::fwd, .products = MatrixProducts::two, .key_tiles = true},
    {.family = KernelFamily::fwd_pagedkv,
     .api = ApiFamily::fwd_pagedkv,
     .products = MatrixProducts::two,
     .key_tiles = true},
    {.family = KernelFamily::fwd_splitkv,
     .api = ApiFamily::fwd_splitkv,
     .products = MatrixProducts::two,
     .key_tiles = true,
     .stores_splits = true},
    {.family = KernelFamily::fwd_splitkv_combine,
     .api = ApiFamily::fwd_splitkv,
     .key_axis = false,
     .query_dim = false,
     .combines_splits = true},
    {.family = KernelFamily::fwd_appendkv, .api = ApiFamily::fwd_appendkv},
    {.family = KernelFamily::batch_prefill,
     .api = ApiFamily::batch_prefill,
     .products = MatrixProducts::two,
     .query_tiles = false},
    {.family = KernelFamily::bwd_dot_do_o,
     .api = ApiFamily::bwd,
     .key_axis = false,
     .query_dim = false,
     .row_sums = true},
    {.family = KernelFamily::bwd_dq_dk_dv,
     .api = ApiFamily::bwd,
     .products = MatrixProducts::five,
     .query_tiles = false},
    {.family = KernelFamily::bwd_convert_dq,
     .api = ApiFamily::bwd,
     .key_axis = false,
     .value_dim = false,
     .completes_dq = true},
}};

static_assert([] {
    for (std::size_t i = 0; i < api_table.size(); ++i)
        if (static_cast<std::size_t>(api_table[i].api) != i) return false;
    for (std::size_t i = 0; i < kernel_table.size(); ++i)
        if (static_cast<std::size_t>(kernel_table[i].family) != i) return false;
    return true;
}());

/// For a number that is no family, those of forward.
constexpr const ApiTraits& traits_of(ApiFamily api) {
    const auto i = static_cast<std::size_t>(api);
    return api_table[i < api_table.size() ? i : 0];
}
constexpr const KernelTraits& traits_of(KernelFamily family) {
    const auto i = static_cast<std::size_t>(family);
    return kernel_table[i < kernel_table.size() ? i : 0];
}
/// Of the API that a stage belongs to.
constexpr const ApiTraits& api_traits_of(KernelFamily family) {
    return traits_of(traits_of(family).api);
}

} // namespace fmha
