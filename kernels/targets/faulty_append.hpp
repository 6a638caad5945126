#pragma once

#include "dispatcher/types/enums.hpp"
#include "kernels/programs/fmha_fwd_appendkv.hpp"

#include <array>
#include <cstdint>
#include <utility>

/// The append-KV program with one known mistake, on every target. For tests that show that the gates can fail; nothing that a
/// user runs includes this.
namespace fmha::targets {

enum class AppendFault : std::uint8_t {
    length_of_the_first_entry,   ///< every entry appends behind the keys of entry 0
    one_slot_further,            ///< a key goes one row behind its place
    next_page,                   ///< a key goes to the page behind its own in the table
    table_row_of_the_first,      ///< every entry takes the pages of entry 0
    table_row_stride_wrong,      ///< rows of the table are one entry shorter
    slots_not_looked_up,         ///< cache_batch_idx is not read
    keys_of_the_neighbour,       ///< every head appends the keys of the next one
    last_key_dropped,            ///< the last new key is not written
    value_not_written,           ///< V stays as it was
    position_off_by_one,         ///< angles are those of the position before
    positions_from_zero,         ///< angles of the first new key are those of position 0
    queries_advance_always,      ///< positions of queries ignore that there is no mask
    queries_never_advance,       ///< positions of queries ignore that there is a mask
    sine_with_the_wrong_sign,    ///< pairs are turned back
    cosine_and_sine_swapped,     ///< and by the wrong angle
    cosine_of_the_next_pair,     ///< a pair is turned by two angles
    pairs_of_the_other_kind,     ///< channels are paired as the other kind of RoPE does
    last_pair_not_rotated,       ///< the last pair stays as it was
    tail_not_copied,             ///< the cache's channels beyond rotary_dim stay as they were
    tail_from_the_first_channel, ///< and rotated ones are copied over
};

/// The append program's block context with one operation or decision replaced by a wrong one. It hides members of `Context` and
/// knows nothing of it but the vocabulary of kernels/programs/README.md.
template <class Context>
class FaultyAppend : public Context {
  public:
    /// `of_context`: the arguments of `Context`.
    template <class... OfContext>
    FMHA_DEVICE explicit FaultyAppend(AppendFault fault, OfContext&&... of_context)
        : Context(std::forward<OfContext>(of_context)...), fault_(fault) {}

    FMHA_DEVICE std::int64_t cached(const AppendKvArgs& args, std::int64_t b) {
        args_ = &args;
        return Context::cached(args, is(AppendFault::length_of_the_first_entry) ? 0 : b);
    }
    FMHA_DEVICE kernels::Pages cache_pages(const KvPlace& place, std::int64_t b) const {
        KvPlace wrong = place;
        const std::int64_t entry = is(AppendFault::table_row_of_the_first) && place.page_size > 0 ? 0 : b;
        if (is(AppendFault::slots_not_looked_up)) wrong.cache_batch_idx = nullptr;
        if (is(AppendFault::table_row_stride_wrong)) --wrong.block_table_stride;
        kernels::Pages pages = Context::cache_pages(wrong, entry);
        if (is(AppendFault::one_slot_further)) ++pages.first;
        if (is(AppendFault::next_page) && pages.table != nullptr) ++pages.table;
        return pages;
    }
    FMHA_DEVICE std::int64_t rotary_position(std::int64_t cached) const {
        const std::int64_t position = Context::rotary_position(cached);
        if (is(AppendFault::positions_from_zero)) return 0;
        return is(AppendFault::position_off_by_one) && position > 0 ? position - 1 : position;
    }
    FMHA_DEVICE bool queries_advance(const AppendKvArgs& args) const {
        if (is(AppendFault::queries_advance_always)) return true;
        return !is(AppendFault::queries_never_advance) && Context::queries_advance(args);
    }

    FMHA_DEVICE RopeArgs rope(RopeArgs rope) const {
        if (is(AppendFault::pairs_of_the_other_kind))
            rope.type = rope.type == Rope::interleaved ? Rope::half_rotated : Rope::interleaved;
        if (is(AppendFault::last_pair_not_rotated)) rope.rotary_dim -= 2;
        return rope;
    }

    template <class Tile>
    FMHA_DEVICE void load(Tile& tile, kernels::Matrix matrix, std::int64_t row, std::int64_t col) {
        if (is(AppendFault::cosine_of_the_next_pair) && matrix.tensor.data == args_->rope.cos.data)
            ++matrix.origin;
        Context::load(tile, matrix, row, col);
    }
    template <class Tile>
    FMHA_DEVICE void store(const kernels::Matrix& matrix, Tile& tile, std::int64_t row, std::int64_t col) {
        Context::store(shortened(matrix), tile, row, col);
    }
    template <class Tile>
    FMHA_DEVICE void rotate(Tile& first, Tile& second, Tile& cosine, Tile& sine) {
        if (is(AppendFault::cosine_and_sine_swapped)) return Context::rotate(first, second, sine, cosine);
        // (x1, x0) turned by an angle is (x0, x1) turned back.
        if (is(AppendFault::sine_with_the_wrong_sign)) return Context::rotate(second, first, cosine, sine);
        Context::rotate(first, second, cosine, sine);
    }
    FMHA_DEVICE void copy(const kernels::Matrix& to, std::int64_t to_row, kernels::Matrix from,
                          std::int64_t row, std::int64_t col) {
        const bool tail = col > 0;
        const bool values = to.tensor.data == args_->v.data;
        if (is(AppendFault::value_not_written) && values) return;
        if (is(AppendFault::tail_not_copied) && tail) return;
        if (is(AppendFault::keys_of_the_neighbour))
            from.origin +=
                (from.origin / from.tensor.head_stride % args_->shape.nhead_k + 1 < args_->shape.nhead_k
                     ? 1
                     : 1 - args_->shape.nhead_k) *
                from.tensor.head_stride;
        Context::copy(shortened(to), to_row, from, row,
                      is(AppendFault::tail_from_the_first_channel) ? 0 : col);
    }

  private:
    FMHA_DEVICE bool is(AppendFault fault) const { return fault_ == fault; }

    /// Without its last row, if it is the cache's.
    FMHA_DEVICE kernels::Matrix shortened(kernels::Matrix to) const {
        const bool cache = to.tensor.data == args_->k.data || to.tensor.data == args_->v.data;
        if (is(AppendFault::last_key_dropped) && cache) --to.rows.written;
        return to;
    }

    AppendFault fault_;
    const AppendKvArgs* args_ = nullptr;
};

} // namespace fmha::targets

template <>
struct fmha::EnumTable<fmha::targets::AppendFault> {
    using enum targets::AppendFault;
    static constexpr std::array<EnumName<targets::AppendFault>, 20> names{
        {{length_of_the_first_entry, "length_of_the_first_entry"},
         {one_slot_further, "one_slot_further"},
         {next_page, "next_page"},
         {table_row_of_the_first, "table_row_of_the_first"},
         {table_row_stride_wrong, "table_row_stride_wrong"},
         {slots_not_looked_up, "slots_not_looked_up"},
         {keys_of_the_neighbour, "keys_of_the_neighbour"},
         {last_key_dropped, "last_key_dropped"},
         {value_not_written, "value_not_written"},
         {position_off_by_one, "position_off_by_one"},
         {positions_from_zero, "positions_from_zero"},
         {queries_advance_always, "queries_advance_always"},
         {queries_never_advance, "queries_never_advance"},
         {sine_with_the_wrong_sign, "sine_with_the_wrong_sign"},
         {cosine_and_sine_swapped, "cosine_and_sine_swapped"},
         {cosine_of_the_next_pair, "cosine_of_the_next_pair"},
         {pairs_of_the_other_kind, "pairs_of_the_other_kind"},
         {last_pair_not_rotated, "last_pair_not_rotated"},
         {tail_not_copied, "tail_not_copied"},
         {tail_from_the_first_channel, "tail_from_the_first_channel"}}};
    static constexpr auto& aliases = no_aliases<targets::AppendFault>;
};
