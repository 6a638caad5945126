#pragma once

#include "dispatcher/types/enumerations.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

/// Answers about families, so that no room compares with one: a row a family, a column a question. The rows stand in
/// `family_table.hpp`; `tests/architecture` refuses comparisons with a family elsewhere.
namespace fmha {

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

#define FMHA_TRAITS(name, of_api, ...)                                                                       \
    KernelTraits{.family = KernelFamily::name, .api = ApiFamily::of_api __VA_OPT__(, ) __VA_ARGS__},
inline constexpr std::array kernel_table{FMHA_KERNEL_FAMILIES(FMHA_TRAITS)};
#undef FMHA_TRAITS

/// The stages of an API in launch order, whether or not a plan needs all of them.
template <ApiFamily api>
inline constexpr auto api_stages = [] {
    constexpr std::size_t count = [] {
        std::size_t stages = 0;
        for (const KernelTraits& kernel : kernel_table) stages += kernel.api == api ? 1 : 0;
        return stages;
    }();
    std::array<KernelFamily, count> stages{};
    std::size_t next = 0;
    for (const KernelTraits& kernel : kernel_table)
        if (kernel.api == api) stages[next++] = kernel.family;
    return stages;
}();

/// The stage of an API that the others follow: the first one that multiplies matrices, if there is one.
template <ApiFamily api>
inline constexpr KernelFamily main_of_api = [] {
    for (const KernelFamily stage : api_stages<api>)
        if (kernel_table[static_cast<std::size_t>(stage)].products != MatrixProducts::none) return stage;
    return api_stages<api>.front();
}();

/// An API family.
struct ApiTraits {
    ApiFamily api = ApiFamily::fwd;
    std::span<const KernelFamily> stages{}; ///< in launch order
    KernelFamily main = KernelFamily::fwd;  ///< the stage that the others follow
    std::string_view short_name;            ///< of its folder in cases/
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

#define FMHA_TRAITS(name, Args, ...)                                                                         \
    ApiTraits{.api = ApiFamily::name,                                                                        \
              .stages = api_stages<ApiFamily::name>,                                                         \
              .main = main_of_api<ApiFamily::name>,                                                          \
              __VA_ARGS__},
inline constexpr std::array api_table{FMHA_API_FAMILIES(FMHA_TRAITS)};
#undef FMHA_TRAITS

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
