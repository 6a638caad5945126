#pragma once

#include "harness/store/history.hpp"

#include <span>
#include <string>

namespace fmha::reports {

/// A section for the page of a run: the courses of cases and kernels over the runs of a store, each as a picture and a table. A
/// picture goes from the lowest to the highest finite value; a run without a value has no dot. No script, no style of its own.
std::string section(std::span<const store::Course> courses);

} // namespace fmha::reports
