#include "reference/matrix/matrix_oracle.hpp"

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/types/error.hpp"
#include "reference/matrix/blocks.hpp"
#include "reference/result.hpp"

#include <algorithm>
#include <atomic>
#include <concepts>
#include <numeric>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace fmha::reference {
namespace {

/// Fewer rows than this are not worth decoding keys and values once more for another thread.
constexpr std::size_t smallest_share = 64;

/// Rows begin … begin + size − 1 of the ordered list, which share entry and KV head.
struct RowRange {
    std::size_t begin = 0, size = 0;
};

std::int64_t kv_head(const FwdArgs& args, const RowId& row) {
    return row.h / (args.shape.nhead_q / args.shape.nhead_k);
}

std::vector<RowRange> groups_of(const FwdArgs& args, const std::vector<RowId>& rows) {
    std::vector<RowRange> groups;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const bool same =
            r > 0 && rows[r].b == rows[r - 1].b && kv_head(args, rows[r]) == kv_head(args, rows[r - 1]);
        if (!same) groups.push_back({r, 0});
        ++groups.back().size;
    }
    return groups;
}

/// Splits groups so that every thread finds something to do.
std::vector<RowRange> shares_of(const std::vector<RowRange>& groups, int threads) {
    const std::size_t wanted = 2 * static_cast<std::size_t>(threads);
    const std::size_t parts = groups.empty() ? 1 : (wanted + groups.size() - 1) / groups.size();
    std::vector<RowRange> shares;
    for (const RowRange& group : groups) {
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

/// `computed` with row n moved to place order[n], under the rows as they were asked for.
ForwardRows in_asked_order(ForwardRows computed, const std::vector<std::int64_t>& order,
                           std::span<const RowId> asked) {
    const auto place_of = [&](std::int64_t n) { return order[static_cast<std::size_t>(n)]; };
    const auto reorder = [&](auto& member) {
        using Member = std::remove_cvref_t<decltype(member)>;
        if constexpr (std::same_as<Member, Table>) {
            const Table from = member;
            for (std::int64_t n = 0; n < from.rows(); ++n)
                std::ranges::copy(from.row(n), member.row(place_of(n)).begin());
        } else if constexpr (std::same_as<Member, Column<double>> ||
                             std::same_as<Member, Column<std::int64_t>>) {
            const Member from = member;
            for (std::int64_t n = 0; n < from.size(); ++n) member(place_of(n)) = from(n);
        } else {
            static_assert(std::same_as<Member, std::vector<RowId>> || std::same_as<Member, Numerics> ||
                          std::is_arithmetic_v<Member>);
        }
    };
    each_field(computed, [&](std::string_view, auto& member) { reorder(member); });
    computed.rows.assign(asked.begin(), asked.end());
    return computed;
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
    const std::vector<RowRange> shares = shares_of(groups_of(args, sorted), threads);
    std::atomic<std::int64_t> scores_evaluated{0};
    const auto compute = [&](std::size_t n) {
        const RowRange& share = shares[n];
        const auto mine = std::span<const RowId>(sorted).subspan(share.begin, share.size);
        const matrix::EntryExtent extent = matrix::entry_extent(args, mine.front().b);
        require_rows_inside(extent, mine);
        matrix::RowGroup group(args, extent, kv_head(args, mine.front()), mine,
                               static_cast<std::int64_t>(share.begin), out);
        scores_evaluated += group.run();
    };
    system::parallel_for(shares.size(), compute, threads);
    out.scores_evaluated = scores_evaluated;
    if (!std::ranges::is_sorted(rows)) return in_asked_order(std::move(out), order, rows);
    return out;
}

} // namespace fmha::reference
