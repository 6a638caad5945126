// The LSE of a row: ln Σ exp of its logits (F-7), and exactly the sink logit where it sees no key.

#include "kernels/programs/key_loop.hpp"
#include "kernels/programs/ws_weights.hpp"
#include "tests/mutation/checks.hpp"

#include <cmath>
#include <vector>

namespace fmha::test {
namespace {

struct RowContext : kernels::Decisions {
    using Rows = std::vector<float>;
    KernelConfig config;
    Rows stored;

    const KernelConfig& cfg() const { return config; }
    Rows rows() const { return Rows(4); }
    float log(float x) const { return std::log(x); }
    template <class Change>
    void map_rows(Rows& to, const Rows& a, const Rows& b, Change change) const {
        for (std::size_t r = 0; r < 4; ++r) to[r] = change(a[r], b[r]);
    }
    template <class Value>
    void set_rows(Rows& to, Value value) const {
        for (std::size_t r = 0; r < 4; ++r) to[r] = value(static_cast<int>(r));
    }
    void fill(Rows& to, float value) const { to.assign(4, value); }
    void store(const kernels::Matrix&, const Rows& rows, std::int64_t) { stored = rows; }
};

/// Rows of two heads, each with a sink logit of its own, which comes back exactly from a row without a key.
bool sinks_of_heads_come_back() {
    constexpr float sinks[] = {0.73F, -2.1F};
    RowContext ctx;
    kernels::Scoring scoring;
    scoring.heads = {1, 1};
    scoring.sink = sinks[0];
    scoring.sink_top = ctx.to_base2(sinks[0]);
    scoring.sinks = sinks;
    RowContext::Rows top(4), total(4), spare(4);
    kernels::begin_rows(ctx, scoring, top, total, 8);
    for (std::size_t r = 0; r < 4; ++r)
        if (top[r] != ctx.to_base2(sinks[r / 2]) || total[r] != 1.0F) return false;
    kernels::store_lse(ctx, {}, top, total, spare, scoring, 8);
    for (std::size_t r = 0; r < 4; ++r)
        if (ctx.stored[r] != sinks[r / 2]) return false;
    // The first two rows see a key, of which one has a larger logit than the sink's.
    total = {2.0F, 1.5F, 1.0F, 0.0F};
    top[1] = 3.0F;
    kernels::store_lse(ctx, {}, top, total, spare, scoring, 8);
    const float want[] = {sinks[0] + std::log(2.0F), 3.0F * kernels::ln2 + std::log(1.5F), sinks[1],
                          kernels::never};
    for (std::size_t r = 0; r < 4; ++r)
        if (ctx.stored[r] != want[r] && !(std::abs(ctx.stored[r] - want[r]) < 1e-4F)) return false;
    return true;
}

/// Weights that carry 2^8 of their type: which factors scores stay products for, the sink logits, which come back exactly, and the divisor of the
/// output, which has the largest weight as its type rounds it.
struct CarryingContext : RowContext {
    float weight_unit() const { return 0x1p-8F; }
    float weight_shift() const { return 8.0F; }
    float quotient(float a, float b) const { return a / b; }
    float narrowed(float weight) const { return weight + 1.0F; }
    /// As where the largest score keeps what its product was rounded by.
    float top_weight(float top, kernels::ScoreUnit unit) const {
        return 0x1p8F + __builtin_fmaf(top, unit.factor(top), unit.reference(top)) - unit.shift;
    }
};

/// Whether rows that see their sinks alone begin with those, and end with them and a total of 1.
bool sinks_come_back(CarryingContext& ctx, const kernels::Scoring& scoring, float factor) {
    const auto carried = kernels::CarriedWeights::of(ctx, scoring, factor);
    const float in_logits = carried.unit.in_logits;
    RowContext::Rows top(4), reference(4), total(4), divisor(4);
    kernels::begin_rows(ctx, scoring, top, total, 0);
    const RowContext::Rows sinks = top;
    carried.begin(ctx, top, reference, total);
    for (std::size_t r = 0; r < 4; ++r)
        if (top[r] != sinks[r] / in_logits || reference[r] != carried.unit.reference(top[r]) ||
            total[r] != ctx.top_weight(top[r], carried.unit))
            return false;
    top[1] += 20.0F;
    total[1] = 3.0F * ctx.top_weight(top[1], carried.unit);
    const RowContext::Rows before = top;
    carried.end(ctx, scoring, top, total, divisor);
    for (std::size_t r = 0; r < 4; ++r) {
        const float rounded = ctx.narrowed(ctx.top_weight(before[r], carried.unit)) * 0x1p-8F;
        if (top[r] != (r == 1 ? before[r] * in_logits : sinks[r])) return false;
        if (total[r] != (r == 1 ? 3.0F : 1.0F) || divisor[r] != rounded * total[r]) return false;
    }
    return true;
}

bool carried_weights_are_right() {
    CarryingContext ctx;
    ctx.config.signature.has_sink_logit = true;
    kernels::Scoring scoring;
    const auto in_products = [&](float factor, float sink_top) {
        scoring.sink_top = sink_top;
        return kernels::CarriedWeights::of(ctx, scoring, factor).in_products;
    };
    for (const float factor : {-1.0F, -0.5F, 0.0F, 0x1p-61F, 0x1p61F})
        if (in_products(factor, kernels::never)) return false;
    for (const float factor : {0x1p-59F, 0.5F, 1.0F, 3.0F, 0x1p59F}) {
        for (const float sink_top : {0x1p61F, -0x1p61F})
            if (in_products(factor, sink_top)) return false;
        for (const float sink_top : {kernels::never, 0.0F, 0x1p59F, -0x1p59F})
            if (!in_products(factor, sink_top)) return false;
    }
    // Sink logits of two heads, of which one is too large to be divided.
    float sinks[] = {0.73F, -2.1F};
    kernels::Scoring of_heads;
    of_heads.heads = {1, 1};
    of_heads.sinks = sinks;
    of_heads.sink = sinks[0];
    of_heads.sink_top = ctx.to_base2(sinks[0]);
    ctx.config.algorithm.tile.m0 = 4;
    for (const float factor : {0.18F, 0.7F, -0.3F})
        if (!sinks_come_back(ctx, of_heads, factor)) return false;
    sinks[1] = -0x1p61F;
    if (kernels::CarriedWeights::of(ctx, of_heads, 0.7F).in_products) return false;
    for (const float factor : {0.18F, 0.7F, -0.3F})
        for (int n = -40; n <= 40; ++n) {
            scoring.sink = 0.37F * static_cast<float>(n);
            scoring.sink_top = ctx.to_base2(scoring.sink);
            if (!sinks_come_back(ctx, scoring, factor)) return false;
        }
    return true;
}

} // namespace

bool lse_is_right() {
    if (!sinks_of_heads_come_back() || !carried_weights_are_right()) return false;
    for (const bool alibi : {false, true})
        for (int n = -40; n <= 40; ++n) {
            RowContext ctx;
            ctx.config.signature.bias = alibi ? BiasType::alibi : BiasType::no_bias;
            kernels::Scoring scoring;
            scoring.sink = 0.37F * static_cast<float>(n);
            scoring.sink_top = ctx.to_base2(scoring.sink);
            const std::int64_t row0 = 8;
            if (alibi)
                scoring.alibi = kernels::Alibi::of({MaskType::top_left, 3, 2, 0}, kernels::Mask{3, 4, 0, 0},
                                                   0.7F, 20, 15);
            RowContext::Rows top(4), total{1.0F, 1.0F, 2.0F, 0.0F}, spare(4);
            for (std::size_t r = 0; r < 4; ++r)
                top[r] = kernels::first_top(
                    ctx, scoring, alibi ? scoring.alibi.origin(row0 + static_cast<std::int64_t>(r)) : 0.0F);
            top[3] = kernels::never;
            kernels::store_lse(ctx, {}, top, total, spare, scoring, row0);
            if (ctx.stored[0] != scoring.sink || ctx.stored[1] != scoring.sink) return false;
            if (!(std::abs(ctx.stored[2] - (scoring.sink + std::log(2.0F))) < 1e-4F)) return false;
            if (ctx.stored[3] != kernels::never) return false;
        }
    return true;
}

} // namespace fmha::test
