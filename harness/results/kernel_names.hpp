#pragma once

#include <string_view>
#include <vector>

namespace fmha::harness {

/// Stands between the names of the kernels of several stages in CaseResult::kernel; no name has it.
inline constexpr std::string_view kernel_joint = " + ";

/// The names in a text of that form, in launch order, as views of it; none in an empty text.
inline std::vector<std::string_view> kernel_names(std::string_view joined) {
    std::vector<std::string_view> names;
    while (!joined.empty()) {
        const auto end = joined.find(kernel_joint);
        names.push_back(joined.substr(0, end));
        joined.remove_prefix(end == std::string_view::npos ? joined.size() : end + kernel_joint.size());
    }
    return names;
}

} // namespace fmha::harness
