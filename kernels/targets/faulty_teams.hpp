#pragma once

#include "dispatcher/types/enums.hpp"
#include "kernels/programs/device.hpp"
#include "kernels/programs/key_loop.hpp"
#include "kernels/programs/matrix_place.hpp"

#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace fmha::targets {

/// Known mistakes that only a warp-specialised program can make: in the tiles that its feed brings, and in the rows that its teams own.
enum class TeamFault : std::uint8_t {
    keys_of_previous_tile,
    values_of_previous_tile,
    values_behind_last_key,
    value_channels_shifted,
    queries_of_first_block,
    rows_of_first_team,
};

/// A context of a warp-specialised program with one of them. Nothing that a user runs includes this.
template <class Context>
class FaultyTeams : public Context {
    using Query = std::remove_cvref_t<decltype(std::declval<Context&>().query_stream())>;
    using Key = std::remove_cvref_t<decltype(std::declval<Context&>().key_stream())>;
    using Value = std::remove_cvref_t<decltype(std::declval<Context&>().value_stream())>;

  public:
    /// `of_context`: the arguments of `Context`.
    template <class... OfContext>
    FMHA_DEVICE explicit FaultyTeams(TeamFault fault, OfContext&&... of_context)
        : Context(std::forward<OfContext>(of_context)...), fault_(fault) {}

    template <class Stream>
    FMHA_DEVICE void fill_stage(const Stream& stream, kernels::Matrix matrix,
                                const kernels::MatrixPlace& place, std::int64_t row0, std::int64_t col0) {
        using enum TeamFault;
        constexpr std::int64_t behind = 8, unit = 8; // rows, and channels of an asynchronous copy
        const std::int64_t keys = this->cfg().algorithm.tile.n0;
        const bool key = std::is_same_v<Stream, Key>, value = std::is_same_v<Stream, Value>;
        if ((key && fault_ == keys_of_previous_tile) || (value && fault_ == values_of_previous_tile))
            row0 = row0 >= keys ? row0 - keys : row0;
        if (value && fault_ == values_behind_last_key) matrix.rows.size = matrix.rows.read += behind;
        if (value && fault_ == value_channels_shifted) col0 += unit;
        if (std::is_same_v<Stream, Query> && fault_ == queries_of_first_block) row0 = 0;
        Context::fill_stage(stream, matrix, place, row0, col0);
    }
    FMHA_DEVICE std::int64_t team_row() const {
        return fault_ == TeamFault::rows_of_first_team ? 0 : Context::team_row();
    }

  private:
    TeamFault fault_;
};

} // namespace fmha::targets

template <>
struct fmha::EnumTable<fmha::targets::TeamFault> {
    using enum targets::TeamFault;
    static constexpr std::array<EnumName<targets::TeamFault>, 6> names{
        {{keys_of_previous_tile, "keys_of_previous_tile"},
         {values_of_previous_tile, "values_of_previous_tile"},
         {values_behind_last_key, "values_behind_last_key"},
         {value_channels_shifted, "value_channels_shifted"},
         {queries_of_first_block, "queries_of_first_block"},
         {rows_of_first_team, "rows_of_first_team"}}};
    static constexpr auto& aliases = no_aliases<targets::TeamFault>;
};
