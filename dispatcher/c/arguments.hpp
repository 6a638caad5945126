#pragma once

#include "dispatcher/include/fmha/fmha.h"
#include "dispatcher/plan/plan.hpp"
#include "dispatcher/types/kernel_instance.hpp"
#include "dispatcher/types/problem.hpp"

#include <cstdint>

namespace fmha::c {

/// A call of the C interface in our own types.
struct Call {
    Problem problem; ///< validated
    Invocation arguments;
    PackedLengths lengths; ///< of a packed batch of backward whose caller states its offsets on the host
};

/// Whose memory the pointers of a call are: those of the host are looked into where a rule asks for it.
enum class Memory : std::uint8_t { host, device };

/// Reads the arguments of whichever API `args` names. Throws InputError for a null pointer, a wrong size, version or
/// enumerator, a flag that is neither 0 nor 1, a reserved member that is not 0, and ProblemError for a problem or a value that breaks a rule.
Call call_of(const void* args, const ArchName& arch, Memory memory);

/// What can be said about a call's tensors before a kernel is chosen: `check_outputs`, `check_memory`, and InputError for a tensor
/// or array that a launch needs and that is NULL. In host memory ProblemError for `check_contents` too. Tensors of a device are
/// checked by the launch, which can fetch the lengths.
void check_tensors(const Call& call, Memory memory);

/// Throws InputError unless `object` states the size and version of T.
template <class T>
void check_header(const T* object, const char* name);

} // namespace fmha::c
