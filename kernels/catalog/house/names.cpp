#include "kernels/catalog/house/house.hpp"

#include <charconv>

namespace fmha::catalog::house {

namespace {

void number(std::string& out, std::int64_t value) {
    char digits[20];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void joined(std::string& out, std::string_view prefix, std::initializer_list<std::int64_t> values) {
    out += prefix;
    bool first = true;
    for (const std::int64_t value : values) {
        if (!first) out += 'x';
        number(out, value);
        first = false;
    }
}

void triples(std::string& out, std::string_view prefix, const GemmTriples& t, bool three) {
    joined(out, prefix, {t.m0, t.n0, t.k0, t.m1, t.n1, t.k1});
    if (three) joined(out, "x", {t.m2, t.n2, t.k2});
}

void padding(std::string& out, const Padding& pad) {
    out += "_p";
    if (pad.s) out += 's';
    if (pad.sk) out += "sk";
    if (pad.d != 0) joined(out, "d", {pad.d});
    if (pad.dv != 0) joined(out, "dv", {pad.dv});
}

} // namespace

void append_start(const ArchName& arch, const Signature& s, std::string& out) {
    out += to_string(s.family);
    for (const std::string_view token : {std::string_view(arch), to_string(s.data_type), to_string(s.mode)})
        out.append("_").append(token);
    joined(out, "_h", {s.hdim_q, s.hdim_v});
}

void append_name(const Naming&, const KernelConfig& config, std::string& out) {
    const Signature& s = config.signature;
    const Algorithm& a = config.algorithm;
    const bool backward = s.family == KernelFamily::bwd_dq_dk_dv;
    const auto word = [&](std::string_view token) { out.append("_").append(token); };
    const auto flag = [&](bool on, std::string_view token) {
        if (on) word(token);
    };
    append_start(config.arch, s, out);
    word(to_string(a.pipeline));
    const Tile& t = a.tile;
    joined(out, "_t", {t.m0, t.n0, t.k0, t.n1, t.k1, t.k0max});
    if (backward) joined(out, "x", {t.b6, t.b7, t.b8});
    if (a.wave != GemmTriples{}) triples(out, "_w", a.wave, backward);
    if (a.warp != GemmTriples{}) triples(out, "_i", a.warp, backward);
    padding(out, a.pad);
    flag(s.v_layout == VLayout::column, "vcol");
    flag(s.has_logits_soft_cap, "cap");
    if (s.mask != MaskClass::none) word(to_string(s.mask));
    if (s.bias != BiasType::no_bias) word(to_string(s.bias));
    flag(s.has_dbias, "dbias");
    flag(s.has_lse, "lse");
    if (a.dropout_variant != DropoutVariant::none)
        word(to_string(a.dropout_variant));
    else
        flag(s.has_dropout, "dropout");
    if (s.qscale != QScale::no_scale) word(to_string(s.qscale));
    flag(s.do_fp8_static_quant, "squant");
    if (s.rope != Rope::none) word(to_string(s.rope));
    flag(s.use_paged_kv, "paged");
    if (s.kv_layout != KvLayout::unset) word(to_string(s.kv_layout));
    if (s.kv_lookup != KvLookup::unset) word(to_string(s.kv_lookup));
    if (s.page_size != 1 || s.family == KernelFamily::batch_prefill) joined(out, "_page", {s.page_size});
    if (a.load_mode != LoadMode::none) word(to_string(a.load_mode));
    flag(s.skip_min_seqlen_q, "skip");
    flag(s.has_sink, "sink");
    flag(s.is_deterministic, "deterministic");
    flag(a.use_trload, "trload");
    if (a.max_seq_len_q != 0) joined(out, "_maxq", {a.max_seq_len_q});
    if (a.block_per_cu != -1) joined(out, "_o", {a.block_per_cu});
    if (!a.tile_tag.empty()) word(a.tile_tag);
    if (!a.constraint.empty()) word(a.constraint);
}

} // namespace fmha::catalog::house
