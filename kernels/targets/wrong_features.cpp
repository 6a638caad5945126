#include "kernels/targets/wrong_features.hpp"

#include "dispatcher/types/element.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "kernels/targets/stored_types.hpp"

#include <fmt/format.h>

#include <bit>

namespace fmha::targets {
namespace {

/// Of a kernel of batch prefill (section 19).
std::optional<std::string> wrong_pages(const KernelConfig& config) {
    const Signature& s = config.signature;
    if (s.mode != Mode::group || !s.use_paged_kv || s.v_layout != VLayout::row)
        return "batch_prefill takes packed queries, pages and V by row (B-1)";
    if (s.page_size <= 0 || !std::has_single_bit(static_cast<std::uint32_t>(s.page_size)))
        return fmt::format("page_size is {}, batch_prefill takes powers of two (B-1)", s.page_size);
    const int vector = 128 / element_bits(stored_types(config).k);
    if (s.kv_layout == KvLayout::vectorized && s.page_size % vector != 0)
        return fmt::format("page_size is {}, the vectorized layout takes multiples of {} (B-3)", s.page_size,
                           vector);
    if (s.qscale == QScale::kv_blockscale && s.page_size % config.algorithm.tile.n0 != 0)
        return fmt::format("page_size is {}, kv_blockscale takes multiples of the {} keys of a tile (Q-3)",
                           s.page_size, config.algorithm.tile.n0);
    return std::nullopt;
}

} // namespace

std::optional<std::string> wrong_features(const KernelConfig& config) {
    const Signature& s = config.signature;
    const ApiTraits& api = api_traits_of(s.family);
    const bool cache = api.reads_cache;
    if ((s.use_paged_kv && !cache) || s.rope != Rope::none)
        return fmt::format("family {} has {}", to_string(s.family),
                           cache ? "no rotary embedding" : "neither paged keys nor rotary embedding");
    const bool prefill = api.lists_pages;
    const bool of_pages = s.qscale == QScale::kv_blockscale || s.qscale == QScale::per_token_head;
    if (of_pages && !prefill)
        return fmt::format("qscale {} belongs to batch_prefill, family {} takes none, pertensor{}",
                           to_string(s.qscale), to_string(s.family), cache ? "" : ", blockscale or mx");
    if (prefill && (s.qscale == QScale::blockscale || s.qscale == QScale::mx))
        return fmt::format("qscale {} belongs to fwd, family batch_prefill takes none, pertensor, "
                           "kv_blockscale or per_token_head",
                           to_string(s.qscale));
    if (cache && !prefill && s.qscale != QScale::no_scale && s.qscale != QScale::pertensor)
        return fmt::format("family {} takes qscale none or pertensor, found {}", to_string(s.family),
                           to_string(s.qscale));
    if (cache && (s.has_dropout || s.skip_min_seqlen_q))
        return fmt::format("family {} has neither dropout nor entries that are skipped", to_string(s.family));
    if (prefill)
        if (auto reason = wrong_pages(config)) return reason;
    if (traits_of(s.family).stores_splits && !s.has_lse)
        return "the main stage of split-KV stores an LSE, the configuration has none";
    return std::nullopt;
}

} // namespace fmha::targets
