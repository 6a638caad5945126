#include "harness/run/targets.hpp"

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/run/emulated_target.hpp"
#include "harness/run/hip_target.hpp"
#include "harness/run/host_target.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fmha::harness {
namespace {

struct NamedTarget {
    std::string_view name;
    std::shared_ptr<const Target> (*make)(const TargetOptions&);
    bool on_processor; ///< otherwise more processes would only share the device
};

constexpr std::array<NamedTarget, 3> targets{{{"host", make_host_target, true},
                                              {"emulated", make_emulated_target, true},
                                              {"hip", make_hip_target, false}}};

const NamedTarget& find_target(const std::string& name) {
    for (const auto& target : targets)
        if (target.name == name) return target;
    throw InputError(fmt::format("{} is not a target; there are: {}", name, fmt::join(target_names(), ", ")));
}

} // namespace

std::optional<int> Target::device_of(std::size_t place) const {
    const std::vector<int> all = devices();
    return all.empty() ? std::nullopt : std::optional(all[place % all.size()]);
}

std::vector<std::string> target_names() {
    std::vector<std::string> names;
    for (const auto& target : targets) names.emplace_back(target.name);
    return names;
}

arch::ArchSet archs_of(const TargetOptions& options) {
    return options.archs ? *options.archs : arch::ArchSet::built_in();
}

std::shared_ptr<const Target> make_target(const std::string& name, const TargetOptions& options) {
    return find_target(name).make(options);
}

int default_jobs(const std::string& name, std::size_t cases) {
    const auto most =
        static_cast<std::size_t>(find_target(name).on_processor ? system::hardware_threads() : 1);
    return static_cast<int>(std::clamp<std::size_t>(cases, 1, most));
}

} // namespace fmha::harness
