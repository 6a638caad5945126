#include "reference/matrix/matrix_oracle.hpp"

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/types/error.hpp"
#include "reference/matrix/blocks.hpp"
#include "reference/result.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string>
#include <vector>

namespace fmha::reference {
namespace {

/// Fewer rows than this are not worth decoding keys and values once more for another thread.
constexpr std::size_t smallest_share = 64;

/// Rows begin … begin + size − 1 of the ordered list, which share entry and KV head.
struct RowGroup {
    std::size_t begin = 0, size = 0;
};

std::int64_t kv_head(const FwdArgs& args, const RowId& row) {
    return row.h / (args.shape.nhead_q / args.shape.nhead_k);
}

std::vector<RowGroup> groups_of(const FwdArgs& args, const std::vector<RowId>& rows) {
    std::vector<RowGroup> groups;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const bool same =
            r > 0 && rows[r].b == rows[r - 1].b && kv_head(args, rows[r]) == kv_head(args, rows[r - 1]);
        if (!same) groups.push_back({r, 0});
        ++groups.back().size;
    }
    return groups;
}

/// Splits groups so that every thread finds something to do.
std::vector<RowGroup> shares_of(const std::vector<RowGroup>& groups, int threads) {
    const std::size_t wanted = 2 * static_cast<std::size_t>(threads);
    const std::size_t parts = groups.empty() ? 1 : (wanted + groups.size() - 1) / groups.size();
    std::vector<RowGroup> shares;
    for (const RowGroup& group : groups) {
        const std::size_t size = std::max(smallest_share, (group.size + parts - 1) / parts);
        for (std::size_t begin = 0; begin < group.size; begin += size)
            shares.push_back({group.begin + begin, std::min(size, group.size - begin)});
    }
    return shares;
}

void require_known_scales(const AttentionArgs& args) {
    const QScale mode = args.quant.qscale;
    if (args.place.page_size == 0 && (mode == QScale::kv_blockscale || mode == QScale::per_token_head))
        throw ProblemError("15", "qscale", std::string(to_string(mode)),
                           "forward has no quantisation mode " + std::string(to_string(mode)));
}

void require_rows_inside(const matrix::EntryExtent& extent, std::span<const RowId> rows) {
    for (const RowId& row : rows)
        if (row.i < 0 || row.i >= extent.queries)
            throw Error("row " + std::to_string(row.i) + " of entry " + std::to_string(row.b) +
                        " was asked for; it has " + std::to_string(extent.queries) + " query rows");
}

/// Row n of the result is row order[n] of the request.
ForwardRows in_asked_order(const ForwardRows& computed, const std::vector<std::int64_t>& order,
                           std::span<const RowId> asked) {
    ForwardRows out = computed;
    out.rows.assign(asked.begin(), asked.end());
    const auto move_column = [&](const auto& from, auto& to) {
        for (std::int64_t r = 0; r < from.size(); ++r) to(order[static_cast<std::size_t>(r)]) = from(r);
    };
    const auto move_table = [&](const Table& from, Table& to) {
        for (std::int64_t r = 0; r < from.rows(); ++r)
            std::ranges::copy(from.row(r), to.row(order[static_cast<std::size_t>(r)]).begin());
    };
    move_table(computed.o, out.o);
    move_column(computed.lse, out.lse);
    move_column(computed.score_max, out.score_max);
    move_column(computed.row_max, out.row_max);
    move_column(computed.visible_keys, out.visible_keys);
    move_column(computed.first_visible, out.first_visible);
    move_column(computed.last_visible, out.last_visible);
    move_column(computed.seqlen_k, out.seqlen_k);
    move_column(computed.eta, out.eta);
    move_column(computed.ell, out.ell);
    move_column(computed.max_a, out.max_a);
    move_table(computed.weighted_abs, out.weighted_abs);
    move_table(computed.abs_v, out.abs_v);
    move_table(computed.square_v, out.square_v);
    move_table(computed.weight_variance, out.weight_variance);
    return out;
}

} // namespace

ForwardRows forward_in_matrix_form(const AttentionArgs& args, std::span<const RowId> rows,
                                   const ForwardOptions& options) {
    require_known_scales(args);
    std::vector<std::int64_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    const auto asked = [&](std::int64_t n) -> const RowId& { return rows[static_cast<std::size_t>(n)]; };
    std::ranges::stable_sort(order, {}, asked);
    std::vector<RowId> sorted;
    sorted.reserve(order.size());
    for (const std::int64_t n : order) sorted.push_back(asked(n));

    ForwardRows out = empty_result(args, sorted, options);
    const int threads = system::thread_count(options.threads);
    const std::vector<RowGroup> shares = shares_of(groups_of(args, sorted), threads);
    std::atomic<std::int64_t> scores_evaluated{0};
    const auto compute = [&](std::size_t n) {
        const RowGroup& share = shares[n];
        const auto mine = std::span<const RowId>(sorted).subspan(share.begin, share.size);
        const matrix::EntryExtent extent = matrix::entry_extent(args, mine.front().b);
        require_rows_inside(extent, mine);
        matrix::RowGroup group(args, extent, kv_head(args, mine.front()), mine,
                               static_cast<std::int64_t>(share.begin), out);
        scores_evaluated += group.run();
    };
    system::parallel_for(shares.size(), compute, threads);
    out.scores_evaluated = scores_evaluated;
    if (!std::ranges::is_sorted(rows)) return in_asked_order(out, order, rows);
    return out;
}

} // namespace fmha::reference
