#pragma once

#include "kernels/targets/faulty_context.hpp"
#include "kernels/targets/hip/entry.hpp"

/// Kernels with one known mistake, for devices. Nothing that a user builds includes this.
namespace fmha::hip_target {

/// A launch of `Kernel` with a fault.
template <class Kernel, targets::Fault fault>
struct FaultyLaunch : Launch<Kernel> {
    __attribute__((device)) static void run(const typename Launch<Kernel>::Args& args, std::int64_t block) {
        using Program = typename Launch<Kernel>::Program;
        using Machine = typename Launch<Kernel>::Machine;
        using Setup = Constant<Kernel>;
        Machine machine;
        targets::FaultyContext<BlockContext<Machine, Setup>, targets::ConstantFault<fault>> context(
            {}, machine, Setup{});
        Program::run(context, args, typename Program::Grid(Setup::cfg(), args)[block]);
    }
};

} // namespace fmha::hip_target

/// FMHA_KERNEL with a fault, by its name: FMHA_FAULTY_KERNEL(symbol, K0, last_key_dropped).
#define FMHA_FAULTY_KERNEL(symbol, Kernel, fault)                                                            \
    FMHA_LAUNCH(symbol, fmha::hip_target::FaultyLaunch<Kernel, fmha::targets::Fault::fault>)
