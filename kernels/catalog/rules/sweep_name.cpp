#include "kernels/catalog/rules/sweep_name.hpp"

#include <array>
#include <charconv>
#include <cstring>

namespace fmha::catalog::audit {

namespace {

/// Writes into a buffer that holds the longest name (about 330 characters with every token and 24-character
/// tags); appending to the string once per name keeps millions of names cheap.
class Writer {
  public:
    Writer& text(std::string_view part) {
        std::memcpy(end_, part.data(), part.size());
        end_ += part.size();
        return *this;
    }
    Writer& number(std::int64_t value) {
        end_ = std::to_chars(end_, buffer_.data() + buffer_.size(), value).ptr;
        return *this;
    }
    std::string_view view() const {
        return {buffer_.data(), static_cast<std::size_t>(end_ - buffer_.data())};
    }

  private:
    std::array<char, 512> buffer_;
    char* end_ = buffer_.data();
};

std::string_view lookup_name(KvLookup lookup) {
    return lookup == KvLookup::vllm_2d ? "vllm" : "sglang";
}

void write_options(const KernelConfig& config, Writer& w) {
    const Signature& s = config.signature;
    if (s.has_lse) w.text("_lse=1");
    if (s.has_dropout) w.text("_drop=1");
    if (s.has_logits_soft_cap) w.text("_logits=1");
    if (s.has_sink) w.text("_sink=1");
    if (s.skip_min_seqlen_q) w.text("_skip=1");
    if (s.qscale != QScale::no_scale) w.text("_qs=").text(to_string(s.qscale));
    if (s.use_paged_kv) w.text("_pkv=1");
    if (s.rope != Rope::none) w.text("_rope=").text(to_string(s.rope));
    if (s.page_size != 1) w.text("_ps=").number(s.page_size);
    if (s.kv_layout == KvLayout::linear) w.text("_kvl=linear");
    if (s.kv_lookup == KvLookup::vllm_2d) w.text("_kvt=").text(lookup_name(s.kv_lookup));
    if (s.is_deterministic) w.text("_det=1");
    if (s.has_dbias) w.text("_dbias=1");
    if (const auto variant = sweep_dropout_variant_name(config); variant != "no")
        w.text("_drv=").text(variant);
}

bool constraint_has(const KernelConfig& config, std::string_view item) {
    const std::string_view all = config.algorithm.constraint;
    return all == item || all.starts_with(item) || all.ends_with(item);
}

} // namespace

std::string_view sweep_mask_name(const KernelConfig& config) {
    switch (config.signature.mask) {
    case MaskClass::none:
        return "no";
    case MaskClass::causal:
        return constraint_has(config, bottom_right_constraint) ? "bottom_right" : "top_left";
    case MaskClass::generic:
        return "generic";
    }
    return "?";
}

std::string_view sweep_bias_name(BiasType bias) {
    switch (bias) {
    case BiasType::no_bias:
        return "no";
    case BiasType::elementwise:
        return "bias";
    case BiasType::alibi:
        return "alibi";
    }
    return "?";
}

std::string_view sweep_dropout_variant_name(const KernelConfig& config) {
    if (config.algorithm.constraint.empty()) return to_string(config.algorithm.dropout_variant);
    if (constraint_has(config, dropout_rp_constraint)) return "rp";
    if (constraint_has(config, dropout_p_constraint)) return "p";
    return to_string(config.algorithm.dropout_variant);
}

void append_sweep_name(SweepNameStyle style, const KernelConfig& config, std::string& out) {
    const Signature& s = config.signature;
    const Algorithm& a = config.algorithm;
    Writer w;
    w.text("fmha_").text(to_string(s.family)).text("_").text(to_string(s.data_type)).text("_");
    w.text(to_string(s.mode)).text("_h").number(s.hdim_q);
    if (s.hdim_q != s.hdim_v) w.text("x").number(s.hdim_v);
    w.text("_").text(to_string(a.pipeline)).text("_t").number(a.tile.m0);
    for (const std::int16_t extent : {a.tile.n0, a.tile.k0, a.tile.n1, a.tile.k1, a.tile.k0max})
        w.text("x").number(extent);
    if (!a.tile_tag.empty()) w.text(".").text(a.tile_tag);
    if (style == SweepNameStyle::sweep)
        w.text("_w").number(a.warp.m0).text("x").number(a.warp.n0).text("x").number(a.warp.k0);
    w.text("_pad").text(a.pad.s ? "1" : "0").text(a.pad.sk ? "1" : "0").number(a.pad.d).number(a.pad.dv);
    w.text("_mask=").text(sweep_mask_name(config)).text("_bias=").text(sweep_bias_name(s.bias));
    write_options(config, w);
    if (style == SweepNameStyle::sweep) w.text("_bpc=").number(a.block_per_cu);
    out.append(w.view());
}

} // namespace fmha::catalog::audit
