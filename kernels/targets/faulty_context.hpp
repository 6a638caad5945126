#pragma once

#include "dispatcher/types/element.hpp"
#include "kernels/programs/formats.hpp"
#include "kernels/programs/key_loop.hpp"
#include "kernels/programs/matrix_place.hpp"
#include "kernels/targets/fault.hpp"

#include <cstdint>
#include <type_traits>
#include <utility>

/// Programs with one known mistake, on every target. Nothing that a user runs includes this.
namespace fmha::targets {

/// The stand-in of a context without such a tile.
struct NoTile {};
template <class Context>
auto key_of(Context& context) {
    if constexpr (requires { context.key(); })
        return context.key();
    else
        return NoTile();
}
/// The stream of keys or values, in contexts of warp-specialised programs.
template <class Context>
FMHA_DEVICE auto key_stream_of(Context& context) {
    if constexpr (requires { context.key_stream(); })
        return context.key_stream();
    else
        return NoTile();
}
template <class Context>
FMHA_DEVICE auto value_stream_of(Context& context) {
    if constexpr (requires { context.value_stream(); })
        return context.value_stream();
    else
        return NoTile();
}
template <class Context>
auto value_of(Context& context) {
    if constexpr (requires { context.value(); })
        return context.value();
    else
        return NoTile();
}

/// A block context with one operation or decision replaced by a wrong one. It hides members of `Context` and knows nothing
/// of it but the vocabulary of kernels/programs/README.md, so that a mistake is the same on all targets.
template <class Context>
class FaultyContext : public Context {
    using Key = decltype(key_of(std::declval<Context&>()));
    using Value = decltype(value_of(std::declval<Context&>()));
    using KeyStream = decltype(key_stream_of(std::declval<Context&>()));
    using ValueStream = decltype(value_stream_of(std::declval<Context&>()));
    using Output = std::remove_cvref_t<decltype(std::declval<Context&>().output())>;
    using Rows = std::remove_cvref_t<decltype(std::declval<Context&>().rows())>;

  public:
    /// `of_context`: the arguments of `Context`.
    template <class... OfContext>
    FMHA_DEVICE explicit FaultyContext(Fault fault, OfContext&&... of_context)
        : Context(std::forward<OfContext>(of_context)...), fault_(fault) {}

    FMHA_DEVICE kernels::Entry entry(const Shape& shape, const LengthArrays& lengths, std::int64_t b) {
        entry_ = Context::entry(shape, lengths, b);
        begin_block(shape);
        return entry_;
    }
    FMHA_DEVICE kernels::Entry cached_entry(const Shape& shape, const LengthArrays& lengths,
                                            const KvPlace& place, std::int64_t b) {
        entry_ = Context::cached_entry(shape, lengths, place, b);
        begin_block(shape);
        return entry_;
    }
    FMHA_DEVICE void visit(const kernels::FwdItem& item, std::int64_t key_tile) {
        item_ = item;
        key0_ = key_tile * this->cfg().algorithm.tile.n0;
        ++tiles_seen_;
        Context::visit(item, key_tile);
    }

    FMHA_DEVICE std::int64_t kv_head(const Shape& shape, std::int64_t h) const {
        const std::int64_t hk = Context::kv_head(shape, h);
        return is(Fault::head_map_plus_one) ? (hk + 1) % shape.nhead_k : hk;
    }
    FMHA_DEVICE kernels::Mask mask(kernels::Mask mask) const {
        if (this->cfg().signature.mask == MaskClass::none) return mask;
        if (is(Fault::mask_right_too_wide)) ++mask.x;
        if (is(Fault::mask_left_too_narrow)) --mask.y;
        return mask;
    }
    FMHA_DEVICE float alibi_slope(const ScoreArgs& score, std::int64_t b, std::int64_t h) const {
        const bool wrong = is(Fault::alibi_neighbour_slope);
        return Context::alibi_slope(score, b, wrong ? (h + 1) % (last_head_ + 1) : h);
    }
    FMHA_DEVICE float scale(const ScoreArgs& score) const {
        return Context::scale(score) * (is(Fault::scale_one_percent) ? 1.01F : 1.0F);
    }
    FMHA_DEVICE float to_base2(float natural) const {
        return is(Fault::log2e_omitted) ? natural : Context::to_base2(natural);
    }
    FMHA_DEVICE float sink_mass(float sink) const {
        return Context::sink_mass(sink) * (is(Fault::sink_added_twice) ? 2.0F : 1.0F);
    }
    FMHA_DEVICE float dropout_rescale(const kernels::Dropout& dropout) const {
        return is(Fault::dropout_scale_omitted) ? 1.0F : Context::dropout_rescale(dropout);
    }
    FMHA_DEVICE float lse(float maximum, float log_total) const {
        return is(Fault::lse_without_maximum) ? log_total : Context::lse(maximum, log_total);
    }

    template <class Step>
    FMHA_DEVICE void prefetch(const Step& step, const kernels::Matrix& matrix, std::int64_t row0,
                              std::int64_t col0) {
        if constexpr (std::is_same_v<Key, Value>) // this context does not prefetch
            Context::prefetch(step, matrix, row0, col0);
        else if constexpr (std::is_same_v<Step, Key>)
            Context::prefetch(step, wrong_keys(matrix), row0, col0);
        else
            Context::prefetch(step, wrong_values(matrix), row0, col0);
    }
    /// The extents of a stage may come from a map, and not from the matrix.
    template <class Stream>
    FMHA_DEVICE void fill_stage(const Stream& stream, const kernels::Matrix& matrix,
                                const kernels::MatrixPlace& place, std::int64_t row0, std::int64_t col0) {
        const bool values = is_stream<ValueStream>(stream, value_stream_of(*this));
        const bool keys = is_stream<KeyStream>(stream, key_stream_of(*this));
        Context::fill_stage(stream, keys ? wrong_keys(matrix) : matrix, place,
                            values && is(Fault::value_rows_swapped) ? row0 + 1 : row0, col0);
    }
    template <class Step>
    FMHA_DEVICE void load_transposed(Step& step, const kernels::Matrix& keys, std::int64_t key0,
                                     std::int64_t col0) {
        Context::load_transposed(step, wrong_keys(keys), key0, col0);
    }
    template <class Loaded, class... At>
    FMHA_DEVICE void load(Loaded& loaded, const kernels::Matrix& matrix, At... at) {
        if constexpr (std::is_same_v<Loaded, Value>)
            Context::load(loaded, wrong_values(matrix), at...);
        else
            Context::load(loaded, matrix, at...);
    }

    template <class Tile>
    FMHA_DEVICE void soft_cap(Tile& scores, float inner, float outer) {
        cap_inner_ = inner;
        cap_outer_ = outer;
        if (!is(Fault::soft_cap_after_mask)) Context::soft_cap(scores, inner, outer);
    }
    template <class Tile>
    FMHA_DEVICE void add_bias(Tile& scores, kernels::Matrix bias, std::int64_t row0, std::int64_t key0) {
        if (is(Fault::bias_row_stride_wrong) && bias.tensor.row_stride > 1) --bias.tensor.row_stride;
        Context::add_bias(scores, bias, row0, key0);
    }
    template <class Tile, class... Options>
    FMHA_DEVICE void raise_to_row_max(Rows& top, Rows& shrink, Tile& scores, Options&&... options) {
        if (is(Fault::soft_cap_after_mask) && this->cfg().signature.has_logits_soft_cap)
            Context::soft_cap(scores, cap_inner_, cap_outer_);
        if (is(Fault::last_key_dropped)) hide_key(scores, entry_.seqlen_k - 1 - key0_);
        if (is(Fault::middle_key_dropped)) hide_key(scores, entry_.seqlen_k / 2 - key0_);
        Context::raise_to_row_max(top, shrink, scores, std::forward<Options>(options)...);
    }
    /// Maxima that lag behind would leave hardly anything to rescale.
    FMHA_DEVICE float slack() const { return is(Fault::rescale_missed) ? 0.0F : Context::slack(); }
    template <class Scaled>
    FMHA_DEVICE void scale_rows(Scaled& scaled, const Rows& factor) {
        // The first scaling of the output belongs to the first key tile, the second to the second; a warp-specialised program
        // has none for the first.
        constexpr bool is_tile = !std::is_same_v<Scaled, Rows>;
        const int of_second_tile = this->cfg().algorithm.pipeline == Pipeline::ws ? 1 : 2;
        if (is_tile && ++rescales_ == of_second_tile && tiles_seen_ == 2 && is(Fault::rescale_missed)) return;
        Context::scale_rows(scaled, factor);
    }
    template <class Bytes>
    FMHA_DEVICE void generate(Bytes& bytes, const kernels::RandomSquares& squares, std::int64_t row0,
                              std::int64_t key0) {
        const bool wrong = is(Fault::dropout_byte_off_by_one);
        Context::generate(bytes, squares, row0 + (wrong ? kernels::RandomSquares::side : 0), key0);
    }
    template <class Tile>
    FMHA_DEVICE auto narrow(Tile& scores, bool carried = false) {
        if (is(Fault::weights_truncated))
            this->map(scores, [unit = carried ? 1.0F : this->weight_unit(), type = types().p](
                                  float x, int, int) { return truncated(x / unit, type) * unit; });
        return Context::narrow(scores, carried);
    }

    template <class Stored, class... At>
    FMHA_DEVICE void store(const kernels::Matrix& target, Stored& stored, At... at) {
        if constexpr (std::is_same_v<Stored, Output>)
            store_output(target, stored, at...);
        else
            Context::store(target, stored, at...);
    }

  private:
    FMHA_DEVICE bool is(Fault fault) const { return fault_ == fault; }
    /// A block of the entry that was looked up.
    FMHA_DEVICE void begin_block(const Shape& shape) {
        last_entry_ = shape.batch - 1;
        last_head_ = shape.nhead_q - 1;
        tiles_seen_ = rescales_ = 0;
        if (is(Fault::group_offset_off_by_one) && entry_.start_k > 0) --entry_.start_k;
    }
    FMHA_DEVICE ElementTypes types() const {
        return element_types(this->cfg().signature.data_type, fp8_flavour(this->cfg().arch));
    }

    /// Whether `stream` is `other`: a type of its own on devices, a value on the host.
    template <class Other, class Stream>
    FMHA_DEVICE static bool is_stream(const Stream& stream, const Other& other) {
        if constexpr (std::is_same_v<KeyStream, ValueStream>)
            return stream == other;
        else
            return std::is_same_v<Stream, Other>;
    }

    /// One channel past the end, which meets a query channel of zero: harmless unless the memory holds NaN.
    FMHA_DEVICE kernels::Matrix wrong_keys(kernels::Matrix keys) const {
        const bool has_padding =
            keys.tensor.col_stride == 1 && keys.tensor.row_stride > keys.cols.size && keys.rows.size > 0;
        if (is(Fault::padding_read) && has_padding) {
            ++keys.cols.size;
            ++keys.cols.read;
        }
        return keys;
    }
    FMHA_DEVICE kernels::Matrix wrong_values(kernels::Matrix values) const {
        if (is(Fault::hdim_v_tail_lost)) values.cols.read = values.cols.size - 1;
        if (is(Fault::value_rows_swapped) && values.rows.read > 1) {
            values.origin += values.tensor.row_stride;
            --values.rows.size;
            --values.rows.read;
        }
        return values;
    }

    template <class Tile>
    FMHA_DEVICE void hide_key(Tile& scores, std::int64_t key) {
        this->map(scores, [key](float s, int, int column) { return column == key ? -__builtin_inff() : s; });
    }

    /// The largest value of `type`, of 16 or 8 bits, that is at most x, for x ≥ 0: codes of non-negative values are in
    /// order.
    FMHA_DEVICE static float truncated(float x, ElementType type) {
        if (element_bits(type) > 16 || element_bits(type) < 8) return x;
        const float nearest = kernels::round_to(x, type);
        return nearest <= x ? nearest
                            : kernels::decode(kernels::encode(nearest, type) - 1U, kernels::format_of(type));
    }

    FMHA_DEVICE void store_output(const kernels::Matrix& target, Output& tile, std::int64_t row0,
                                  std::int64_t col0) {
        kernels::Matrix matrix = target;
        if (is(Fault::output_unwritten) && matrix.rows.written >= matrix.rows.size)
            matrix.rows.written = matrix.rows.size - 1;
        if (is(Fault::hdim_v_tail_lost) && this->cfg().algorithm.pipeline == Pipeline::ws)
            this->map(tile, [last = matrix.cols.size - 1 - col0](float x, int, int column) {
                return column == last ? 0.0F : x;
            });
        Context::store(matrix, tile, row0, col0);
        const Tile& size = this->cfg().algorithm.tile;
        const bool last_block = item_.b == last_entry_ && item_.h == last_head_ &&
                                row0 + size.m0 >= matrix.rows.size && col0 + size.n1 >= matrix.cols.size;
        if (is(Fault::write_past_end) && last_block) write_behind(matrix, tile);
    }

    /// Writes 1 behind the last row of O, where the tile's first element is.
    FMHA_DEVICE void write_behind(const kernels::Matrix& matrix, Output& tile) {
        const ElementType type = types().o;
        const std::int64_t at = matrix.offset(matrix.rows.size - 1, matrix.cols.size);
        this->map(tile, [&](float x, int row, int column) {
            if (row != 0 || column != 0) return x;
            const std::uint32_t one = kernels::encode(1.0F, type);
            if (element_bits(type) == 32)
                static_cast<std::uint32_t*>(matrix.tensor.data)[at] = one;
            else if (element_bits(type) == 16)
                static_cast<std::uint16_t*>(matrix.tensor.data)[at] = static_cast<std::uint16_t>(one);
            else
                static_cast<std::uint8_t*>(matrix.tensor.data)[at] = static_cast<std::uint8_t>(one);
            return x;
        });
    }

    Fault fault_;
    kernels::Entry entry_;
    kernels::FwdItem item_;
    std::int64_t last_entry_ = 0, last_head_ = 0, key0_ = 0;
    float cap_inner_ = 0.0F, cap_outer_ = 0.0F;
    int tiles_seen_ = 0, rescales_ = 0;
};

} // namespace fmha::targets
