#include "reference/visibility.hpp"

#include "reference/numerics/formats.hpp"
#include "reference/numerics/lengths.hpp"
#include "reference/numerics/mask.hpp"
#include "reference/views.hpp"

#include <algorithm>
#include <limits>

namespace fmha::reference {

KeyRanges key_ranges(const FwdArgs& args, const RowId& row) {
    const Entry entry = entry_of(args, row.b);
    const std::int64_t sq = entry.seqlen_q, sk = entry.seqlen_k;
    if (args.mask.type == MaskType::no_mask) return {0, 0, sk};
    const WindowCoordinates window = window_coordinates(args.mask, sq, sk);
    KeyRanges keys;
    keys.end = std::clamp<std::int64_t>(row.i + window.x, 0, sk);
    keys.first = std::clamp<std::int64_t>(row.i - window.y + 1, 0, keys.end);
    if (sees_as_sink_token(args.mask, sq, sk, row.i, 0))
        keys.sink_end = std::clamp<std::int64_t>(args.mask.sink, 0, keys.first);
    return keys;
}

EndKeys end_keys(const FwdArgs& args, const RowId& row) {
    const KeyRanges keys = key_ranges(args, row);
    if (keys.count() <= 0) return {};
    const bool sinks = keys.sink_end > 0, window = keys.end > keys.first;
    if (args.score.bias_type != BiasType::elementwise)
        return {sinks ? 0 : keys.first, window ? keys.end - 1 : keys.sink_end - 1};

    const std::int64_t stored_row = entry_of(args, row.b).start_q + row.i;
    const auto hidden = [&](std::int64_t j) {
        return decode(args.bias.type, stored_code(args.bias, row.b, row.h, stored_row, j)) ==
               -std::numeric_limits<double>::infinity();
    };
    const auto shown = [&](std::int64_t n) { // the n-th key of both ranges
        return n < keys.sink_end ? n : keys.first + n - keys.sink_end;
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
