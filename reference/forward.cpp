#include "reference/forward.hpp"

#include "reference/attention.hpp"
#include "reference/result.hpp"
#include "reference/row/row_oracle.hpp"
#include "reference/views.hpp"

#include <limits>

namespace fmha::reference {

ForwardRows empty_result(const FwdArgs& args, std::span<const RowId> rows, const ForwardOptions& options) {
    constexpr double nothing = -std::numeric_limits<double>::infinity();
    const auto count = static_cast<std::int64_t>(rows.size());
    const auto table = [&] { return Table(count, args.shape.hdim_v); };
    const auto column = [&](double value) { return Column<double>(count, value); };
    const auto indices = [&](std::int64_t value) { return Column<std::int64_t>(count, value); };
    ForwardRows out;
    out.rows.assign(rows.begin(), rows.end());
    out.o = table();
    out.lse = out.score_max = out.row_max = column(nothing);
    out.visible_keys = out.seqlen_k = indices(0);
    out.first_visible = out.last_visible = indices(-1);
    out.numerics = options.numerics;
    out.scale_o = args.score.scale_o;
    out.p_undrop = dropout_constants(args.dropout.p_drop).p_undrop;
    if (!options.companions) return out;
    out.eta = out.ell = out.max_a = column(0.0);
    out.weighted_abs = out.abs_v = out.square_v = out.weight_variance = table();
    return out;
}

ForwardRows forward(const FwdArgs& args, std::span<const RowId> rows, const ForwardOptions& options,
                    Oracle oracle) {
    return attention(attention_of(args), rows, options, oracle);
}

EntryLengths entry_lengths(const FwdArgs& args, std::int64_t b) {
    const Entry entry = entry_of(args, b);
    return {entry.skipped ? 0 : entry.seqlen_q, entry.seqlen_k};
}

bool key_visible(const FwdArgs& args, std::int64_t b, std::int64_t i, std::int64_t j) {
    const Entry entry = entry_of(args, b);
    return visible(args.mask, entry.seqlen_q, entry.seqlen_k, i, j);
}

std::uint8_t stored_random_byte(const FwdArgs& args, const RowId& row, std::int64_t j) {
    return random_byte({row.b, row.h, row.i, j}, args.shape.nhead_q, args.dropout.seed, args.dropout.offset);
}

double value_of(const FwdArgs& args, std::int64_t b, std::int64_t hk, std::int64_t j, std::int64_t c) {
    return value_of(attention_of(args), b, hk, j, c);
}

} // namespace fmha::reference
