#include "reference/matrix/append_blocks.hpp"

#include "reference/append_result.hpp"
#include "reference/matrix/decode.hpp"
#include "reference/views.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace fmha::reference {
namespace {

using matrix::Matrix;

/// The values of a 16-bit type in ascending order from 0 to infinity, which stands for the power of two behind the largest.
class Magnitudes {
  public:
    explicit Magnitudes(ElementType type)
        : infinity_(type == ElementType::bf16 ? 0x7F80 : 0x7C00),
          values_(static_cast<std::size_t>(infinity_) + 1) {
        std::vector<std::uint16_t> codes(values_.size());
        for (std::size_t code = 0; code < codes.size(); ++code)
            codes[code] = static_cast<std::uint16_t>(code);
        Matrix line(1, static_cast<Eigen::Index>(codes.size()));
        matrix::decode_block({codes.data(), type, 0, 0, 0, 1}, 0, 0, 0, 0, line);
        std::copy(line.data(), line.data() + line.size(), values_.begin());
        const std::size_t last = values_.size() - 1;
        values_[last] = 2.0 * values_[last - 1] - values_[last - 2];
    }

    /// The code nearest to value + rest, whose sum is exact, ties to the even one (T-5).
    std::uint32_t nearest(double value, double rest) const {
        if (std::isnan(value)) return static_cast<std::uint32_t>(infinity_) + 1U;
        const std::uint32_t sign = std::signbit(value) ? 0x8000U : 0U;
        const double magnitude = std::abs(value), beyond = std::signbit(value) ? -rest : rest;
        if (magnitude >= values_.back()) return sign | static_cast<std::uint32_t>(infinity_);
        const auto above = std::upper_bound(values_.begin(), values_.end(), magnitude);
        const auto low = static_cast<std::uint32_t>(above - values_.begin() - 1);
        const double middle = 0.5 * (*above + *(above - 1));
        const double side = magnitude != middle ? magnitude - middle : beyond;
        return sign | (side > 0.0 || (side == 0.0 && low % 2 == 1) ? low + 1 : low);
    }

  private:
    int infinity_;
    std::vector<double> values_;
};

class BlockAppender {
  public:
    explicit BlockAppender(const AppendKvArgs& args)
        : args_(args), rotates_(args.rope.type != Rope::none),
          magnitudes_(rotates_ ? args.k.type : ElementType::fp16) {}

    AppendedRows run() {
        const Shape& shape = args_.shape;
        const auto each_head = [&](std::int64_t heads, auto&& visit) {
            for (std::int64_t n = 0; n < shape.batch * heads; ++n) visit(n / heads, n % heads);
        };
        each_head(shape.nhead_k, [&](std::int64_t b, std::int64_t h) { add_keys(AppendTarget::k, b, h); });
        each_head(shape.nhead_k, [&](std::int64_t b, std::int64_t h) { add_keys(AppendTarget::v, b, h); });
        if (rotates_ && args_.q.present())
            each_head(shape.nhead_q, [&](std::int64_t b, std::int64_t h) { add_queries(b, h); });
        return std::move(out_);
    }

  private:
    void add_keys(AppendTarget target, std::int64_t b, std::int64_t h) {
        const KvPlace& place = args_.place;
        const bool keys = target == AppendTarget::k;
        const std::int64_t begin = args_.lengths.seqlen_k[b], end = begin + args_.seqlen_knew;
        const std::size_t first_row = out_.rows.size();
        // Without pages the cache of an entry is one page of its own.
        const std::int64_t page_keys = place.page_size > 0 ? place.page_size : end + 1;
        for (std::int64_t position = begin; position < end;) {
            const std::int64_t page_begin = position / page_keys * page_keys;
            const std::int64_t page_end = std::min(end, page_begin + page_keys);
            std::int64_t slot = b;
            if (place.page_size > 0)
                slot = place.block_table[place.block_table_stride * b + page_begin / page_keys];
            else if (place.cache_batch_idx != nullptr)
                slot = place.cache_batch_idx[b];
            for (; position < page_end; ++position)
                out_.rows.push_back({target, b, h, position - begin, slot, position - page_begin,
                                     keys ? args_.shape.hdim_q : args_.shape.hdim_v});
        }
        fill(first_row, keys ? args_.k_new : args_.v_new, keys && rotates_ ? args_.rope.rotary_dim : 0, begin,
             true);
    }
    void add_queries(std::int64_t b, std::int64_t h) {
        const std::size_t first_row = out_.rows.size();
        for (std::int64_t i = 0; i < args_.shape.seqlen_q; ++i)
            out_.rows.push_back({AppendTarget::q, b, h, i, b, i, args_.rope.rotary_dim});
        fill(first_row, args_.q, args_.rope.rotary_dim, args_.lengths.seqlen_k[b], args_.has_mask);
    }

    /// The channels of the rows from `first_row` on, one (entry, head) of `from`, the first `rotated` with the angles of
    /// `position`, or of positions that advance with the rows.
    void fill(std::size_t first_row, const TensorView& from, std::int64_t rotated, std::int64_t position,
              bool advance) {
        const auto count = static_cast<Eigen::Index>(out_.rows.size() - first_row);
        if (count == 0) return;
        const std::int64_t b = out_.rows[first_row].b, h = out_.rows[first_row].h,
                           cols = out_.rows[first_row].cols;
        const std::size_t base = out_.code.size();
        out_.code.resize(base + static_cast<std::size_t>(count * cols));
        out_.exact.resize(out_.code.size(), 0.0);
        for (Eigen::Index r = 0; r < count; ++r) {
            AppendedRow& row = out_.rows[first_row + static_cast<std::size_t>(r)];
            row.rotated = rotated;
            row.first = static_cast<std::int64_t>(base) + r * cols;
            for (std::int64_t c = rotated; c < cols; ++c)
                out_.code[static_cast<std::size_t>(row.first + c)] = stored_code(from, b, h, r, c);
        }
        if (rotated == 0) return;

        const Eigen::Index pairs = rotated / 2;
        Matrix x(count, rotated);
        matrix::decode_block(from, b, h, 0, 0, x);
        const Matrix cosine = angles(args_.rope.cos, position, advance, count, pairs);
        const Matrix sine = angles(args_.rope.sin, position, advance, count, pairs);
        const bool interleaved = args_.rope.type == Rope::interleaved;
        const Eigen::Index step = interleaved ? 2 : 1, partner = interleaved ? 1 : pairs;
        const auto channels = [&](Eigen::Index first) {
            return Matrix(x(Eigen::all, Eigen::seqN(first, pairs, step)));
        };
        const Matrix x0 = channels(0), x1 = channels(partner);
        // Eigen's negation subtracts from 0, which loses the sign of a zero.
        round_into(base, cols, 0, step, x0.cwiseProduct(cosine), -1.0 * x1.cwiseProduct(sine));
        round_into(base, cols, partner, step, x1.cwiseProduct(cosine), x0.cwiseProduct(sine));
    }

    static Matrix angles(const TensorView& table, std::int64_t position, bool advance, Eigen::Index count,
                         Eigen::Index pairs) {
        Matrix out(advance ? count : 1, pairs);
        matrix::decode_block(table, 0, 0, position, 0, out);
        if (advance) return out;
        return out.replicate(count, 1);
    }

    /// Channels first, first + step, … of the rows from table place `base` on become a + b. The loss of the sum is found from
    /// the larger of the two (Dekker).
    void round_into(std::size_t base, std::int64_t cols, Eigen::Index first, Eigen::Index step,
                    const Matrix& a, const Matrix& b) {
        const Matrix sum = a + b;
        const auto swap = a.array().abs() < b.array().abs();
        const Matrix large = swap.select(b, a), small = swap.select(a, b);
        for (Eigen::Index r = 0; r < sum.rows(); ++r)
            for (Eigen::Index m = 0; m < sum.cols(); ++m) {
                const auto at = base + static_cast<std::size_t>(r * cols + first + m * step);
                const double rest = small(r, m) - (sum(r, m) - large(r, m));
                out_.exact[at] = sum(r, m);
                out_.code[at] = magnitudes_.nearest(sum(r, m), std::isfinite(sum(r, m)) ? rest : 0.0);
            }
    }

    const AppendKvArgs& args_;
    bool rotates_;
    Magnitudes magnitudes_;
    AppendedRows out_;
};

} // namespace

AppendedRows append_in_matrix_form(const AppendKvArgs& args) {
    require_appendable(args);
    return BlockAppender(args).run();
}

} // namespace fmha::reference
