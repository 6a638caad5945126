#include "harness/run/targets.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/run/emulated_target.hpp"
#include "harness/run/hip_target.hpp"
#include "harness/run/host_target.hpp"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fmha::harness {
namespace {

struct NamedTarget {
    std::string_view name;
    std::shared_ptr<const Target> (*make)(const TargetOptions&);
};

constexpr std::array<NamedTarget, 3> targets{
    {{"host", make_host_target}, {"emulated", make_emulated_target}, {"hip", make_hip_target}}};

} // namespace

std::vector<std::string> target_names() {
    std::vector<std::string> names;
    for (const auto& target : targets) names.emplace_back(target.name);
    return names;
}

std::shared_ptr<const Target> make_target(const std::string& name, const TargetOptions& options) {
    for (const auto& target : targets)
        if (target.name == name) return target.make(options);
    throw InputError(fmt::format("{} is not a target; there are: {}", name, fmt::join(target_names(), ", ")));
}

} // namespace fmha::harness
