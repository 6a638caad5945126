#pragma once

#include "dispatcher/types/enums.hpp"
#include "kernels/programs/fmha_fwd_splitkv_combine.hpp"

#include <array>
#include <cstdint>
#include <utility>

/// Split-KV's combine program with one known mistake, on every target. For tests that show that the gates can fail; nothing
/// that a user runs includes this.
namespace fmha::targets {

enum class CombineFault : std::uint8_t {
    last_split_dropped,      ///< the last split is not combined
    first_split_twice,       ///< the first split enters the output twice
    empty_split_counted,     ///< an LSE of −∞ is taken as 0
    empty_split_read,        ///< o_acc of a split without keys enters with factor 0
    splits_outermost,        ///< split s of head h is looked for at s · nhead_q + h
    head_of_the_neighbour,   ///< every head but the last combines the next one's partial results
    log2e_omitted,           ///< shares are powers of two
    maximum_not_subtracted,  ///< shares are exp(lse_s)
    lse_without_maximum,     ///< LSE is stored without the row maximum
    output_not_divided,      ///< the sum over splits is not divided by the total
    scale_o_omitted,         ///< the output is not scaled
    sink_added_twice,        ///< the sink logit enters the total twice
    sink_forgotten,          ///< the sink logit does not enter the total
    group_offset_off_by_one, ///< later entries of a group start one row early
    hdim_v_tail_lost,        ///< the last channel is taken as 0
    output_one_row_down,     ///< O is stored one row below its place
    output_unwritten,        ///< the last row of every head of O is not stored
};

/// The combine program's block context with one operation or decision replaced by a wrong one. It hides members of
/// `Context` and knows nothing of it but the vocabulary of kernels/programs/README.md.
template <class Context>
class FaultyCombine : public Context {
  public:
    /// `of_context`: the arguments of `Context`.
    template <class... OfContext>
    FMHA_DEVICE explicit FaultyCombine(CombineFault fault, OfContext&&... of_context)
        : Context(std::forward<OfContext>(of_context)...), fault_(fault) {}

    FMHA_DEVICE kernels::Entry queries(const Shape& shape, const LengthArrays& lengths, std::int64_t b) {
        kernels::Entry entry = Context::queries(shape, lengths, b);
        sums_ = 0;
        last_channel_ = shape.hdim_v - 1;
        if (is(CombineFault::group_offset_off_by_one) && entry.start_q > 0) --entry.start_q;
        return entry;
    }
    FMHA_DEVICE std::int64_t splits(const Partials& partials) const {
        const std::int64_t all = Context::splits(partials);
        return is(CombineFault::last_split_dropped) && all > 1 ? all - 1 : all;
    }
    FMHA_DEVICE std::int64_t partial_head(const SplitKvArgs& args, std::int64_t h, std::int64_t s) const {
        const std::int64_t heads = args.shape.nhead_q;
        if (is(CombineFault::splits_outermost)) return s * heads + h;
        const bool next = is(CombineFault::head_of_the_neighbour) && h + 1 < heads;
        return Context::partial_head(args, next ? h + 1 : h, s);
    }
    FMHA_DEVICE float to_base2(float natural) const {
        return is(CombineFault::log2e_omitted) ? natural : Context::to_base2(natural);
    }
    FMHA_DEVICE float below_top(float lse, float top) const {
        return is(CombineFault::maximum_not_subtracted) ? lse : Context::below_top(lse, top);
    }
    FMHA_DEVICE float lse(float maximum, float log_total) const {
        return is(CombineFault::lse_without_maximum) ? log_total : Context::lse(maximum, log_total);
    }
    FMHA_DEVICE float row_scale(float scale_o, float total) const {
        if (is(CombineFault::output_not_divided)) return scale_o;
        return Context::row_scale(is(CombineFault::scale_o_omitted) ? 1.0F : scale_o, total);
    }
    FMHA_DEVICE float sink_mass(float sink) const {
        const float factor = is(CombineFault::sink_added_twice) ? 2.0F
                             : is(CombineFault::sink_forgotten) ? 0.0F
                                                                : 1.0F;
        return factor * Context::sink_mass(sink);
    }

    template <class Rows>
    FMHA_DEVICE void load(Rows& rows, const kernels::Matrix& matrix, std::int64_t row0) {
        Context::load(rows, matrix, row0);
        if (is(CombineFault::empty_split_counted))
            this->map_rows(rows, rows, rows,
                           [](float lse, float) { return lse > kernels::never ? lse : 0.0F; });
    }
    template <class Tile>
    FMHA_DEVICE void load(Tile& tile, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0) {
        Context::load(tile, matrix, row0, col0);
        if (is(CombineFault::hdim_v_tail_lost))
            this->map(tile,
                      [last = last_channel_ - col0](float x, int, int c) { return c == last ? 0.0F : x; });
    }
    template <class Tile, class Rows>
    FMHA_DEVICE void add_scaled(Tile& acc, Tile& tile, Rows& factor) {
        if (is(CombineFault::first_split_twice) && sums_++ == 0) Context::add_scaled(acc, tile, factor);
        if (is(CombineFault::empty_split_read)) {
            this->scale_rows(tile, factor);
            this->fill(factor, 1.0F);
        }
        Context::add_scaled(acc, tile, factor);
    }
    template <class Rows>
    FMHA_DEVICE void store(const kernels::Matrix& matrix, Rows& rows, std::int64_t row0) {
        Context::store(matrix, rows, row0);
    }
    template <class Tile>
    FMHA_DEVICE void store(kernels::Matrix matrix, Tile& tile, std::int64_t row0, std::int64_t col0) {
        if (is(CombineFault::output_unwritten)) matrix.rows.written = matrix.rows.size - 1;
        if (is(CombineFault::output_one_row_down)) matrix.origin += matrix.tensor.row_stride;
        Context::store(matrix, tile, row0, col0);
    }

  private:
    FMHA_DEVICE bool is(CombineFault fault) const { return fault_ == fault; }

    CombineFault fault_;
    int sums_ = 0; ///< added in this block
    std::int64_t last_channel_ = 0;
};

} // namespace fmha::targets

template <>
struct fmha::EnumTable<fmha::targets::CombineFault> {
    using enum targets::CombineFault;
    static constexpr std::array<EnumName<targets::CombineFault>, 17> names{
        {{last_split_dropped, "last_split_dropped"},
         {first_split_twice, "first_split_twice"},
         {empty_split_counted, "empty_split_counted"},
         {empty_split_read, "empty_split_read"},
         {splits_outermost, "splits_outermost"},
         {head_of_the_neighbour, "head_of_the_neighbour"},
         {log2e_omitted, "log2e_omitted"},
         {maximum_not_subtracted, "maximum_not_subtracted"},
         {lse_without_maximum, "lse_without_maximum"},
         {output_not_divided, "output_not_divided"},
         {scale_o_omitted, "scale_o_omitted"},
         {sink_added_twice, "sink_added_twice"},
         {sink_forgotten, "sink_forgotten"},
         {group_offset_off_by_one, "group_offset_off_by_one"},
         {hdim_v_tail_lost, "hdim_v_tail_lost"},
         {output_one_row_down, "output_one_row_down"},
         {output_unwritten, "output_unwritten"}}};
    static constexpr auto& aliases = no_aliases<targets::CombineFault>;
};
