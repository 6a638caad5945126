#include "harness/bench/work.hpp"

#include "harness/families/bwd_expectation.hpp"
#include "reference/numerics/lengths.hpp"
#include "reference/numerics/mask.hpp"
#include "reference/numerics/places.hpp"

#include <algorithm>

namespace fmha::harness {
namespace {

/// Keys that row i of an entry sees: its window, and the sink tokens outside of it.
std::int64_t keys_seen(const MaskArgs& mask, const reference::Entry& entry, std::int64_t i) {
    const auto [y, x] = reference::window_coordinates(mask, entry.seqlen_q, entry.seqlen_k);
    const std::int64_t first = std::clamp<std::int64_t>(i - y + 1, 0, entry.seqlen_k);
    const std::int64_t last = std::clamp<std::int64_t>(i + x, first, entry.seqlen_k);
    std::int64_t keys = last - first;
    for (std::int64_t j = 0; j < std::min(mask.sink, entry.seqlen_k); ++j)
        if ((j < first || j >= last) &&
            reference::sees_as_sink_token(mask, entry.seqlen_q, entry.seqlen_k, i, j))
            ++keys;
    return keys;
}

/// Elements of a (batch, head, row, key) tensor that may be broadcast over entries and heads, in bytes.
double bytes_of_scores(const TensorView& view, double batch, double heads, double rows_by_keys) {
    return (view.batch_stride == 0 ? 1.0 : batch) * (view.head_stride == 0 ? 1.0 : heads) * rows_by_keys *
           static_cast<double>(element_bits(view.type)) / 8.0;
}

} // namespace

Work work_of(const reference::AttentionArgs& args) {
    const auto bytes = [](const TensorView& view, std::int64_t elements) {
        return static_cast<double>(element_bytes(view.type, elements));
    };
    Work work;
    double scores = 0.0;
    for (std::int64_t b = 0; b < args.shape.batch; ++b) {
        const reference::Entry entry = reference::entry_in_cache(args, b);
        if (entry.skipped) continue;
        std::int64_t pairs = 0;
        for (std::int64_t i = 0; i < entry.seqlen_q; ++i) pairs += keys_seen(args.mask, entry, i);
        work.visible_pairs += static_cast<double>(pairs) * static_cast<double>(args.shape.nhead_q);
        scores += static_cast<double>(entry.seqlen_q) * static_cast<double>(entry.seqlen_k);
        const std::int64_t queries = entry.seqlen_q * args.shape.nhead_q,
                           keys = entry.seqlen_k * args.shape.nhead_k;
        work.bytes += bytes(args.q, queries * args.shape.hdim_q) + bytes(args.k, keys * args.shape.hdim_q) +
                      bytes(args.v, keys * args.shape.hdim_v) + bytes(args.o, queries * args.shape.hdim_v);
        if (args.lse.present()) work.bytes += bytes(args.lse, queries);
    }
    const auto batch = static_cast<double>(args.shape.batch), heads = static_cast<double>(args.shape.nhead_q);
    const double one_entry = scores / std::max(batch, 1.0);
    if (args.score.bias_type == BiasType::elementwise)
        work.bytes += bytes_of_scores(args.bias, batch, heads, one_entry);
    if (args.randval.present()) work.bytes += bytes_of_scores(args.randval, batch, heads, one_entry);
    work.flops = 2.0 * work.visible_pairs * static_cast<double>(args.shape.hdim_q + args.shape.hdim_v);
    return work;
}

Work work_of(const BwdArgs& args) {
    // It reads the tensors that forward reads and writes, and dO like O.
    const FwdArgs forward = forward_before(args);
    Work work = work_of(reference::attention_of(forward));
    const Shape& shape = args.shape;
    const auto bytes = [](const TensorView& view, std::int64_t elements) {
        return static_cast<double>(element_bytes(view.type, elements));
    };
    double scores = 0.0;
    for (std::int64_t b = 0; b < shape.batch; ++b) {
        const reference::Entry entry = reference::entry_of(forward, b);
        const std::int64_t queries = entry.seqlen_q * shape.nhead_q, keys = entry.seqlen_k * shape.nhead_q;
        work.bytes += bytes(args.d_o, queries * shape.hdim_v) + bytes(args.dq, queries * shape.hdim_q) +
                      bytes(args.dk, keys * shape.hdim_q) + bytes(args.dv, keys * shape.hdim_v);
        scores += static_cast<double>(entry.seqlen_q * entry.seqlen_k);
    }
    if (args.dbias.present())
        work.bytes += bytes(args.dbias, 1) * scores * static_cast<double>(shape.nhead_q);
    work.flops = 2.0 * work.visible_pairs * static_cast<double>(3 * shape.hdim_q + 2 * shape.hdim_v);
    return work;
}

Work work_of(const AppendKvArgs& args) {
    const Shape& shape = args.shape;
    const std::int64_t new_rows = shape.batch * args.seqlen_knew, keys = new_rows * shape.nhead_k;
    const auto bytes = [](const TensorView& view, std::int64_t elements) {
        return static_cast<double>(element_bytes(view.type, elements));
    };
    Work work;
    work.bytes = 2.0 * (bytes(args.k, keys * shape.hdim_q) + bytes(args.v, keys * shape.hdim_v));
    if (args.rope.type == Rope::none) return work;
    const std::int64_t dim = args.rope.rotary_dim;
    const std::int64_t queries = args.q.present() ? shape.batch * shape.seqlen_q * shape.nhead_q : 0;
    work.flops = 3.0 * static_cast<double>((keys + queries) * dim);
    work.bytes += 2.0 * bytes(args.k, queries * dim) + 2.0 * bytes(args.k, new_rows * (dim / 2));
    return work;
}

} // namespace fmha::harness
