#include "reference/attention.hpp"

#include "reference/matrix/matrix_oracle.hpp"
#include "reference/numerics/places.hpp"
#include "reference/numerics/scales.hpp"
#include "reference/row/row_oracle.hpp"
#include "reference/views.hpp"

namespace fmha::reference {
namespace {

/// The parts that the arguments of all families have.
template <class Args>
AttentionArgs common_of(const Args& args) {
    AttentionArgs out;
    out.shape = args.shape;
    out.q = args.q;
    out.k = args.k;
    out.v = args.v;
    out.o = args.o;
    out.lse = args.lse;
    out.bias = args.bias;
    out.lengths = args.lengths;
    out.mask = args.mask;
    out.score = args.score;
    out.quant = args.quant;
    out.place = args.place;
    return out;
}

} // namespace

AttentionArgs attention_of(const FwdArgs& args) {
    return {args, {}};
}

AttentionArgs attention_of(const PagedKvArgs& args) {
    return common_of(args);
}

AttentionArgs attention_of(const BatchPrefillArgs& args) {
    AttentionArgs out = common_of(args);
    out.randval = args.randval;
    out.dropout = args.dropout;
    return out;
}

AttentionArgs attention_of(const SplitKvArgs& args) {
    return common_of(args);
}

AttentionArgs attention_of(const SplitKvArgs& args, std::int64_t split) {
    AttentionArgs out = common_of(args);
    out.score.sink_logit = nullptr;
    out.score.scale_o = 1.0F;
    out.num_splits = args.partials.num_splits;
    out.split = split;
    return out;
}

ForwardRows attention(const AttentionArgs& args, std::span<const RowId> rows, const ForwardOptions& options,
                      Oracle oracle) {
    return oracle == Oracle::matrix ? forward_in_matrix_form(args, rows, options)
                                    : forward_row_by_row(args, rows, options);
}

EntryLengths entry_lengths(const AttentionArgs& args, std::int64_t b) {
    const Entry entry = entry_in_cache(args, b);
    return {entry.skipped ? 0 : entry.seqlen_q, entry.seqlen_k};
}

std::vector<RowId> all_rows(const AttentionArgs& args) {
    return all_rows(static_cast<const FwdArgs&>(args)); // the query side knows no cache
}

double value_of(const AttentionArgs& args, std::int64_t b, std::int64_t hk, std::int64_t j, std::int64_t c) {
    const KeyPlace place = key_place(args, entry_in_cache(args, b), b, j);
    return v_descale(args, decode, b, hk, j, c, place) *
           decode(args.v.type, stored_code(args.v, key_element(args, KvSide::value, place, hk, c)));
}

} // namespace fmha::reference
