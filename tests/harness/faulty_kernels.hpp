#pragma once

#include "harness/cases/case.hpp"
#include "harness/run/kernel_source.hpp"
#include "kernels/targets/faulty_append.hpp"
#include "kernels/targets/faulty_backward.hpp"
#include "kernels/targets/faulty_cache.hpp"
#include "kernels/targets/faulty_combine.hpp"
#include "kernels/targets/faulty_prefill.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// Host kernels of every family but forward with a known mistake put into them.
namespace fmha::harness::test {

/// Runs a kernel of this configuration on host tensors.
using Launch = std::function<void(const KernelConfig& config, const Invocation& invocation)>;

/// Kernels with the mistake: append-KV, split-KV's combine, batch prefill, the two programs over a cache, the three of backward.
Launch launch_with(targets::AppendFault fault);
Launch launch_with(targets::CombineFault fault);
Launch launch_with(targets::PrefillFault fault);
Launch launch_with(targets::CacheFault fault);
Launch launch_with(targets::BackwardFault fault);

/// A value of which no faulty program knows the mistake, so that it computes as it should.
template <class Fault>
constexpr Fault no_fault = static_cast<Fault>(255);

template <class Fault>
std::vector<Fault> every() {
    std::vector<Fault> faults;
    for (const auto& entry : EnumTable<Fault>::names) faults.push_back(entry.value);
    return faults;
}

/// The `house` kernels of `arch` for the families of `cases`, each run by `launch`.
std::unique_ptr<KernelSource> kernels_that(Launch launch, const std::vector<Case>& cases, std::string arch);

/// The cases of a file below cases/.
std::vector<Case> cases_of(std::string_view file);

/// The first result of `cases` that is not green, with its message; "" when all are green.
std::string first_red(const std::vector<Case>& cases, Launch launch, const std::string& arch = "gfx950");

} // namespace fmha::harness::test
