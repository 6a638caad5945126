#pragma once

#include "kernels/built/manifest.hpp"

#include <string>
#include <string_view>
#include <vector>

/// The loops over keys of audited kernels, for people.
namespace fmha::generator {

/// Kernels of one architecture, data type, head dimension, pipeline and tile; the numbers are those of their plain iterations.
struct LoopRow {
    std::string what;
    std::size_t kernels = 0;
    double fewest_a_score = 0.0, most_a_score = 0.0; ///< vector instructions a score and lane
    double least_busy = 0.0, most_busy = 0.0;        ///< built::busy_waiting
};
std::vector<LoopRow> loop_rows(const built::Manifest& manifest);

/// File name of the page inside an output folder.
inline constexpr std::string_view loop_page_file = "loops.md";

/// A page in Markdown with a table for every kernel that has a loop; empty when none has.
std::string loop_page(const built::Manifest& manifest);

} // namespace fmha::generator
