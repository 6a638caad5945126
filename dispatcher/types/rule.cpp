#include "dispatcher/types/rule.hpp"

#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/problem.hpp"
#include "dispatcher/types/type_classes.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <utility>

namespace fmha {

namespace {

/// Collects the findings of a check. Without an output list it only remembers whether an error was found, and
/// sentences are not built.
class Findings {
  public:
    explicit Findings(std::vector<RuleFinding>* list) : list_(list) {}

    template <class Sentence>
    void add(std::string_view id, Severity severity, Sentence&& sentence) {
        has_error_ = has_error_ || severity == Severity::error;
        if (list_ != nullptr) list_->push_back({id, severity, std::forward<Sentence>(sentence)()});
    }
    template <class Sentence>
    void error(std::string_view id, Sentence&& sentence) {
        add(id, Severity::error, std::forward<Sentence>(sentence));
    }
    bool has_error() const { return has_error_; }

  private:
    std::vector<RuleFinding>* list_;
    bool has_error_ = false;
};

bool is_one_of(auto value, auto... allowed) {
    return ((value == allowed) || ...);
}

bool has_products(const KernelConfig& c, MatrixProducts products) {
    return traits_of(c.signature.family).products == products;
}

const ApiTraits& api_of(const KernelConfig& c) {
    return api_traits_of(c.signature.family);
}

void head_dimensions(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    for (const auto& [field, value] :
         {std::pair<std::string_view, std::int64_t>{"hdim_q", c.signature.hdim_q},
          {"hdim_v", c.signature.hdim_v}})
        if (value <= 0 || value % 8 != 0)
            found.error("VR-01", [&field = field, &value = value] {
                return fmt::format("{} {} is not a positive multiple of 8", field, value);
            });
}

void data_type(const KernelConfig& c, const HardwareLimits& hw, Findings& found) {
    if (!hw.has(c.signature.data_type))
        found.error("VR-02", [&] {
            return fmt::format("{} has no data type {}", hw.arch.view(), to_string(c.signature.data_type));
        });
}

void pipeline(const KernelConfig& c, const HardwareLimits& hw, Findings& found) {
    if (!traits_of(c.signature.family).combines_splits && !hw.has(c.algorithm.pipeline))
        found.error("VR-03", [&] {
            return fmt::format("{} has no pipeline {}", hw.arch.view(), to_string(c.algorithm.pipeline));
        });
}

void soft_cap_bias(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    if (c.signature.has_logits_soft_cap && c.signature.bias != BiasType::no_bias)
        found.error("VR-04", [&] {
            return fmt::format("soft-cap together with bias {}", to_string(c.signature.bias));
        });
}

void transposed_load_dimensions(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    using enum Pipeline;
    const auto hq = c.signature.hdim_q, hv = c.signature.hdim_v;
    if (is_one_of(c.algorithm.pipeline, qr_async_trload, qr_async_trload_v3, v3) &&
        !(hq == hv && (hq == 64 || hq == 128)))
        found.error("VR-05", [&] {
            return fmt::format("pipeline {} takes head dimensions (64, 64) and (128, 128), not ({}, {})",
                               to_string(c.algorithm.pipeline), hq, hv);
        });
}

void entry_counts(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    const Tile& t = c.algorithm.tile;
    const bool nine = has_products(c, MatrixProducts::five);
    const bool has_nine = t.b6 != 0 && t.b7 != 0 && t.b8 != 0;
    const bool has_six = t.b6 == 0 && t.b7 == 0 && t.b8 == 0;
    if (nine ? !has_nine : !has_six)
        found.error("VR-06", [&] {
            return fmt::format("a tile of {} has {} entries, but entries 7 to 9 are {}, {}, {}",
                               to_string(c.signature.family), nine ? 9 : 6, t.b6, t.b7, t.b8);
        });
    const auto check_triples = [&](std::string_view what, const GemmTriples& triples) {
        each_field(triples, [&](std::string_view name, std::int16_t value) {
            if (value < 0)
                found.error("VR-06", [&] {
                    return fmt::format("{}.{} is {}; it cannot be negative", what, name, value);
                });
        });
    };
    check_triples("wave", c.algorithm.wave);
    check_triples("warp", c.algorithm.warp);
}

/// One matrix product of the block: waves along m and n, each computing warp tiles, must fill the block tile.
struct Product {
    std::string_view name;
    int m, n, k;
    int wave_m, wave_n;
    int warp_m, warp_n, warp_k;
};

void check_product(const Product& p, Findings& found) {
    const auto fail = [&](std::string_view axis, int extent, int divisor) {
        found.error("VR-07", [&] {
            return fmt::format("{}: tile extent {} = {} is not a positive multiple of {} (waves x warp tile)",
                               p.name, axis, extent, divisor);
        });
    };
    const auto divides = [&](std::string_view axis, int extent, int waves, int warp) {
        if (extent <= 0 || waves <= 0 || warp <= 0 || extent % (waves * warp) != 0)
            fail(axis, extent, waves * warp);
    };
    divides("m", p.m, p.wave_m, p.warp_m);
    divides("n", p.n, p.wave_n, p.warp_n);
    divides("k", p.k, 1, p.warp_k);
}

void products(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    const Tile& t = c.algorithm.tile;
    const GemmTriples& wave = c.algorithm.wave;
    const GemmTriples& warp = c.algorithm.warp;
    if (has_products(c, MatrixProducts::two)) {
        check_product({"QK", t.m0, t.n0, t.k0, wave.m0, wave.n0, warp.m0, warp.n0, warp.k0}, found);
        check_product({"PV", t.m0, t.n1, t.k1, wave.m1, wave.n1, warp.m1, warp.n1, warp.k1}, found);
    } else if (has_products(c, MatrixProducts::five)) {
        // Tile entries are (m0, n0, k0, k1, k2, k3, k4, hdim_q, hdim_v); see Tile.
        check_product({"QK", t.m0, t.n0, t.k0, wave.m0, wave.n0, warp.m0, warp.n0, warp.k0}, found);
        check_product({"dV", t.n0, t.b8, t.n1, wave.m1, wave.n1, warp.m1, warp.n1, warp.k1}, found);
        check_product({"dP", t.m0, t.n0, t.k1, wave.m0, wave.n0, warp.m0, warp.n0, warp.k0}, found);
        check_product({"dK", t.n0, t.b7, t.k0max, wave.m1, wave.n1, warp.m1, warp.n1, warp.k1}, found);
        check_product({"dQ", t.m0, t.b7, t.b6, wave.m2, wave.n2, warp.m2, warp.n2, warp.k2}, found);
    }
}

void matrix_instruction_count(const KernelConfig& c, const HardwareLimits& hw, Findings& found) {
    const Tile& t = c.algorithm.tile;
    const GemmTriples& warp = c.algorithm.warp;
    if (!hw.is_cdna || c.algorithm.pipeline != Pipeline::qr || c.signature.hdim_q != 256 ||
        !has_products(c, MatrixProducts::two) || warp.n0 <= 0 || warp.k0 <= 0)
        return;
    const int count = (t.n0 / warp.n0) * (t.k0 / warp.k0);
    if (count % 8 != 0)
        found.error("VR-08", [&] {
            return fmt::format(
                "pipeline qr with hdim_q 256 needs (n0/warp_n0)*(k0/warp_k0) to be a multiple of 8, got {}",
                count);
        });
}

void occupancy(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    if (c.algorithm.block_per_cu != -1 && c.algorithm.block_per_cu <= 0)
        found.error("VR-09", [&] {
            return fmt::format("block_per_cu {} is neither positive nor -1", c.algorithm.block_per_cu);
        });
    if (c.algorithm.num_wave_groups < 1)
        found.error("VR-09", [&] {
            return fmt::format("num_wave_groups {} is below 1", c.algorithm.num_wave_groups);
        });
}

void group_padding(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    if (c.signature.mode != Mode::group) return;
    if (!c.algorithm.pad.s) found.error("VR-10", [] { return std::string("group mode needs pad_s"); });
    if (traits_of(c.signature.family).key_axis && !c.algorithm.pad.sk)
        found.error("VR-10", [] { return std::string("group mode needs pad_sk"); });
}

void require(Findings& found, std::string_view id, bool holds, std::string_view sentence) {
    if (!holds) found.error(id, [&] { return std::string(sentence); });
}

void split_kv(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    if (!traits_of(c.signature.family).stores_splits) return;
    require(found, "VR-11", is_one_of(c.algorithm.pipeline, Pipeline::qr, Pipeline::qr_nwarp_sshuffle),
            "split-KV needs pipeline qr or qr_nwarp_sshuffle");
    require(found, "VR-11", c.signature.v_layout == VLayout::row, "split-KV needs row-major V");
}

void paged_kv(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    if (!api_of(c).always_paged || api_of(c).lists_pages) return;
    const Pipeline pipeline = c.algorithm.pipeline;
    require(found, "VR-12", pipeline == Pipeline::qr_pagedkv || pipeline == Pipeline::ws,
            "paged-KV needs pipeline qr_pagedkv or ws");
    require(found, "VR-12", c.signature.use_paged_kv, "paged-KV needs use_paged_kv");
    require(found, "VR-12", c.signature.v_layout == VLayout::row, "paged-KV needs row-major V");
}

void append_kv(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    if (!api_of(c).stores_keys) return;
    require(found, "VR-13", c.algorithm.pipeline == Pipeline::appendkv, "append-KV needs pipeline appendkv");
    require(found, "VR-13", c.signature.mode == Mode::batch, "append-KV needs batch mode");
    require(found, "VR-13", c.signature.v_layout == VLayout::row, "append-KV needs row-major V");
}

void batch_prefill(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    const Signature& s = c.signature;
    if (!api_of(c).lists_pages) return;
    require(found, "VR-14", s.mode == Mode::group, "batch prefill needs group mode");
    require(found, "VR-14", s.use_paged_kv, "batch prefill needs use_paged_kv");
    require(found, "VR-14", s.v_layout == VLayout::row, "batch prefill needs row-major V");
    require(found, "VR-14", is_one_of(c.algorithm.pipeline, Pipeline::qr_async, Pipeline::ws),
            "batch prefill needs pipeline qr_async or ws");
    if (s.page_size <= 0 || !std::has_single_bit(static_cast<std::uint32_t>(s.page_size)))
        found.error("VR-14", [&] { return fmt::format("page_size {} is not a power of two", s.page_size); });
}

void combine(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    if (traits_of(c.signature.family).combines_splits && c.algorithm.tile.n1 != 32)
        found.error("VR-15",
                    [&] { return fmt::format("a combine kernel has n1 = 32, not {}", c.algorithm.tile.n1); });
}

void backward(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    if (!api_of(c).gradients) return;
    if (!has_gradients(c.signature.data_type))
        found.error("VR-16", [&] {
            return fmt::format("backward exists for fp32, fp16 and bf16, not for {}",
                               to_string(c.signature.data_type));
        });
    require(found, "VR-16", c.signature.v_layout == VLayout::row, "backward needs row-major V");
}

void wide_query_heads(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    const Signature& s = c.signature;
    if (s.hdim_q == 192 && s.hdim_v == 128 && (s.bias != BiasType::no_bias || s.has_dropout))
        found.add("VR-17", Severity::warning, [] {
            return std::string("head dimensions (192, 128) with bias or dropout are untested upstream");
        });
}

void dropout(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    using enum DropoutVariant;
    const Signature& s = c.signature;
    const DropoutVariant variant = c.algorithm.dropout_variant;
    if (s.has_dropout && !api_of(c).dropout)
        found.error("VR-18", [&] {
            return fmt::format("dropout exists in fwd and bwd, not in {}", to_string(s.family));
        });
    require(found, "VR-18", s.has_dropout || !s.is_store_randval, "stored random values need dropout");
    if (variant == none) return;
    require(found, "VR-18", api_of(c).gradients, "a dropout variant belongs to backward kernels");
    require(found, "VR-18", s.has_dropout, "a dropout variant needs has_dropout");
    require(found, "VR-18",
            s.is_store_randval == is_one_of(variant, dropout_wg32_storerandval, dropout_wg16_storerandval),
            "the dropout variant and is_store_randval disagree");
}

/// The rows of semantics section 23 that a kernel key can show and that no rule above covers.
void rejected_combinations(const KernelConfig& c, const HardwareLimits&, Findings& found) {
    const Signature& s = c.signature;
    const bool bwd = api_of(c).gradients, prefill = api_of(c).lists_pages;
    const bool mx = is_micro_scaled(s.data_type);
    require(found, "VR-19", !s.has_dbias || s.bias == BiasType::elementwise,
            "the bias gradient needs an elementwise bias (W-12)");
    require(found, "VR-19", !s.has_dbias || bwd, "the bias gradient exists in backward only (W-12)");
    require(found, "VR-19", !bwd || !s.has_logits_soft_cap, "backward has no soft-cap (20.1)");
    require(found, "VR-19", !bwd || (s.qscale == QScale::no_scale && !s.do_fp8_static_quant),
            "backward has no quantisation (20.1)");
    require(found, "VR-19", !bwd || !s.has_sink, "backward has no sink tokens (K-2)");
    require(found, "VR-19", s.rope == Rope::none || api_of(c).stores_keys,
            "RoPE is part of append-KV only (V-4)");
    require(found, "VR-19", s.rope == Rope::none || is_half(s.data_type),
            "RoPE exists for fp16 and bf16 only (V-7)");
    require(found, "VR-19", mx == (s.qscale == QScale::mx),
            "mx scales go with mx types and with nothing else (Q-5)");
    require(found, "VR-19", !mx || s.v_layout == VLayout::column, "mx types need column-major V (Q-5)");
    require(found, "VR-19", s.qscale != QScale::kv_blockscale || prefill,
            "kv_blockscale exists in batch prefill only (15.4)");
    require(found, "VR-19", s.qscale != QScale::per_token_head || prefill,
            "per_token_head exists in batch prefill only (15.5)");
    if (!prefill && s.use_paged_kv && s.page_size > 1 && s.page_size % 128 != 0)
        found.error("VR-19",
                    [&] { return fmt::format("page_size {} is not a multiple of 128 (P-4)", s.page_size); });
    require(found, "VR-19", !prefill || s.page_size != 1 || s.kv_layout != KvLayout::vectorized,
            "page_size 1 needs the linear KV layout (B-1)");
    if (c.algorithm.max_splits_log2 < 0 || c.algorithm.max_splits_log2 > most_splits_log2)
        found.error("VR-19", [&] {
            return fmt::format("max_splits_log2 {} is outside 0 to {} (S-7)", c.algorithm.max_splits_log2,
                               most_splits_log2);
        });
}

struct Rule {
    ValidationRule text;
    void (*check)(const KernelConfig&, const HardwareLimits&, Findings&);
};

constexpr std::array<Rule, 19> rules{{
    {{"VR-01", "head dimensions are positive multiples of 8"}, head_dimensions},
    {{"VR-02", "the architecture has the data type"}, data_type},
    {{"VR-03", "the architecture has the pipeline (combine kernels are exempt)"}, pipeline},
    {{"VR-04", "soft-cap excludes bias"}, soft_cap_bias},
    {{"VR-05", "trload and v3 pipelines take head dimensions (64, 64) and (128, 128) only"},
     transposed_load_dimensions},
    {{"VR-06", "a tile has 6 entries (9 for bwd_dq_dk_dv), waves and warp tiles 9"}, entry_counts},
    {{"VR-07", "in families with a matrix product, waves x warp tiles divide the block tile"}, products},
    {{"VR-08", "pipeline qr with hdim_q 256 on CDNA: (n0/warp_n0)*(k0/warp_k0) is a multiple of 8"},
     matrix_instruction_count},
    {{"VR-09", "block_per_cu is positive or -1, num_wave_groups at least 1"}, occupancy},
    {{"VR-10", "group mode needs pad_s and, where there is a key axis, pad_sk"}, group_padding},
    {{"VR-11", "split-KV: pipeline qr or qr_nwarp_sshuffle, row-major V"}, split_kv},
    {{"VR-12", "paged-KV: pipeline qr_pagedkv or ws, paged flag, row-major V"}, paged_kv},
    {{"VR-13", "append-KV: pipeline appendkv, batch mode, row-major V"}, append_kv},
    {{"VR-14", "batch prefill: group mode, paged, row-major V, pipeline qr_async or ws, power-of-two page"},
     batch_prefill},
    {{"VR-15", "a combine kernel has n1 = 32"}, combine},
    {{"VR-16", "backward: fp32, fp16 or bf16, row-major V"}, backward},
    {{"VR-17", "head dimensions (192, 128) with bias or dropout: warning"}, wide_query_heads},
    {{"VR-18", "dropout in fwd and bwd only; stored random values need dropout"}, dropout},
    {{"VR-19", "no combination that semantics section 23 rejects"}, rejected_combinations},
}};

constexpr auto rule_texts = [] {
    std::array<ValidationRule, rules.size()> texts;
    for (std::size_t i = 0; i < rules.size(); ++i) texts[i] = rules[i].text;
    return texts;
}();

} // namespace

std::span<const ValidationRule> validation_rules() {
    return rule_texts;
}

std::vector<RuleFinding> validate(const KernelConfig& config, const HardwareLimits& hardware) {
    std::vector<RuleFinding> list;
    Findings found(&list);
    for (const Rule& rule : rules) rule.check(config, hardware, found);
    return list;
}

bool is_valid(const KernelConfig& config, const HardwareLimits& hardware) {
    Findings found(nullptr);
    for (const Rule& rule : rules) {
        rule.check(config, hardware, found);
        if (found.has_error()) return false;
    }
    return true;
}

} // namespace fmha
