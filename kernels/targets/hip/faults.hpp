#pragma once

#include "kernels/programs/formats.hpp"
#include "kernels/targets/fault.hpp"
#include "kernels/targets/hip/block_context.hpp"

#if defined(__HIP__) || defined(__CUDACC__)
#include "kernels/targets/hip/entry.hpp"
#endif

#include <cstdint>

/// The forward program with one known mistake on fragments, for devices and for the emulated machine. Nothing that a
/// user runs includes this.
namespace fmha::hip_target {

/// A fault that a kernel is built with.
template <targets::Fault chosen>
struct ConstantFault {
    FMHA_DEVICE static constexpr targets::Fault fault() { return chosen; }
};
/// A fault that is chosen when the kernel runs; on the host.
struct RunTimeFault {
    targets::Fault chosen;
    targets::Fault fault() const { return chosen; }
};

/// A block context with one operation or decision replaced by a wrong one; it hides members of `Context` and knows
/// nothing else. Two mistakes differ from the host's, whose tiles are matrices: `value_rows_swapped` gives every key the
/// value of the next one, and `dropout_byte_off_by_one` uses the random bytes of the next square of rows.
template <class Context, class Chosen>
class FaultyContext : public Context {
    using Fault = targets::Fault;

  public:
    template <class Machine, class Setup>
    FMHA_DEVICE FaultyContext(Machine& machine, const Setup& setup, const Chosen& chosen)
        : Context(machine, setup), chosen_(chosen) {}

    FMHA_DEVICE kernels::Entry entry(const Shape& shape, const LengthArrays& lengths, std::int64_t b) {
        entry_ = Context::entry(shape, lengths, b);
        last_entry_ = shape.batch - 1;
        last_head_ = shape.nhead_q - 1;
        if (is(Fault::group_offset_off_by_one) && entry_.start_k > 0) --entry_.start_k;
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
        return Context::alibi_slope(score, b,
                                    is(Fault::alibi_neighbour_slope) ? (h + 1) % (last_head_ + 1) : h);
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

    FMHA_DEVICE void prefetch(const KeyStep& step, const kernels::Matrix& keys, std::int64_t key0,
                              std::int64_t col0) {
        Context::prefetch(step, wrong_keys(keys), key0, col0);
    }
    FMHA_DEVICE void prefetch(const ValueStep& step, const kernels::Matrix& values, std::int64_t key0,
                              std::int64_t channel0) {
        Context::prefetch(step, wrong_values(values), key0, channel0);
    }
    FMHA_DEVICE void load_transposed(KeyStep& step, const kernels::Matrix& keys, std::int64_t key0,
                                     std::int64_t col0) {
        Context::load_transposed(step, wrong_keys(keys), key0, col0);
    }
    using Context::load;
    FMHA_DEVICE void load(ValueStep& step, const kernels::Matrix& values, std::int64_t key0,
                          std::int64_t channel0) {
        Context::load(step, wrong_values(values), key0, channel0);
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
    template <class Rows, class Tile>
    FMHA_DEVICE void raise_to_row_max(Rows& top, Rows& shrink, Tile& scores) {
        if (is(Fault::soft_cap_after_mask) && this->cfg().signature.has_logits_soft_cap)
            Context::soft_cap(scores, cap_inner_, cap_outer_);
        if (is(Fault::last_key_dropped)) hide_key(scores, entry_.seqlen_k - 1 - key0_);
        if (is(Fault::middle_key_dropped)) hide_key(scores, entry_.seqlen_k / 2 - key0_);
        Context::raise_to_row_max(top, shrink, scores);
    }
    template <class Scaled, class Rows>
    FMHA_DEVICE void scale_rows(Scaled& scaled, const Rows& factor) {
        // The first scaling of the output belongs to the first key tile, the second to the second.
        const bool is_tile = requires {
            scaled.product(this->plan());
        };
        if (is_tile && ++rescales_ == 2 && tiles_seen_ == 2 && is(Fault::rescale_missed)) return;
        Context::scale_rows(scaled, factor);
    }
    FMHA_DEVICE void generate(const RandomTile& bytes, const kernels::RandomSquares& squares,
                              std::int64_t row0, std::int64_t key0) {
        Context::generate(bytes, squares,
                          row0 + (is(Fault::dropout_byte_off_by_one) ? kernels::RandomSquares::side : 0),
                          key0);
    }
    template <class Tile>
    FMHA_DEVICE auto narrow(Tile& scores) {
        if (is(Fault::weights_truncated))
            this->map(scores, [unit = this->weight_unit(), type = this->plan().type_p](float x, int, int) {
                return truncated(x / unit, type) * unit;
            });
        return Context::narrow(scores);
    }

    using Context::store;
    template <class Registers>
    FMHA_DEVICE void store(const kernels::Matrix& target, OutputTile<Registers>& tile, std::int64_t row0,
                           std::int64_t col0) {
        kernels::Matrix matrix = target;
        if (is(Fault::output_unwritten) && matrix.rows.written >= matrix.rows.size)
            matrix.rows.written = matrix.rows.size - 1;
        Context::store(matrix, tile, row0, col0);
        const Tile& size = this->cfg().algorithm.tile;
        const bool last_block = item_.b == last_entry_ && item_.h == last_head_ &&
                                row0 + size.m0 >= matrix.rows.size && col0 + size.n1 >= matrix.cols.size;
        if (is(Fault::write_past_end) && last_block) write_behind(matrix, tile);
    }

  private:
    FMHA_DEVICE bool is(Fault fault) const { return chosen_.fault() == fault; }

    /// One channel past the end, which meets a query channel of zero: harmless unless the memory holds NaN.
    FMHA_DEVICE kernels::Matrix wrong_keys(kernels::Matrix keys) const {
        const bool has_padding =
            keys.tensor.col_stride == 1 && keys.tensor.row_stride > keys.cols.size && keys.rows.size > 0;
        if (is(Fault::padding_read) && has_padding) ++keys.cols.read;
        return keys;
    }
    FMHA_DEVICE kernels::Matrix wrong_values(kernels::Matrix values) const {
        if (is(Fault::hdim_v_tail_lost)) values.cols.read = values.cols.size - 1;
        if (is(Fault::value_rows_swapped) && values.rows.read > 1) {
            values.origin += values.tensor.row_stride;
            --values.rows.read;
        }
        return values;
    }

    template <class Tile>
    FMHA_DEVICE void hide_key(Tile& scores, std::int64_t key) {
        this->map(scores, [key](float s, int, int column) { return column == key ? -__builtin_inff() : s; });
    }

    /// The largest value of `type` that is at most x, for x ≥ 0: codes of non-negative values are in order.
    FMHA_DEVICE static float truncated(float x, ElementType type) {
        if (element_bits(type) > 16) return x;
        const float nearest = kernels::round_to(x, type);
        return nearest <= x ? nearest
                            : kernels::decode(kernels::encode(nearest, type) - 1U, kernels::format_of(type));
    }

    /// Writes 1 behind the last row of O, by the thread that owns the tile's first element.
    template <class Output>
    FMHA_DEVICE void write_behind(const kernels::Matrix& matrix, Output& tile) {
        const ElementType type = this->plan().type_o;
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

    Chosen chosen_;
    kernels::Entry entry_;
    kernels::FwdItem item_;
    std::int64_t last_entry_ = 0, last_head_ = 0, key0_ = 0;
    float cap_inner_ = 0.0F, cap_outer_ = 0.0F;
    int tiles_seen_ = 0, rescales_ = 0;
};

#if defined(__HIP__) || defined(__CUDACC__)
/// A launch of `Kernel` with a fault.
template <class Kernel, targets::Fault fault>
struct FaultyLaunch : Launch<Kernel> {
    __attribute__((device)) static void run(const typename Launch<Kernel>::Args& args, std::int64_t block) {
        using Program = typename Launch<Kernel>::Program;
        using Machine = typename Launch<Kernel>::Machine;
        using Setup = Constant<Kernel>;
        Machine machine;
        FaultyContext<BlockContext<Machine, Setup>, ConstantFault<fault>> context(machine, Setup{}, {});
        Program::run(context, args, typename Program::Grid(Setup::cfg(), args)[block]);
    }
};
#endif

} // namespace fmha::hip_target

/// FMHA_KERNEL with a fault, by its name: FMHA_FAULTY_KERNEL(symbol, K0, last_key_dropped).
#define FMHA_FAULTY_KERNEL(symbol, Kernel, fault)                                                            \
    FMHA_LAUNCH(symbol, fmha::hip_target::FaultyLaunch<Kernel, fmha::targets::Fault::fault>)
