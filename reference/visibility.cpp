#include "reference/visibility.hpp"

#include "reference/numerics/formats.hpp"
#include "reference/numerics/mask.hpp"
#include "reference/numerics/places.hpp"
#include "reference/views.hpp"

#include <algorithm>
#include <limits>

namespace fmha::reference {

namespace {

/// Those of all splits together.
KeyRanges unsplit_ranges(const AttentionArgs& args, const Entry& entry, const RowId& row) {
    const std::int64_t sq = entry.seqlen_q, sk = entry.seqlen_k;
    KeyRanges keys;
    keys.end = sk;
    if (args.mask.type == MaskType::no_mask) return keys;
    const WindowCoordinates window = window_coordinates(args.mask, sq, sk);
    keys.end = std::clamp<std::int64_t>(row.i + window.x, 0, sk);
    keys.first = std::clamp<std::int64_t>(row.i - window.y + 1, 0, keys.end);
    if (sees_as_sink_token(args.mask, sq, sk, row.i, 0))
        keys.sink_end = std::clamp<std::int64_t>(args.mask.sink, 0, keys.first);
    return keys;
}

} // namespace

KeyRanges key_ranges(const AttentionArgs& args, const RowId& row) {
    const Entry entry = entry_in_cache(args, row.b);
    KeyRanges keys = unsplit_ranges(args, entry, row);
    if (args.num_splits <= 1) return keys;
    // S-1: split s has the keys [s · width, (s + 1) · width).
    const std::int64_t width =
        std::max<std::int64_t>(1, (entry.seqlen_k + args.num_splits - 1) / args.num_splits);
    const std::int64_t from = args.split * width, to = from + width;
    keys.sink_begin = std::min(from, keys.sink_end);
    keys.sink_end = std::clamp(to, keys.sink_begin, keys.sink_end);
    keys.first = std::clamp(from, keys.first, keys.end);
    keys.end = std::clamp(to, keys.first, keys.end);
    return keys;
}

EndKeys end_keys(const AttentionArgs& args, const RowId& row) {
    const KeyRanges keys = key_ranges(args, row);
    if (keys.count() <= 0) return {};
    const bool sinks = keys.sinks() > 0, window = keys.end > keys.first;
    if (args.score.bias_type != BiasType::elementwise)
        return {sinks ? keys.sink_begin : keys.first, window ? keys.end - 1 : keys.sink_end - 1};

    const std::int64_t stored_row = entry_in_cache(args, row.b).start_q + row.i;
    const auto hidden = [&](std::int64_t j) {
        return decode(args.bias.type, stored_code(args.bias, row.b, row.h, stored_row, j)) ==
               -std::numeric_limits<double>::infinity();
    };
    const auto shown = [&](std::int64_t n) { // the n-th key of both ranges
        return n < keys.sinks() ? keys.sink_begin + n : keys.first + n - keys.sinks();
    };
    std::int64_t from = 0, to = keys.count() - 1;
    while (from <= to && hidden(shown(from))) ++from;
    if (from > to) return {};
    while (hidden(shown(to))) --to;
    return {shown(from), shown(to)};
}

double sink_logit_of(const FwdArgs& args, std::int64_t h) {
    return args.score.sink_logit == nullptr ? -std::numeric_limits<double>::infinity()
                                            : double{args.score.sink_logit[h]};
}

} // namespace fmha::reference
