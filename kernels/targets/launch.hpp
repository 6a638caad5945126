#pragma once

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/kernel_instance.hpp"
#include "kernels/targets/cannot_launch.hpp"
#include "kernels/targets/null_tensors.hpp"
#include "kernels/targets/with_program.hpp"

#include <string>

namespace fmha::targets {

/// Calls `run(program, args)` with the program of the kernel `config` and the arguments of its family. Throws
/// UnsupportedInvocation when the family has no program or the kernel cannot be launched with the arguments,
/// ArgumentTypeError when they are another family's, InputError when a tensor with elements is null.
/// `elements(shape, lengths)` says which elements there are; `Elements::of` does where the lengths can be read.
template <class AskElements, class Run>
void with_launch(const KernelConfig& config, const Invocation& invocation, AskElements elements, Run&& run) {
    const auto none = with_program(config.signature.family, [&]<class Program>(Program program) {
        const auto* args = std::get_if<typename Program::Args>(&invocation);
        if (args == nullptr)
            throw ArgumentTypeError("kernel " + identifier(config) + " takes the arguments of family " +
                                    std::string(to_string(config.signature.family)));
        if (const auto reason = cannot_launch(config, *args)) throw UnsupportedInvocation(*reason);
        if (const auto reason = null_tensor(*args, [&] { return elements(args->shape, args->lengths); }))
            throw InputError(*reason);
        run(program, *args);
    });
    if (none) throw UnsupportedInvocation(none->reason());
}

} // namespace fmha::targets
