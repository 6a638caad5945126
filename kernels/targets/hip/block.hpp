#pragma once

#include "kernels/programs/device.hpp"
#include "kernels/targets/hip/setup.hpp"

namespace fmha::hip_target {

/// The block that the parts of a context work for: its machine and its constants. Every part has one of its own, which
/// costs a device nothing and keeps parts free of one another.
template <class MachineType, class Setup>
// NOLINTNEXTLINE(cppcoreguidelines-special-member-functions): it is copied, and its reference cannot be assigned
struct Block {
    using Machine = MachineType;
    /// A number of registers of T a thread; `Path` leads to the number in the plan, from member to member.
    template <class T, auto... Path>
    using Registers = RegistersOf<Machine, Setup, T, Path...>;

    Machine& machine; // NOLINT(*-avoid-const-or-ref-data-members)
    Setup setup;

    FMHA_DEVICE Block(Machine& own_machine, const Setup& own_setup)
        : machine(own_machine), setup(own_setup) {}
    FMHA_DEVICE Block(const Block& other) : machine(other.machine), setup(other.setup) {}

    FMHA_DEVICE decltype(auto) cfg() const { return setup.cfg(); }
    FMHA_DEVICE decltype(auto) plan() const { return setup.plan(); }
    template <class T, auto... Path>
    FMHA_DEVICE auto registers() const {
        return setup.template registers<Machine, T, Path...>(machine);
    }

    /// A piece of the plan. Code in a lambda asks for it there: a captured value would be no constant for the compiler
    /// until the lambda is inlined, which is too late for loops to be unrolled well.
    template <auto Piece>
    FMHA_DEVICE const auto& piece() const {
        return plan().*Piece;
    }

    /// Whether `member` of `Piece`, data or a function, may have this value: always where the plan is known at run time only. A device
    /// compiles the code behind `if constexpr` of it only when it needs it. A plain `if` leaves the same code, but the
    /// compiler inlines and simplifies dead code first, which took most of its time.
    template <auto Piece, class Member, class Value = bool>
    FMHA_DEVICE static constexpr bool may(Member member, Value value = true) {
        return Setup::template may<Piece>(member, value);
    }

    FMHA_DEVICE int lane(int thread) const { return thread % plan().wave_size; }
    FMHA_DEVICE int wave(int thread) const { return thread / plan().wave_size; }
};

} // namespace fmha::hip_target
