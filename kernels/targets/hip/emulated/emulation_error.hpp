#pragma once

#include "dispatcher/types/enums.hpp"
#include "dispatcher/types/error.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace fmha::hip_target {

/// An action of a kernel that the emulated machine does not let pass. On a device most of these are silent.
enum class Hazard : std::uint8_t {
    unwritten_read,    ///< LDS that nothing was written to since the block began
    read_after_write,  ///< another wave wrote it and no barrier lies between
    write_after_read,  ///< another wave read it and no barrier lies between
    write_after_write, ///< another wave wrote it and no barrier lies between
    wave_order,        ///< any of the three between lanes of one wave without a wave barrier
    copy_not_awaited,  ///< the destination of an asynchronous copy, before the copy was waited for
    copy_not_visible,  ///< the same, waited for by the copying thread but without a barrier for this one
    copy_overwritten,  ///< a write to the destination of a copy that is under way
    copy_scattered,    ///< copies of a wave whose units do not follow one another, as AMD's instructions want
    out_of_range,
    misaligned,
    copies_differ,     ///< lanes that must hold the same operand element hold different ones
    unknown_operation, ///< the machine has no such instruction, or its operands cannot be those of one
    stage_not_full,    ///< a product reads LDS that its team does not know to be filled
    stage_in_use,      ///< LDS is filled again before all teams have given it back
    not_fenced,        ///< a product takes registers that may have been written without a fence since
    not_published,     ///< a product reads LDS that threads wrote and did not publish before they arrived
    product_in_flight, ///< registers of a product changed, or LDS that it reads was written, before it was finished
    arrivals_differ, ///< a barrier gets more arrivals in a phase than it was made for, or twice from the same
    bytes_differ,    ///< copies bring a barrier bytes that it does not expect
    turn_given_twice,      ///< a team gets a turn before it has used the last one
    phase_lost,            ///< a barrier is more than one phase further than when it was last waited for
    map_invalid,           ///< a tensor copy by a map that no driver encodes, or by none
    descriptor_misaligned, ///< a product's operand does not begin where a swizzle of 128 bytes does
    team_diverged,         ///< an action of a whole warp group by one thread of it, or the other way round
    registers_exceeded,    ///< warp groups claim more registers than their block has
    deadlock,              ///< no part of a block can go on
};

} // namespace fmha::hip_target

template <>
struct fmha::EnumTable<fmha::hip_target::Hazard> {
    using enum hip_target::Hazard;
    static constexpr std::array<EnumName<hip_target::Hazard>, 27> names{
        {{unwritten_read, "unwritten_read"},
         {read_after_write, "read_after_write"},
         {write_after_read, "write_after_read"},
         {write_after_write, "write_after_write"},
         {wave_order, "wave_order"},
         {copy_not_awaited, "copy_not_awaited"},
         {copy_not_visible, "copy_not_visible"},
         {copy_overwritten, "copy_overwritten"},
         {copy_scattered, "copy_scattered"},
         {out_of_range, "out_of_range"},
         {misaligned, "misaligned"},
         {copies_differ, "copies_differ"},
         {unknown_operation, "unknown_operation"},
         {stage_not_full, "stage_not_full"},
         {stage_in_use, "stage_in_use"},
         {not_fenced, "not_fenced"},
         {not_published, "not_published"},
         {product_in_flight, "product_in_flight"},
         {arrivals_differ, "arrivals_differ"},
         {bytes_differ, "bytes_differ"},
         {turn_given_twice, "turn_given_twice"},
         {phase_lost, "phase_lost"},
         {map_invalid, "map_invalid"},
         {descriptor_misaligned, "descriptor_misaligned"},
         {team_diverged, "team_diverged"},
         {registers_exceeded, "registers_exceeded"},
         {deadlock, "deadlock"}}};
    static constexpr auto& aliases = no_aliases<hip_target::Hazard>;
};

namespace fmha::hip_target {

/// The launch stopped because of a hazard. `what()` is its name and a sentence, which names the operation, the address, the threads, their
/// waves and the epochs.
class EmulationError : public DeviceError {
  public:
    EmulationError(Hazard hazard, const std::string& sentence)
        : DeviceError(std::string(to_string(hazard)) + ": " + sentence), hazard_(hazard),
          sentence_(sentence) {}
    Hazard hazard() const { return hazard_; }
    /// `what()` without the name.
    const std::string& sentence() const { return sentence_; }

  private:
    Hazard hazard_;
    std::string sentence_;
};

} // namespace fmha::hip_target
