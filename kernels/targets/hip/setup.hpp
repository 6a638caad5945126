#pragma once

#include "kernels/targets/hip/family_plan.hpp"
#include "kernels/targets/hip/ws_plan.hpp"

#include <type_traits>
#include <utility>

namespace fmha::hip_target {

/// A number of registers: that to which `Path` leads in the plan, from member to member, or the number itself.
template <auto... Path>
constexpr int register_count(const auto& plan) {
    if constexpr ((std::is_integral_v<decltype(Path)> && ...))
        return (Path, ...);
    else
        return (plan.*....*Path);
}

/// The value of a member of a piece of the plan, or its result.
template <class Piece, class Member>
FMHA_DEVICE constexpr auto answer(const Piece& piece, Member member) {
    if constexpr (std::is_member_function_pointer_v<Member>)
        return (piece.*member)();
    else
        return piece.*member;
}

/// The plan of a kernel whose configuration is a constant expression, computed once.
template <class Kernel>
struct Planned {
    static constexpr bool has_teams = Kernel::config().algorithm.pipeline == Pipeline::ws;
    static constexpr auto plan = [] {
        if constexpr (has_teams)
            return ws_plan_of(Kernel::config());
        else
            return FamilyPlan<Kernel::config().signature.family>::of(Kernel::config());
    }();
};

#if defined(__HIP__) || defined(__CUDACC__)
// Constants in device memory, because a reference to a host constant means nothing there. Loads from them fold away.
template <class Kernel>
__attribute__((device)) constexpr KernelConfig config_constant = Kernel::config();
template <class Kernel>
__attribute__((device)) constexpr auto plan_constant = Planned<Kernel>::plan;

/// The configuration of a block as a constant. `Kernel::config()` is a constant expression.
template <class Kernel>
struct Constant {
    FMHA_DEVICE static const KernelConfig& cfg() { return config_constant<Kernel>; }
    FMHA_DEVICE static const auto& plan() { return plan_constant<Kernel>; }
    template <class Machine, class T, auto... Path>
    FMHA_DEVICE static auto registers(const Machine&) {
        constexpr int count = register_count<Path...>(Planned<Kernel>::plan);
        return typename Machine::template Registers<T, count>{};
    }
    template <auto Piece, class Member, class Value>
    FMHA_DEVICE static constexpr bool may(Member member, Value value) {
        return answer(Planned<Kernel>::plan.*Piece, member) == value;
    }
};
#endif

/// The same as values, for a machine that learns them at run time.
template <class Plan>
class RunTimePlan {
  public:
    RunTimePlan(const KernelConfig& config, const Plan& plan) : config_(config), plan_(plan) {}

    const KernelConfig& cfg() const { return config_; }
    const auto& plan() const { return plan_; }
    template <class Machine, class T, auto... Path>
    auto registers(const Machine& machine) const {
        return typename Machine::template Registers<T>(machine.threads(), register_count<Path...>(plan_));
    }
    template <auto Piece, class Member, class Value>
    static constexpr bool may(Member, Value) {
        return true;
    }

  private:
    KernelConfig config_;
    Plan plan_;
};
template <KernelFamily family>
class RunTimeOf : public RunTimePlan<decltype(FamilyPlan<family>::of(KernelConfig()))> {
  public:
    explicit RunTimeOf(const KernelConfig& config)
        : RunTimePlan<decltype(FamilyPlan<family>::of(config))>(config, FamilyPlan<family>::of(config)) {}
};
using RunTime = RunTimeOf<KernelFamily::fwd>;

/// The type of registers of T a thread.
template <class Machine, class Setup, class T, auto... Path>
using RegistersOf = decltype(std::declval<const Setup&>().template registers<Machine, T, Path...>(
    std::declval<const Machine&>()));

} // namespace fmha::hip_target
