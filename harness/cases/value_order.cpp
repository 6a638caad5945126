#include "harness/cases/value_order.hpp"

#include "dispatcher/types/family_traits.hpp"

#include <algorithm>
#include <vector>

namespace fmha::harness {
namespace {

/// Whether the bits of some output follow from the number of an entry or head itself: random bytes do (D-5), and in a persistent schedule of
/// backward the key tiles whose parts of dQ are added up first.
bool numbers_decide_bits(const Case& c) {
    const bool persistent = c.backward.deterministic && c.mode == Mode::batch && c.backward.compute_units > 0;
    return c.p_drop > 0.0 || c.store_randval || persistent;
}

/// Whether entries are more than side by side: d_sink adds up over them in their order (W-10), pages of entry 0 may be everybody's, and with gaps
/// the lengths of those before decide where in a page an entry begins, and so which keys share a tile (P-2).
bool entries_meet(const Case& c) {
    const bool d_sink = traits_of(c.family).gradients && c.sink_logits != SinkLogits::none;
    return d_sink || c.cache.shared_pages > 0 || c.cache.gappy;
}

/// Of heads that stay in order among themselves: partial results of a query head, and query heads over which dK and dV are sums (W-11).
std::int64_t block_of_heads(const Case& c, std::int64_t heads) {
    if (heads > c.nhead_q) return heads / c.nhead_q;
    return c.backward.reduce_dk_dv && heads == c.nhead_q ? c.nhead_q / c.nhead_k : 1;
}

} // namespace

Case in_reverse_order(Case c) {
    if (numbers_decide_bits(c)) return c;
    c.heads_reversed = c.nhead_q > block_of_heads(c, c.nhead_q);
    c.entries_reversed = c.batch > 1 && !entries_meet(c);
    if (!c.entries_reversed) return c;
    for (std::vector<std::int64_t>* const lengths : {&c.seqlen_q, &c.seqlen_k, &c.physical_q, &c.physical_k})
        std::ranges::reverse(*lengths);
    return c;
}

std::int64_t plain_head(const Case& c, std::int64_t h, std::int64_t heads) {
    if (!c.heads_reversed) return h;
    const std::int64_t block = block_of_heads(c, heads);
    return (heads / block - 1 - h / block) * block + h % block;
}

} // namespace fmha::harness
