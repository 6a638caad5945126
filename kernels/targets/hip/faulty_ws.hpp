#pragma once

#include "dispatcher/types/enums.hpp"
#include "kernels/targets/faulty_teams.hpp"
#include "kernels/targets/hip/descriptor.hpp"
#include "kernels/targets/hip/ws_launch.hpp"

#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

/// Known mistakes in how a warp group uses its machine, none of which can hang a device. Nothing that a user runs includes this.
namespace fmha::hip_target {

/// Those of TeamFault, in its order, and more.
enum class WsFault : std::uint8_t {
    keys_of_previous_tile,
    values_of_previous_tile,
    values_behind_last_key,
    value_channels_shifted,
    queries_of_first_block,
    rows_of_first_team,
    descriptor_a_line_on,    ///< products read a line further on
    blocks_lie_near,         ///< blocks of 64 channels are taken to lie 1024 bytes apart
    bound_one_short,         ///< a map that ends with a sequence ends before its last row
    bound_one_long,          ///< … behind the first row that does not exist
    head_of_the_neighbour,   ///< boxes are those of another head
    rows_one_late,           ///< boxes begin a row late
    second_box_is_the_first, ///< the second 64 channels are the first again
    values_given_early,      ///< stages of values are given back as soon as they are taken
    values_not_transposed,   ///< pairs of channels of a key stay together
    keys_transposed_twice,   ///< all waves that transpose take the keys of the first
};

/// A machine that makes some of them.
template <class Machine>
class FaultyTeamMachine : public Machine {
  public:
    /// `of_machine`: the arguments of `Machine`.
    template <class... OfMachine>
    FMHA_DEVICE explicit FaultyTeamMachine(WsFault fault, OfMachine&&... of_machine)
        : Machine(std::forward<OfMachine>(of_machine)...), fault_(fault) {}

    FMHA_DEVICE MatrixDescriptor descriptor(int address, int leading, int stride) const {
        address += fault_ == WsFault::descriptor_a_line_on ? SwizzledTile::line_bytes : 0;
        leading = fault_ == WsFault::blocks_lie_near ? SwizzledTile::alignment : leading;
        return Machine::descriptor(address, leading, stride);
    }
    FMHA_DEVICE void copy_box(int map, BoxCorner corner, int address, int barrier) {
        using enum WsFault;
        if (this->rows_of(map).ends_with_sequence) {
            const int moved = fault_ == bound_one_short ? 1 : fault_ == bound_one_long ? -1 : 0;
            corner.at[1] += moved;
            corner.at[3] -= moved;
        }
        if (fault_ == head_of_the_neighbour) corner.at[2] = corner.at[2] > 0 ? corner.at[2] - 1 : 1;
        if (fault_ == rows_one_late) ++corner.at[1];
        if (fault_ == second_box_is_the_first) corner.at[0] = 0;
        Machine::copy_box(map, corner, address, barrier);
    }

    template <class Words, class Address>
    FMHA_DEVICE void load_matrix(Words& out, int r0, Address address, bool transposed) {
        Machine::load_matrix(out, r0, address, transposed && fault_ != WsFault::values_not_transposed);
    }
    FMHA_DEVICE int transposer(int thread, int feeders) const {
        return fault_ == WsFault::keys_transposed_twice ? 0 : Machine::transposer(thread, feeders);
    }

  private:
    WsFault fault_;
};

/// A context over such a machine that makes the others.
template <class Context>
class FaultyWs : public targets::FaultyTeams<Context> {
    using Base = targets::FaultyTeams<Context>;
    using Value = std::remove_cvref_t<decltype(std::declval<Context&>().value_stream())>;

  public:
    template <class... OfContext>
    FMHA_DEVICE explicit FaultyWs(WsFault fault, OfContext&&... of_context)
        : Base(static_cast<targets::TeamFault>(fault), std::forward<OfContext>(of_context)...),
          early_(fault == WsFault::values_given_early) {}

    template <class Stream>
    FMHA_DEVICE void take(const Stream& stream) {
        Base::take(stream);
        if constexpr (std::is_same_v<Stream, Value>) {
            Base::give(stream, early_);
            if (early_) wait_for_copies();
        }
    }
    template <class Stream>
    FMHA_DEVICE void give(const Stream& stream, bool last = true) {
        Base::give(stream, last && !(std::is_same_v<Stream, Value> && early_));
    }

  private:
    /// On a device a product may well end before the next copy begins. The emulated machine finds the hazard by its clocks.
    FMHA_DEVICE static void wait_for_copies() {
#if __CUDA_ARCH__ >= 900
        for (int n = 0; n < 20; ++n) __nanosleep(1000);
#endif
    }

    bool early_;
};

} // namespace fmha::hip_target

template <>
struct fmha::EnumTable<fmha::hip_target::WsFault> {
    using enum hip_target::WsFault;
    static constexpr std::array<EnumName<hip_target::WsFault>, 16> names{
        {{keys_of_previous_tile, "keys_of_previous_tile"},
         {values_of_previous_tile, "values_of_previous_tile"},
         {values_behind_last_key, "values_behind_last_key"},
         {value_channels_shifted, "value_channels_shifted"},
         {queries_of_first_block, "queries_of_first_block"},
         {rows_of_first_team, "rows_of_first_team"},
         {descriptor_a_line_on, "descriptor_a_line_on"},
         {blocks_lie_near, "blocks_lie_near"},
         {bound_one_short, "bound_one_short"},
         {bound_one_long, "bound_one_long"},
         {head_of_the_neighbour, "head_of_the_neighbour"},
         {rows_one_late, "rows_one_late"},
         {second_box_is_the_first, "second_box_is_the_first"},
         {values_given_early, "values_given_early"},
         {values_not_transposed, "values_not_transposed"},
         {keys_transposed_twice, "keys_transposed_twice"}}};
    static constexpr auto& aliases = no_aliases<hip_target::WsFault>;
};

namespace fmha::hip_target {

static_assert([] {
    for (std::size_t i = 0; i < EnumTable<targets::TeamFault>::names.size(); ++i)
        if (EnumTable<targets::TeamFault>::names[i].name != EnumTable<WsFault>::names[i].name) return false;
    return true;
}());

} // namespace fmha::hip_target
