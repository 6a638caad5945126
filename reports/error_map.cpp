#include "dispatcher/types/markup.hpp"
#include "reports/pictures.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace fmha::reports {
namespace {

using harness::ErrorMap;

/// Elements of block (row, column); those at the edge have fewer.
std::int64_t elements_of(const ErrorMap& map, std::int64_t row, std::int64_t column) {
    const auto part = [](std::int64_t extent, std::int64_t block, std::int64_t index) {
        return std::min(block, extent - index * block);
    };
    return part(map.rows, map.block_rows, row) * part(map.columns, map.block_columns, column);
}

double share_of(const ErrorMap& map, std::int64_t row, std::int64_t column) {
    const std::int64_t wrong = map.wrong[static_cast<std::size_t>(row * map.blocks_across() + column)];
    return static_cast<double>(wrong) /
           static_cast<double>(std::max<std::int64_t>(1, elements_of(map, row, column)));
}

std::string many(const std::string& axis, std::int64_t count) {
    return axis == "query" ? (count == 1 ? "row" : "rows") : axis + (count == 1 ? "" : "s");
}

/// "o of entry 0, head 1: 5 of 8192 elements wrong (64 rows × 128 channels)".
std::string title_of(const ErrorMap& map) {
    const std::string place = fmt::format("{} of entry {}, head {}: ", map.tensor, map.b, map.h);
    const std::string wrong = fmt::format("{} of {} elements wrong", map.all_wrong(), map.rows * map.columns);
    const std::string rows = fmt::format("{} {}", map.rows, many(map.row_axis, map.rows));
    const std::string columns =
        map.column_axis.empty() ? ""
                                : fmt::format(" × {} {}", map.columns, many(map.column_axis, map.columns));
    return fmt::format("{}{} ({}{}){}", place, wrong, rows, columns,
                       map.complete ? "" : "; there are more than could be looked at");
}

std::string tile_text(const ErrorMap& map) {
    if (map.tile_rows == 0 && map.tile_columns == 0) return {};
    const auto extent = [](std::int64_t tile) {
        return tile > 0 ? fmt::format("{}", tile) : std::string("all");
    };
    return map.column_axis.empty()
               ? fmt::format("tiles of {} {}", extent(map.tile_rows), many(map.row_axis, 2))
               : fmt::format("tiles of {} × {}", extent(map.tile_rows), extent(map.tile_columns));
}

/// A number of each row, such as the LSE, as one line of them from left to right, which takes less room than a column.
ErrorMap laid_down(ErrorMap map) {
    if (!map.column_axis.empty()) return map;
    std::swap(map.rows, map.columns);
    std::swap(map.block_rows, map.block_columns);
    std::swap(map.tile_rows, map.tile_columns);
    return map;
}

/// Positions of tile borders in blocks, without those of the map itself.
std::vector<double> borders(std::int64_t extent, std::int64_t tile, std::int64_t block) {
    std::vector<double> positions;
    for (std::int64_t at = tile; tile > 0 && at < extent; at += tile)
        positions.push_back(static_cast<double>(at) / static_cast<double>(block));
    return positions;
}

/// A picture of at most this many units a side, for any number of blocks.
constexpr double side = 480.0;

double unit_of(std::int64_t blocks) {
    return std::clamp(side / static_cast<double>(std::max<std::int64_t>(1, blocks)), 2.0, 24.0);
}

} // namespace

std::string error_map_svg(const ErrorMap& whole) {
    const ErrorMap map = laid_down(whole);
    const std::int64_t down = map.blocks_down(), across = map.blocks_across();
    const double high = unit_of(down), wide = unit_of(across);
    const double height = high * static_cast<double>(down), width = wide * static_cast<double>(across);
    std::string svg =
        fmt::format("<figure class=\"map\"><figcaption>{}{}{}</figcaption>\n"
                    "<svg viewBox=\"-1 -1 {:.1f} {:.1f}\" role=\"img\" aria-label=\"{}\">\n"
                    "<rect class=\"field\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
                    escaped(title_of(whole)), tile_text(whole).empty() ? "" : "; ", escaped(tile_text(whole)),
                    width + 2.0, height + 2.0, escaped(title_of(whole)), width, height);
    for (std::int64_t row = 0; row < down; ++row)
        for (std::int64_t column = 0; column < across; ++column) {
            const double share = share_of(map, row, column);
            if (share <= 0.0) continue;
            // A single wrong element among many has to be seen too.
            svg += fmt::format(
                "<rect class=\"wrong\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                "opacity=\"{:.2f}\"/>\n",
                wide * static_cast<double>(column), high * static_cast<double>(row), wide, high,
                0.3 + 0.7 * std::min(share, 1.0));
        }
    for (const double y : borders(map.rows, map.tile_rows, map.block_rows))
        svg += fmt::format("<line class=\"tile\" x1=\"0\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                           width, y * high, y * high);
    for (const double x : borders(map.columns, map.tile_columns, map.block_columns))
        svg += fmt::format("<line class=\"tile\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"0\" y2=\"{:.1f}\"/>\n",
                           x * wide, x * wide, height);
    return svg + "</svg></figure>\n";
}

std::string error_map_text(const ErrorMap& whole, std::int64_t most_lines) {
    const ErrorMap map = laid_down(whole);
    constexpr std::int64_t most_across = 64;
    static constexpr std::array<const char*, 5> shades{"·", "░", "▒", "▓", "█"};
    const std::int64_t down = map.blocks_down(), across = map.blocks_across();
    const auto merged = [](std::int64_t blocks, std::int64_t most) { return (blocks + most - 1) / most; };
    const std::int64_t rows = std::max<std::int64_t>(1, merged(down, most_lines)),
                       columns = std::max<std::int64_t>(1, merged(across, most_across));
    std::string text = fmt::format("  map      {}{}{}\n", title_of(whole),
                                   tile_text(whole).empty() ? "" : "; ", tile_text(whole));
    for (std::int64_t row = 0; row < down; row += rows) {
        text += fmt::format("{:>10} ", row * map.block_rows);
        for (std::int64_t column = 0; column < across; column += columns) {
            double share = 0.0;
            for (std::int64_t r = row; r < std::min(row + rows, down); ++r)
                for (std::int64_t c = column; c < std::min(column + columns, across); ++c)
                    share = std::max(share, share_of(map, r, c));
            const auto shade =
                share <= 0.0 ? 0 : 1 + std::min<std::int64_t>(3, static_cast<std::int64_t>(share * 4.0));
            text += shades[static_cast<std::size_t>(shade)];
        }
        text += '\n';
    }
    return text;
}

} // namespace fmha::reports
