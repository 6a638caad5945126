#include "dispatcher/types/problem_use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fmha {
namespace {

using OfFamily = bool (*)(const ApiTraits&);

constexpr OfFamily every_family = [](const ApiTraits&) { return true; };
constexpr OfFamily attending = [](const ApiTraits& api) { return api.attends; };
constexpr OfFamily forwards = [](const ApiTraits& api) { return api.forward(); };
constexpr OfFamily with_cache = [](const ApiTraits& api) { return api.reads_cache; };
constexpr OfFamily appending = [](const ApiTraits& api) { return api.stores_keys; };
constexpr OfFamily splitting = [](const ApiTraits& api) { return api.splits_keys; };
constexpr OfFamily listing_pages = [](const ApiTraits& api) { return api.lists_pages; };
constexpr OfFamily mapping = [](const ApiTraits& api) { return api.tensor_maps; };

using OfProblem = bool (*)(const Problem&);

constexpr OfProblem any = nullptr;
constexpr OfProblem with_mask = [](const Problem& p) { return p.mask_type != MaskType::no_mask; };
constexpr OfProblem with_rope = [](const Problem& p) { return p.signature.rope != Rope::none; };
constexpr OfProblem with_pages = [](const Problem& p) { return normalised(p).signature.use_paged_kv; };
constexpr OfProblem with_its_class = [](const Problem& p) {
    return p.signature.mask == mask_class(p.mask_type, p.window_left);
};

constexpr std::array uses{
    FieldUse{"signature.has_logits_soft_cap", attending, any, ""},
    FieldUse{"signature.mask", every_family, with_its_class, ", whose mask class follows from mask_type,"},
    FieldUse{"signature.bias", attending, any, ""},
    FieldUse{"signature.has_lse", forwards, any, ""},
    FieldUse{"signature.qscale", attending, any, ""},
    FieldUse{"signature.do_fp8_static_quant", attending, any, ""},
    FieldUse{"signature.skip_min_seqlen_q", forwards, any, ""},
    FieldUse{"signature.has_sink", attending, any, ""},
    FieldUse{"signature.is_deterministic", attending, any, ""},
    FieldUse{"signature.kv_layout", listing_pages, any, ""},
    FieldUse{"signature.kv_lookup", listing_pages, any, ""},
    FieldUse{"signature.page_size", with_cache, with_pages, " without pages"},
    FieldUse{"window_left", attending, with_mask, " without a mask"},
    FieldUse{"window_right", attending, with_mask, " without a mask"},
    FieldUse{"sink_size", attending, any, ""},
    FieldUse{"num_splits", splitting, any, ""},
    FieldUse{"rotary_dim", appending, with_rope, " without RoPE"},
    FieldUse{"kv_pool_bytes", listing_pages, any, ""},
    FieldUse{"tensor_alignment", mapping, any, ""},
    FieldUse{"tensors_mappable", mapping, any, ""},
    FieldUse{"presence.cache_batch_idx", with_cache, any, ""},
    FieldUse{"presence.rotary", appending, with_rope, " without RoPE"},
};

} // namespace

std::span<const FieldUse> field_uses() {
    return uses;
}

std::vector<std::string> unused_fields(const Problem& stated) {
    std::vector<std::string> defaults;
    const Problem blank;
    each_leaf(blank, [&](const std::string&, const auto& leaf) { defaults.push_back(field_text(leaf)); });
    const ApiTraits& api = traits_of(stated.api_family);
    std::vector<std::string> sentences;
    std::size_t index = 0;
    each_leaf(stated, [&](const std::string& path, const auto& leaf) {
        const std::string value = field_text(leaf);
        if (value == defaults[index++]) return;
        const auto* const use = std::ranges::find(uses, std::string_view(path), &FieldUse::path);
        if (use == uses.end()) return;
        const bool family = use->of_family(api);
        if (family && (use->of_problem == nullptr || use->of_problem(stated))) return;
        sentences.push_back(fmt::format("{} is {}, which {}{} does not use", path, value, to_string(api.api),
                                        family ? use->without : ""));
    });
    return sentences;
}

} // namespace fmha
