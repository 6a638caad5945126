#pragma once

#include "harness/results/result.hpp"
#include "reports/report.hpp"

#include <string>
#include <vector>

/// Pictures of results: sections of the page, and text.
namespace fmha::reports {

/// The map of one output as SVG: blocks with wrong elements, over them the grid of the kernel's tiles.
std::string error_map_svg(const harness::ErrorMap& map);

/// The same in a few lines of block characters, at most `most_lines` and 64 columns of them, for a terminal.
std::string error_map_text(const harness::ErrorMap& map, std::int64_t most_lines = 16);

/// How much of their limits the gates of each family use: how many results lie in each tenth.
std::string margins_section(const std::vector<harness::CaseResult>& results);

/// The results that entries of --waivers are about and that are not red, by tracker. Empty without any.
std::string known_section(const std::vector<harness::CaseResult>& results);

/// The results that took longest.
std::string slowest_section(const std::vector<harness::CaseResult>& results);

/// Which kernels ran: of each family and tile how many of those in the list, with how many results.
std::string coverage_section(const Report& report);

} // namespace fmha::reports
