#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "harness/cases/case.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Values of a case file that are relative to something else: "around(64)", and numbers in terms of the tile that runs.
namespace fmha::harness {

/// Tile of the kernel that is planned for a case; nullopt when none is. The case language knows no kernel. The caller that
/// expands a file with relative values gives the tile.
using TilePlanner = std::function<std::optional<Tile>(const Case&)>;

/// The form of a number relative to a tile, for messages.
inline constexpr std::string_view tile_grammar = "sums and products of integers, tile_m0 and tile_n0";

/// True when `text` has a part that is relative to a tile ("b:2*tile_n0-1,0").
bool names_tile(std::string_view text);

/// `text` with a number for each of its parts that is relative to a tile; parts end at colons, commas and brackets.
/// nullopt when one of them is not of the form `tile_grammar`.
std::optional<std::string> at_tile(std::string_view text, const Tile& tile);

/// The texts that `text` stands for: each "around(n)" in it is n − 1, n and n + 1. nullopt when n is neither a positive
/// integer nor relative to a tile, or where there are more than eight.
std::optional<std::vector<std::string>> spread(std::string_view text);

} // namespace fmha::harness
