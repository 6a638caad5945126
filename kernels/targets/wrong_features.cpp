#include "kernels/targets/wrong_features.hpp"

#include <fmt/format.h>

namespace fmha::targets {

std::optional<std::string> wrong_features(const KernelConfig& config) {
    const Signature& s = config.signature;
    const bool cache = s.family != KernelFamily::fwd;
    if ((s.use_paged_kv && !cache) || s.rope != Rope::none)
        return fmt::format("family {} has {}", to_string(s.family),
                           cache ? "no rotary embedding" : "neither paged keys nor rotary embedding");
    if (s.qscale == QScale::kv_blockscale || s.qscale == QScale::per_token_head)
        return fmt::format(
            "qscale {} belongs to batch_prefill, family fwd takes none, pertensor, blockscale or mx",
            to_string(s.qscale));
    if (cache && s.qscale != QScale::no_scale && s.qscale != QScale::pertensor)
        return fmt::format("family {} takes qscale none or pertensor, found {}", to_string(s.family),
                           to_string(s.qscale));
    if (cache && (s.has_dropout || s.skip_min_seqlen_q))
        return fmt::format("family {} has neither dropout nor entries that are skipped", to_string(s.family));
    if (s.family == KernelFamily::fwd_splitkv && !s.has_lse)
        return "the main stage of split-KV stores an LSE, the configuration has none";
    return std::nullopt;
}

} // namespace fmha::targets
