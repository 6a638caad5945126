#include "reference/row/append_row.hpp"

#include "reference/append_result.hpp"
#include "reference/numerics/formats.hpp"
#include "reference/views.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace fmha::reference {
namespace {

/// a + b and the loss of its rounding (Knuth's two-sum).
ExactSum sum_of(double a, double b) {
    const double value = a + b;
    if (!std::isfinite(value)) return {value, 0.0};
    const double added = value - a;
    return {value, (a - (value - added)) + (b - added)};
}

/// The binary64 number next to the sum whose last bit is 1 when the sum is none: it rounds to fewer bits as the sum does.
double rounded_to_odd(const ExactSum& sum) {
    if (sum.rest == 0.0 || (std::bit_cast<std::uint64_t>(sum.value) & 1U) != 0) return sum.value;
    return std::nextafter(sum.value, sum.rest > 0.0 ? std::numeric_limits<double>::infinity()
                                                    : -std::numeric_limits<double>::infinity());
}

class RowAppender {
  public:
    RowAppender(const AppendKvArgs& args, const AppendParts& parts) : args_(args), parts_(parts) {}

    AppendedRows run() {
        for (const AppendTarget target : {AppendTarget::k, AppendTarget::v})
            for (std::int64_t b = 0; b < args_.shape.batch; ++b)
                for (std::int64_t h = 0; h < args_.shape.nhead_k; ++h)
                    for (std::int64_t i = 0; i < args_.seqlen_knew; ++i) add_key(target, b, h, i);
        if (args_.rope.type == Rope::none || !args_.q.present()) return std::move(out_);
        for (std::int64_t b = 0; b < args_.shape.batch; ++b)
            for (std::int64_t h = 0; h < args_.shape.nhead_q; ++h)
                for (std::int64_t i = 0; i < args_.shape.seqlen_q; ++i) add_query(b, h, i);
        return std::move(out_);
    }

  private:
    const AppendKvArgs& args_;
    const AppendParts& parts_;
    AppendedRows out_;

    void add_key(AppendTarget target, std::int64_t b, std::int64_t h, std::int64_t i) {
        const bool keys = target == AppendTarget::k;
        const std::int64_t cached = parts_.cached(args_, b);
        const CachePlace at = parts_.place(args_, b, cached + i);
        const NewRow from = parts_.source(args_, b, h, i);
        AppendedRow row{target, b, h, i, at.slot, at.row, keys ? args_.shape.hdim_q : args_.shape.hdim_v};
        row.rotated = parts_.channels(args_, target);
        add(row, keys ? args_.k_new : args_.v_new, from, parts_.position(args_, cached, i, false));
    }
    void add_query(std::int64_t b, std::int64_t h, std::int64_t i) {
        AppendedRow row{AppendTarget::q, b, h, i, b, i, parts_.channels(args_, AppendTarget::q)};
        row.rotated = row.cols;
        add(row, args_.q, {b, h, i}, parts_.position(args_, parts_.cached(args_, b), i, true));
    }

    void add(AppendedRow row, const TensorView& from, const NewRow& at, std::int64_t position) {
        row.first = static_cast<std::int64_t>(out_.code.size());
        for (std::int64_t c = 0; c < row.cols; ++c) {
            out_.code.push_back(stored_code(from, at.b, at.h, at.i, c));
            out_.exact.push_back(0.0);
        }
        const auto put = [&](std::int64_t c, const ExactSum& sum) {
            const auto place = static_cast<std::size_t>(row.first + c);
            out_.exact[place] = sum.value;
            out_.code[place] = encode(from.type, rounded_to_odd(sum));
        };
        for (std::int64_t m = 0; m < row.rotated / 2; ++m) {
            const auto [c0, c1] = parts_.pair(args_.rope, m);
            const double x0 = decode(from.type, stored_code(from, at.b, at.h, at.i, c0));
            const double x1 = decode(from.type, stored_code(from, at.b, at.h, at.i, c1));
            const auto [y0, y1] = parts_.rotate(x0, x1, parts_.cosine(args_.rope.cos, position, m),
                                                parts_.sine(args_.rope.sin, position, m));
            put(c0, y0);
            put(c1, y1);
        }
        out_.rows.push_back(row);
    }
};

} // namespace

std::int64_t cached_keys(const AppendKvArgs& args, std::int64_t b) {
    return args.lengths.seqlen_k[b];
}

CachePlace place_of_key(const AppendKvArgs& args, std::int64_t b, std::int64_t position) {
    const KvPlace& place = args.place;
    if (place.page_size > 0)
        return {place.block_table[b * place.block_table_stride + position / place.page_size],
                position % place.page_size};
    return {place.cache_batch_idx == nullptr ? b : place.cache_batch_idx[b], position};
}

std::int64_t rotary_position(const AppendKvArgs& args, std::int64_t cached, std::int64_t i, bool query) {
    return query && !args.has_mask ? cached : cached + i;
}

std::pair<std::int64_t, std::int64_t> rotary_pair(const RopeArgs& rope, std::int64_t m) {
    if (rope.type == Rope::interleaved) return {2 * m, 2 * m + 1};
    return {m, m + rope.rotary_dim / 2};
}

// The products of two 16-bit values are exact in binary64.
std::pair<ExactSum, ExactSum> rotated(double x0, double x1, double cosine, double sine) {
    return {sum_of(x0 * cosine, -(x1 * sine)), sum_of(x1 * cosine, x0 * sine)};
}

double rotary_table(const TensorView& table, std::int64_t position, std::int64_t m) {
    return decode(table.type, stored_code(table, 0, 0, position, m));
}

NewRow new_row(const AppendKvArgs&, std::int64_t b, std::int64_t h, std::int64_t i) {
    return {b, h, i};
}

std::int64_t rotated_channels(const AppendKvArgs& args, AppendTarget target) {
    return target == AppendTarget::v || args.rope.type == Rope::none ? 0 : args.rope.rotary_dim;
}

AppendedRows append_row_by_row(const AppendKvArgs& args, const AppendParts& parts) {
    require_appendable(args);
    return RowAppender(args, parts).run();
}

} // namespace fmha::reference
