#include "kernels/catalog/ck/names.hpp"

#include <array>

namespace fmha::catalog::ck {

namespace {

/// Collects tokens in a buffer and appends them at once; the order of calls is the grammar.
class Writer {
  public:
    explicit Writer(std::string& out) : out_(out) {}
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    ~Writer() { flush(); }

    Writer& text(std::string_view token) {
        if (token.size() > buffer_.size() - used_) flush();
        for (const char c : token) buffer_[used_++] = c;
        return *this;
    }
    Writer& number(std::int64_t value) {
        if (value < 0) {
            text("-");
            value = -value;
        }
        std::array<char, 20> digits;
        std::size_t first = digits.size();
        do {
            digits[--first] = static_cast<char>('0' + value % 10);
            value /= 10;
        } while (value > 0);
        return text({digits.data() + first, digits.size() - first});
    }
    Writer& flag(bool on, std::string_view when_on, std::string_view when_off) {
        return text(on ? when_on : when_off);
    }
    Writer& triple(std::string_view prefix, std::int16_t m, std::int16_t n, std::int16_t k) {
        return text(prefix).number(m).text("x").number(n).text("x").number(k);
    }
    Writer& extents(std::initializer_list<std::int16_t> values) {
        std::string_view separator = "b";
        for (const std::int16_t value : values) {
            text(separator).number(value);
            separator = "x";
        }
        return *this;
    }

  private:
    void flush() {
        out_.append(buffer_.data(), used_);
        used_ = 0;
    }

    std::string& out_;
    std::array<char, 384> buffer_;
    std::size_t used_ = 0;
};

std::string_view api_prefix(KernelFamily family) {
    switch (family) {
    case KernelFamily::fwd:
        return "fmha_fwd_d";
    case KernelFamily::fwd_pagedkv:
        return "fmha_fwd_pagedkv_d";
    case KernelFamily::fwd_splitkv:
        return "fmha_fwd_splitkv_d";
    case KernelFamily::fwd_splitkv_combine:
        return "fmha_fwd_splitkv_combine_d";
    case KernelFamily::fwd_appendkv:
        return "fmha_fwd_appendkv_d";
    case KernelFamily::batch_prefill:
        return "fmha_batch_prefill_d";
    case KernelFamily::bwd_dot_do_o:
        return "fmha_bwd_dot_do_o_d";
    case KernelFamily::bwd_dq_dk_dv:
        return "fmha_bwd_d";
    case KernelFamily::bwd_convert_dq:
        return "fmha_bwd_convert_dq_d";
    default: // upstream does not have it
        return "";
    }
}

/// `p` and the letters of the padded axes, or `otherwise`.
void pad_letters(Writer& w, bool s, bool sk, bool d, bool dv, std::string_view otherwise) {
    if (!s && !sk && !d && !dv) {
        w.text(otherwise);
        return;
    }
    w.text("_p").text(s ? "s" : "").text(sk ? "sk" : "").text(d ? "d" : "").text(dv ? "dv" : "");
}

void bias(Writer& w, BiasType type) {
    w.text(type == BiasType::no_bias ? "_nbias" : type == BiasType::alibi ? "_alibi" : "_bias");
}

void mask(Writer& w, MaskClass type, MaskVocabulary vocabulary) {
    switch (type) {
    case MaskClass::none:
        w.text("_nmask");
        break;
    case MaskClass::causal:
        w.text("_mc");
        break;
    case MaskClass::generic:
        w.text(vocabulary == MaskVocabulary::simplified ? "_mask" : "_mg");
        break;
    }
}

void scale(Writer& w, QScale type) {
    w.text("_").text(type == QScale::no_scale ? "nqscale" : to_string(type));
}

void tile(Writer& w, const Algorithm& a) {
    w.text("_").extents({a.tile.m0, a.tile.n0, a.tile.k0, a.tile.n1, a.tile.k1, a.tile.k0max});
    w.triple("_r", a.wave.m0, a.wave.n0, a.wave.k0).triple("_r", a.wave.m1, a.wave.n1, a.wave.k1);
    w.triple("_w", a.warp.m0, a.warp.n0, a.warp.k0).triple("_w", a.warp.m1, a.warp.n1, a.warp.k1);
    if (a.block_per_cu != -1) w.text("_o").number(a.block_per_cu);
}

/// `{pipeline}_{v}_{pad}_{logits}_{bias}_{mask}`, which four families share.
void features(Writer& w, MaskVocabulary masks, const Signature& s, const Algorithm& a) {
    w.text("_").text(to_string(a.pipeline)).flag(s.v_layout == VLayout::row, "_vr", "_vc");
    pad_letters(w, a.pad.s, a.pad.sk, a.pad.d != 0, a.pad.dv != 0, "_npad");
    w.flag(s.has_logits_soft_cap, "_logits", "_nlogits");
    bias(w, s.bias);
    mask(w, s.mask, masks);
}

void forward(Writer& w, MaskVocabulary masks, const Signature& s, const Algorithm& a) {
    tile(w, a);
    features(w, masks, s, a);
    w.flag(s.has_lse, "_lse", "_nlse").flag(s.has_dropout, "_dropout", "_ndropout");
    w.flag(s.skip_min_seqlen_q, "_skip", "_nskip");
    scale(w, s.qscale);
    w.flag(a.use_trload, "_trload", "_ntrload").flag(s.has_sink, "_sink", "_nsink");
}

void split(Writer& w, MaskVocabulary masks, const Signature& s, const Algorithm& a) {
    tile(w, a);
    features(w, masks, s, a);
    w.flag(s.has_lse, "_lse", "_nlse").flag(s.do_fp8_static_quant, "_squant", "_nsquant");
    w.flag(s.use_paged_kv, "_pagedkv", "_npagedkv").flag(s.has_sink, "_sink", "_nsink");
}

void paged(Writer& w, MaskVocabulary masks, const Signature& s, const Algorithm& a) {
    tile(w, a);
    features(w, masks, s, a);
    w.flag(s.has_lse, "_lse", "_nlse").flag(s.skip_min_seqlen_q, "_skip", "_nskip");
    w.flag(s.do_fp8_static_quant, "_squant", "_nsquant").flag(s.use_paged_kv, "_pagedkv", "_npagedkv");
    w.flag(s.has_sink, "_sink", "_nsink");
}

void combine(Writer& w, const Signature& s, const Algorithm& a) {
    w.text("_b").number(a.tile.n1);
    if (a.block_per_cu != -1) w.text("_o").number(a.block_per_cu);
    w.text("_unused");
    pad_letters(w, a.pad.s, false, false, a.pad.dv != 0, "_npad");
    w.flag(s.has_lse, "_lse", "_nlse").flag(s.do_fp8_static_quant, "_squant", "_nsquant");
}

void append(Writer& w, const Signature& s, const Algorithm& a) {
    w.text("_").extents({a.tile.m0, a.tile.n0, a.tile.k0, a.tile.n1});
    if (a.block_per_cu != -1) w.text("_o").number(a.block_per_cu);
    w.flag(s.v_layout == VLayout::row, "_vr", "_vc");
    pad_letters(w, a.pad.s, a.pad.sk, a.pad.d != 0, a.pad.dv != 0, "");
    w.text(s.rope == Rope::interleaved ? "_inter" : s.rope == Rope::half_rotated ? "_half" : "");
    w.flag(s.use_paged_kv, "_pagedkv", "");
}

void prefill(Writer& w, MaskVocabulary masks, const Signature& s, const Algorithm& a) {
    w.text("_ps").number(s.page_size).text("_").text(to_string(a.load_mode));
    tile(w, a);
    features(w, masks, s, a);
    w.flag(s.has_lse, "_lse", "_nlse").flag(s.has_dropout, "_dropout", "_ndropout");
    scale(w, s.qscale);
    w.flag(s.has_sink, "_sink", "_nsink").text("_").text(to_string(s.kv_layout));
    w.flag(s.kv_lookup == KvLookup::sglang_1d, "_sglang", "_vllm");
}

void gradients(Writer& w, MaskVocabulary masks, const Signature& s, const Algorithm& a) {
    const Tile& t = a.tile;
    w.text("_").extents({t.m0, t.n0, t.k0, t.n1, t.k1, t.k0max, t.b6, t.b7, t.b8});
    w.triple("_r", a.wave.m0, a.wave.n0, a.wave.k0).triple("_r", a.wave.m1, a.wave.n1, a.wave.k1);
    w.triple("_r", a.wave.m2, a.wave.n2, a.wave.k2);
    w.triple("_w", a.warp.m0, a.warp.n0, a.warp.k0).triple("_w", a.warp.m1, a.warp.n1, a.warp.k1);
    w.text("_o").number(a.block_per_cu).text("_maxq").number(a.max_seq_len_q);
    if (a.pad.d == 0 && a.pad.dv == 0) {
        w.text("_npad");
    } else {
        w.text("_p");
        if (a.pad.d != 0) w.text("d").number(a.pad.d);
        if (a.pad.dv != 0) w.text("dv").number(a.pad.dv);
    }
    bias(w, s.bias);
    w.flag(s.has_dbias, "_dbias", "_ndbias");
    mask(w, s.mask, masks);
    w.text("_").text(a.dropout_variant == DropoutVariant::none ? "ndropout" : to_string(a.dropout_variant));
    w.flag(s.is_deterministic, "_deterministic", "_ndeterministic").flag(a.use_trload, "_trload", "_ntrload");
}

} // namespace

void append_stem(MaskVocabulary masks, const KernelConfig& config, std::string& out) {
    const Signature& s = config.signature;
    const Algorithm& a = config.algorithm;
    Writer w(out);
    w.text(api_prefix(s.family)).number(s.hdim_q).text("_").text(to_string(s.data_type));
    const std::string_view mode = s.mode == Mode::batch ? "_batch" : "_group";
    switch (s.family) {
    case KernelFamily::fwd:
        forward(w.text(mode), masks, s, a);
        break;
    case KernelFamily::fwd_splitkv:
        split(w.text(mode), masks, s, a);
        break;
    case KernelFamily::fwd_pagedkv:
        paged(w.text(mode), masks, s, a);
        break;
    case KernelFamily::fwd_splitkv_combine:
        combine(w.text(mode), s, a);
        break;
    case KernelFamily::fwd_appendkv:
        append(w, s, a);
        break;
    case KernelFamily::batch_prefill:
        prefill(w.text(mode), masks, s, a);
        break;
    case KernelFamily::bwd_dq_dk_dv:
        gradients(w.text(mode), masks, s, a);
        break;
    case KernelFamily::bwd_dot_do_o:
        w.text("_b").number(a.tile.m0).text(mode).text("_o").number(a.block_per_cu);
        pad_letters(w, a.pad.s, false, false, a.pad.dv != 0, "_npad");
        break;
    case KernelFamily::bwd_convert_dq:
        w.text("_b").number(a.tile.m0).text(mode).text("_o").number(a.block_per_cu);
        pad_letters(w, a.pad.s, false, a.pad.d != 0, false, "_npad");
        w.flag(s.is_deterministic, "_deterministic", "_ndeterministic");
        break;
    default:
        break;
    }
}

void append_name(const Naming& naming, const KernelConfig& config, std::string& out) {
    append_stem(naming.masks, config, out);
    if (!config.arch.empty()) out.append("_").append(config.arch.view());
    out += ".cpp";
}

} // namespace fmha::catalog::ck
