#pragma once

#include "kernels/programs/fmha_bwd_convert_dq.hpp"
#include "kernels/programs/fmha_bwd_dot_do_o.hpp"
#include "kernels/programs/fmha_bwd_dq_dk_dv.hpp"
#include "kernels/targets/backward_fault.hpp"

#include <cstdint>
#include <utility>

/// The programs of backward with one known mistake, on every target. For tests that show that the gates can fail; nothing
/// that a user runs includes this.
namespace fmha::targets {

/// The part of a fault that all stages have.
template <class Context>
class FaultyStage : public Context {
  public:
    template <class... OfContext>
    FMHA_DEVICE FaultyStage(BackwardFault fault, const BwdArgs& args, OfContext&&... of_context)
        : Context(std::forward<OfContext>(of_context)...), args_(args), fault_(fault) {}

  protected:
    FMHA_DEVICE bool is(BackwardFault fault) const { return fault_ == fault; }
    FMHA_DEVICE const BwdArgs& args() const { return args_; }

    FMHA_DEVICE static kernels::Matrix without_last_row(kernels::Matrix matrix) {
        matrix.rows.written = matrix.rows.size - 1;
        return matrix;
    }

  private:
    const BwdArgs& args_;
    BackwardFault fault_;
};

/// The first stage's block context with one operation or decision replaced by a wrong one. It hides members of `Context`
/// and knows nothing of it but the vocabulary of kernels/programs/README.md.
template <class Context>
class FaultyDotDoO : public FaultyStage<Context> {
    using Base = FaultyStage<Context>;
    using Base::is;
    using enum BackwardFault;

  public:
    using Base::Base;

    FMHA_DEVICE kernels::Entry entry(const Shape& shape, const LengthArrays& lengths, std::int64_t b) const {
        kernels::Entry entry = Context::entry(shape, lengths, b);
        if (is(last_entry_forgotten) && b == shape.batch - 1) entry.seqlen_q = 0;
        return entry;
    }
    FMHA_DEVICE float delta_factor(const DropoutArgs& dropout) const {
        const float factor = Context::delta_factor(dropout);
        return is(delta_factor_omitted) ? 1.0F : is(delta_factor_squared) ? factor * factor : factor;
    }
    FMHA_DEVICE float sink_exponent(float sink, float lse) const {
        return is(sink_exponent_reversed) ? lse - sink : Context::sink_exponent(sink, lse);
    }
    FMHA_DEVICE float to_base2(float natural) const {
        return is(sink_log2e_omitted) ? natural : Context::to_base2(natural);
    }
    FMHA_DEVICE float sink_gradient_sign() const {
        return is(sink_gradient_positive) ? 1.0F : Context::sink_gradient_sign();
    }
    template <class Rows>
    FMHA_DEVICE void load(Rows& rows, const kernels::Matrix& matrix, std::int64_t row0) {
        Context::load(rows, matrix, row0);
    }
    template <class Tile>
    FMHA_DEVICE void load(Tile& tile, kernels::Matrix matrix, std::int64_t row0, std::int64_t col0) {
        if (is(delta_last_channel_lost)) --matrix.cols.size, --matrix.cols.read;
        Context::load(tile, matrix, row0, col0);
    }
    template <class Rows>
    FMHA_DEVICE void store(kernels::Matrix matrix, Rows& rows, std::int64_t row0) {
        if (is(d_one_row_down)) matrix.origin += matrix.tensor.row_stride;
        Context::store(is(d_unwritten) ? this->without_last_row(matrix) : matrix, rows, row0);
    }
};

/// The main stage's.
template <class Context>
class FaultyDqDkDv : public FaultyStage<Context> {
    using Base = FaultyStage<Context>;
    using Base::args;
    using Base::is;
    using enum BackwardFault;

  public:
    using Base::Base;

    FMHA_DEVICE kernels::Entry entry(const Shape& shape, const LengthArrays& lengths, std::int64_t b) const {
        kernels::Entry entry = Context::entry(shape, lengths, b);
        if (is(group_offset_off_by_one) && entry.start_k > 0) --entry.start_k;
        return entry;
    }
    FMHA_DEVICE std::int64_t kv_head(const Shape& shape, std::int64_t h) const {
        const std::int64_t hk = Context::kv_head(shape, h);
        return is(head_map_plus_one) ? (hk + 1) % shape.nhead_k : hk;
    }
    FMHA_DEVICE std::int64_t heads_of_job(std::int64_t heads) const {
        return is(reduced_head_forgotten) && heads > 1 ? heads - 1 : Context::heads_of_job(heads);
    }
    FMHA_DEVICE std::int64_t head_of_job(std::int64_t first, std::int64_t n) const {
        if (is(reduced_head_twice) && n == 1) return first;
        if (is(reduced_heads_strided) && args().reduce_dk_dv)
            return Context::kv_head(args().shape, first) + n * args().shape.nhead_k;
        return Context::head_of_job(first, n);
    }
    FMHA_DEVICE kernels::Mask mask(kernels::Mask mask) const {
        if (this->cfg().signature.mask == MaskClass::none) return mask;
        if (is(mask_right_too_wide)) ++mask.x;
        if (is(mask_left_too_narrow)) --mask.y;
        if (is(mask_edge_transposed)) std::swap(mask.x, mask.y);
        return mask;
    }
    FMHA_DEVICE float alibi_slope(const ScoreArgs& score, std::int64_t b, std::int64_t h) const {
        return Context::alibi_slope(score, b, is(alibi_neighbour_slope) ? (h + 1) % args().shape.nhead_q : h);
    }
    FMHA_DEVICE float scale(const ScoreArgs& score) const {
        return Context::scale(score) * (is(scale_one_percent) ? 1.01F : 1.0F);
    }
    FMHA_DEVICE float to_base2(float natural) const {
        return is(log2e_omitted) ? natural : Context::to_base2(natural);
    }
    FMHA_DEVICE float gradient_scale(const ScoreArgs& score) const {
        const float scale = Context::gradient_scale(score);
        return is(gradient_scale_omitted) ? 1.0F : is(gradient_scale_squared) ? scale * scale : scale;
    }
    FMHA_DEVICE float value_rescale(const kernels::Dropout& dropout) const {
        return is(value_rescale_omitted) ? 1.0F : Context::value_rescale(dropout);
    }
    FMHA_DEVICE float dropout_rescale(const kernels::Dropout& dropout) const {
        return is(score_rescale_omitted) ? 1.0F : Context::dropout_rescale(dropout);
    }
    FMHA_DEVICE std::int64_t target_split(std::int64_t split) const {
        return is(split_forgotten) ? 0 : Context::target_split(split);
    }

    template <class Rows>
    FMHA_DEVICE void load(Rows& rows, const kernels::Matrix& matrix, std::int64_t row0) {
        Context::load(rows, matrix, row0);
    }
    template <class Loaded>
    FMHA_DEVICE void load(Loaded& loaded, kernels::Matrix matrix, std::int64_t row0, std::int64_t col0) {
        const void* from = matrix.tensor.data;
        if (is(value_last_channel_lost) && from == args().v.data) --matrix.cols.size, --matrix.cols.read;
        if (from == args().randval.data) matrix = stored_bytes(matrix);
        if (from == args().k.data) {
            drops_ = products_ = 0;
            key_ = matrix;
            key0_ = row0;
        }
        Context::load(loaded, matrix, row0, col0);
    }
    template <class Bytes>
    FMHA_DEVICE void generate(Bytes& bytes, const kernels::RandomSquares& squares, std::int64_t row0,
                              std::int64_t key0) {
        if (is(bytes_transposed)) std::swap(row0, key0);
        if (is(bytes_of_the_next_square)) row0 += kernels::RandomSquares::side;
        Context::generate(bytes, squares, row0, key0);
    }
    template <class Tile, class Bytes>
    FMHA_DEVICE void drop(Tile& tile, Bytes& bytes, std::uint8_t threshold) {
        const bool of_weights = drops_++ % 2 == 1;
        if (is(of_weights ? weights_not_dropped : dp_not_dropped)) return;
        Context::drop(tile, bytes, threshold);
    }
    template <class Tile>
    FMHA_DEVICE void add_bias(Tile& scores, const kernels::Matrix& bias, std::int64_t row0,
                              std::int64_t key0) {
        Context::add_bias(scores, bias_of(bias), row0, key0);
    }
    FMHA_DEVICE void look_at_bias(const kernels::Matrix& bias, const kernels::Matrix& dbias, bool ahead) {
        Context::look_at_bias(bias_of(bias), dbias_of(dbias), ahead);
    }
    FMHA_DEVICE void prefetch_bias(const kernels::Matrix& bias, std::int64_t row0, std::int64_t key0) {
        Context::prefetch_bias(bias_of(bias), row0, key0);
    }
    FMHA_DEVICE void prefetch_bytes(const kernels::Matrix& bytes, std::int64_t row0, std::int64_t key0) {
        Context::prefetch_bytes(stored_bytes(bytes), row0, key0);
    }
    template <class Tile, class Rows>
    FMHA_DEVICE void exp2_minus(Tile& scores, Rows& top) {
        this->map_rows(top, top, top, [this](float x, float) {
            if (x > 1e30F) return x; // rows without a normaliser
            return is(lse_in_base_two) ? x * kernels::ln2 : is(normaliser_omitted) ? 0.0F : x;
        });
        Context::exp2_minus(scores, top);
    }
    template <class Tile, class Weights, class Rows>
    FMHA_DEVICE void to_score_gradients(Tile& ds, Weights& weights, Rows& d) {
        computed_ = true;
        const float sign = is(delta_omitted) ? 0.0F : is(delta_added) ? -1.0F : 1.0F;
        this->map_rows(d, d, d, [sign](float x, float) { return sign * x; });
        if (!is(weights_omitted)) return Context::to_score_gradients(ds, weights, d);
        this->fill(weights, 1.0F); // dV is wrong then too
        Context::to_score_gradients(ds, weights, d);
    }
    template <class Acc, class Left, class Right>
    FMHA_DEVICE void product_atb(Acc& acc, Left& a, Right& b) {
        if (is(query_tile_skipped) && products_++ == 0) return;
        Context::product_atb(acc, a, b);
    }
    template <class Acc, class Left, class Right>
    FMHA_DEVICE void product_ab(Acc& acc, Left& a, Right& b) {
        if (is(key_tile_dropped) && key0_ > 0) return;
        if (is(key_tile_of_dq_first)) {
            kernels::Matrix below = key_;
            below.origin += below.tensor.row_stride;
            --below.rows.size, --below.rows.read;
            Context::load(b, below, 0, 0);
        }
        Context::product_ab(acc, a, b);
    }
    template <class Tile>
    FMHA_DEVICE void accumulate(const kernels::Matrix& matrix, Tile& tile, std::int64_t row0,
                                std::int64_t col0, bool atomic) {
        if (is(dq_overwritten)) return Context::store(matrix, tile, row0, col0);
        Context::accumulate(matrix, tile, row0, col0, atomic);
        if (is(dq_added_twice)) Context::accumulate(matrix, tile, row0, col0, atomic);
    }
    template <class Tile>
    FMHA_DEVICE void store(kernels::Matrix matrix, Tile& tile, std::int64_t row0, std::int64_t col0) {
        const void* to = matrix.tensor.data;
        if (to == args().dbias.data) {
            const bool computed = std::exchange(computed_, false);
            if (is(dbias_only_where_seen) && !computed) return;
            if (is(dbias_rescale_omitted)) scale_tile(tile, 1.0F - args().dropout.p_drop);
            matrix = dbias_of(matrix);
        }
        const bool of_a_split =
            to != args().dq.data && to != args().dk.data && to != args().dv.data && to != args().dbias.data;
        if (is(split_uninitialised) && of_a_split && key0_ > 0) return;
        if (to == args().dk.data && is(dk_last_row_unwritten)) matrix = this->without_last_row(matrix);
        if (to == args().dv.data && is(dv_one_row_down)) matrix.origin += matrix.tensor.row_stride;
        Context::store(matrix, tile, row0, col0);
        if (to == args().dbias.data && is(dbias_rescale_omitted))
            scale_tile(tile, 1.0F / (1.0F - args().dropout.p_drop));
    }

  private:
    template <class Tile>
    FMHA_DEVICE void scale_tile(Tile& tile, float by) {
        this->map(tile, [by](float x, int, int) { return x * by; });
    }
    FMHA_DEVICE kernels::Matrix bias_of(kernels::Matrix bias) const {
        if (is(bias_row_stride_wrong) && bias.tensor.row_stride > 1) --bias.tensor.row_stride;
        return bias;
    }
    FMHA_DEVICE kernels::Matrix dbias_of(kernels::Matrix dbias) const {
        if (!is(dbias_one_key_right)) return dbias;
        dbias.origin += 1;
        --dbias.cols.size, --dbias.cols.written;
        return dbias;
    }
    FMHA_DEVICE kernels::Matrix stored_bytes(kernels::Matrix bytes) const {
        if (!is(stored_bytes_one_row_down)) return bytes;
        bytes.origin += bytes.tensor.row_stride;
        --bytes.rows.size;
        return bytes;
    }

    kernels::Matrix key_;
    std::int64_t key0_ = 0; ///< first key of the tile that is differentiated
    int drops_ = 0, products_ = 0;
    bool computed_ = false;
};

/// The last stage's.
template <class Context>
class FaultyConvertDq : public FaultyStage<Context> {
    using Base = FaultyStage<Context>;
    using Base::is;
    using enum BackwardFault;

  public:
    using Base::Base;

    FMHA_DEVICE std::int64_t dq_splits(std::int64_t splits) const {
        return is(last_split_dropped) && splits > 0 ? splits - 1 : splits;
    }
    FMHA_DEVICE std::int64_t dq_split(std::int64_t n) const {
        return is(first_split_twice) && n == 1 ? 0 : n;
    }
    template <class Tile>
    FMHA_DEVICE void store(const kernels::Matrix& matrix, Tile& tile, std::int64_t row0, std::int64_t col0) {
        Context::store(is(dq_unwritten) ? this->without_last_row(matrix) : matrix, tile, row0, col0);
    }
};

} // namespace fmha::targets
