// The LSE of a row: ln Σ exp of its logits (F-7), and exactly the sink logit where it sees no key.

#include "kernels/programs/key_loop.hpp"
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
    void store(const kernels::Matrix&, const Rows& rows, std::int64_t) { stored = rows; }
};

} // namespace

bool lse_is_right() {
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
