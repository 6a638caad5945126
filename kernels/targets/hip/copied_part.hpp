#pragma once

#include "kernels/targets/hip/line_view.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// How a copy goes: through registers, in one go or in two halves with products between them, or straight to LDS.
enum class Phase : std::uint8_t { whole, read, write, direct };

/// What a caller knows about units of 16 bytes of a copy's source: that they are aligned, and lines near (LineView::lines_near), or that it
/// has to go element by element.
enum class Units : std::uint8_t { unknown, aligned, elements };

/// The source of one copy: the corner of a tile, the same for all steps through it so that they share one window of
/// `tile_lines` lines, and the place of the step in the tile.
struct Part {
    std::int64_t line0 = 0, element0 = 0;
    std::int32_t tile_lines = 0;
    std::int32_t line = 0, element = 0;
    std::int32_t lines = 0, elements = 0; ///< how many are copied
    Phase phase = Phase::whole;
    bool whole_lines = false; ///< OperandPlan::whole_lines
    Units units = Units::unknown;

    /// `by_halves`: lines are counted by LineView::existing_lines.
    template <bool by_halves = false>
    FMHA_DEVICE TileView window(const LineView& from) const {
        TileView tile = from.gathered
                            ? from.window_of_pages(line0, element0, tile_lines, element, element + elements)
                            : from.window(line0, element0, tile_lines);
        if constexpr (by_halves) tile.lines = from.existing_lines(line0, tile_lines);
        tile.whole_lines = whole_lines;
        tile.whole = tile.whole && tile.lines >= line + lines && tile.elements >= element + elements;
        // Where lines overlap, the end of the last one is not the end of all.
        if (!from.gathered && tile.line_bytes < tile.elements * tile.element_size) tile.granule = 0;
        if (units == Units::elements) tile.granule = 0;
        end_by_phase(tile);
        return tile;
    }
    /// Elements that cannot be read in whole units are not read ahead at all, and without a branch.
    FMHA_DEVICE void end_by_phase(TileView& tile) const {
        if (phase != Phase::read) return;
        if (tile.granule < 16) tile.line_bytes = tile.lines = 0;
        tile.granule = 16;
    }
    /// The same of Units::aligned. Nobody looks where the source of what has been read lies.
    FMHA_DEVICE TileView aligned_window(const LineView& from) const {
        if (phase == Phase::write) return {};
        TileView tile = from.near_window(line0, element0, tile_lines);
        tile.whole_lines = whole_lines;
        return tile;
    }
};

inline constexpr int block_of_scales = 32; ///< elements that share a scale (Q-5)

FMHA_DEVICE constexpr std::int32_t units(ElementType type, std::int32_t elements) {
    return static_cast<std::int32_t>(storage_units(type, elements));
}

} // namespace fmha::hip_target
