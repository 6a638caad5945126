// Masks, ranges of tiles and ALiBi, counted out key by key from M-1, M-7, K-1 and A-2.

#include "kernels/programs/alibi.hpp"
#include "kernels/programs/fmha_bwd_dq_dk_dv.hpp"
#include "kernels/programs/mask.hpp"
#include "tests/mutation/checks.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace fmha::test {
namespace {

struct Window {
    MaskArgs args;
    MaskClass kernel = MaskClass::none;
    std::int64_t rows = 0, keys = 0;

    bool visible(std::int64_t i, std::int64_t j) const {
        if (j < 0 || j >= keys) return false;
        if (args.type == MaskType::no_mask) return true;
        if (args.type == MaskType::window_generic) return i - args.left <= j && j <= i + args.right;
        const std::int64_t a = args.type == MaskType::bottom_right ? keys - rows : 0;
        const bool right = args.right < 0 || j <= i + a + args.right;
        const bool left = args.left < 0 || j >= i + a - args.left;
        // K-1: an effective left bound hides some key of the last row.
        const bool bounded = args.left >= 0 && 1 + args.left - a < rows;
        return right && (left || (bounded && j < args.sink && i < keys));
    }
    kernels::Mask mask() const { return kernels::Mask::of(args, kernel, args.sink > 0, rows, keys); }
};

const std::vector<Window>& windows() {
    static const std::vector<Window> all = [] {
        std::vector<Window> made;
        for (const std::int64_t rows : {1, 2, 5, 9})
            for (const std::int64_t keys : {0, 1, 4, 7, 12}) {
                made.push_back({{}, MaskClass::none, rows, keys});
                made.push_back({{}, MaskClass::generic, rows, keys});
                for (const std::int64_t left : {-1, 0, 1, 3, 8})
                    for (const std::int64_t right : {-1, 0, 1, 2, 6})
                        for (const MaskType type : {MaskType::top_left, MaskType::bottom_right}) {
                            made.push_back({{type, left, right, 0}, MaskClass::generic, rows, keys});
                            if (left < 0)
                                made.push_back({{type, left, right, 0}, MaskClass::causal, rows, keys});
                            for (const std::int64_t sink : {1, 2, 4})
                                made.push_back({{type, left, right, sink}, MaskClass::generic, rows, keys});
                        }
                // Literal coordinates may begin before row i and end behind it, or lie on one side of it.
                for (const auto& [left, right] :
                     {std::pair{-1, 1}, {-1, 3}, {0, 1}, {2, 3}, {4, -1}, {5, -2}, {-2, 3}, {-3, 5}})
                    made.push_back(
                        {{MaskType::window_generic, left, right, 0}, MaskClass::generic, rows, keys});
            }
        return made;
    }();
    return all;
}

constexpr std::int64_t block_rows = 4;

/// The same tiles, which are told apart from their own numbers or counted.
bool visits_of(const Window& window, const kernels::KeyTiles& tiles, const std::vector<std::int64_t>& visited,
               std::int64_t row0, std::int64_t rows, std::int64_t n0, bool counted) {
    const kernels::Mask mask = window.mask();
    const auto whole = tiles.seen_whole(mask, row0, rows, window.keys, n0, window.kernel);
    kernels::TileVisits visits(tiles, counted, n0, window.keys, whole);
    if (visited.empty() && counted && visits.present().rows != 0) return false;
    for (std::size_t n = 0; n < visited.size(); ++n, visits.advance()) {
        const std::int64_t key0 = visited[n] * n0;
        const auto now = visits.present(), next = visits.next();
        const bool is_last = n + 1 == visited.size();
        if (!visits.any() || visits.number() != visited[n] || now.number != visited[n] || !now.exists)
            return false;
        if (visits.has_next() == is_last || next.exists == is_last || now.counted != counted) return false;
        if (!is_last && next.number != visited[n + 1]) return false;
        if (counted && now.rows != std::min(n0, window.keys - key0)) return false;
        if (counted && !is_last && next.rows != std::min(n0, window.keys - next.number * n0)) return false;
        bool asked = false;
        const bool told = visits.is_whole([&] {
            asked = true;
            return mask.shows_all(row0, rows, key0, n0, window.keys, window.kernel);
        });
        if (asked == counted || told != mask.shows_all(row0, rows, key0, n0, window.keys, window.kernel))
            return false;
    }
    return !visits.any();
}

bool tiles_of(const Window& window, std::int64_t row0, std::int64_t rows, std::int64_t n0) {
    const auto tiles = kernels::KeyTiles::of(window.mask(), row0, rows, window.keys, n0);
    std::vector<std::int64_t> visited, needed;
    for (std::int64_t t = tiles.first(); t < tiles.end && visited.size() < 100; t = tiles.next(t))
        visited.push_back(t);
    for (std::int64_t t = 0; t * n0 < window.keys; ++t) {
        bool seen = false;
        for (std::int64_t i = row0; i < row0 + rows; ++i)
            for (std::int64_t j = t * n0; j < (t + 1) * n0; ++j) seen = seen || window.visible(i, j);
        if (seen) needed.push_back(t);
    }
    if (tiles.count() != static_cast<int>(visited.size())) return false;
    for (int n = 0; n < tiles.count(); ++n)
        if (tiles.at(n) != visited[static_cast<std::size_t>(n)]) return false;
    for (const bool counted : {false, true})
        if (!visits_of(window, tiles, visited, row0, rows, n0, counted)) return false;
    // Sink tokens are asked for with the first row of a block: behind row Sk they may cost a tile in vain.
    if (window.args.sink == 0 || row0 + rows <= window.keys) return visited == needed;
    return std::ranges::is_sorted(visited) && std::ranges::includes(visited, needed);
}

/// Of the tiles of a block, those that some of its rows have to do with, and those that need no mask for them.
bool tiles_of_team(const Window& window, std::int64_t block, std::int64_t row0, std::int64_t rows,
                   std::int64_t n0) {
    const kernels::Mask mask = window.mask();
    const auto tiles =
        kernels::KeyTiles::of(mask, block, std::min(block_rows, window.rows - block), window.keys, n0);
    const auto whole = tiles.seen_whole(mask, row0, rows, window.keys, n0, window.kernel);
    Window no_sinks = window;
    no_sinks.args.sink = 0;
    int own = 0, hidden = 0;
    for (int n = 0; n < tiles.count(); ++n) {
        const std::int64_t key0 = tiles.at(n) * n0;
        // M-3: the last row sees no key from here on. Tiles of the sink prefix are read all the same.
        if (n < tiles.prefix_end || key0 < row0 + rows - 1 + mask.x) own = n + 1;
        // The first row sees no key before this one. Where there are sink tokens, tiles are read from the first on.
        if (key0 + n0 <= row0 - mask.y + 1 && mask.sink == 0) hidden = n + 1;
        bool all = n >= tiles.prefix_end;
        for (std::int64_t i = row0; i < row0 + rows; ++i)
            for (std::int64_t j = key0; j < key0 + n0; ++j) all = all && no_sinks.visible(i, j);
        if (whole.has(n) != all) return false;
    }
    return tiles.count_until(mask, row0 + rows - 1, n0) == own &&
           std::min(tiles.count_before(mask, row0, n0), tiles.count()) == hidden;
}

} // namespace

bool mask_is_right() {
    for (const Window& window : windows()) {
        const kernels::Mask mask = window.mask();
        for (std::int64_t row0 = 0; row0 < window.rows; row0 += 2)
            for (std::int64_t key0 = 0; key0 < window.keys; key0 += 3) {
                const auto seen = kernels::TileMask::of(mask, row0, key0, window.keys);
                for (std::int32_t r = 0; row0 + r < window.rows; ++r)
                    for (std::int32_t c = 0; c < 14; ++c)
                        if (seen.sees(r, c, window.kernel) != window.visible(row0 + r, key0 + c))
                            return false;
                for (std::int32_t rows = 1; row0 + rows <= window.rows; ++rows)
                    for (std::int32_t cols = 1; cols < 9; ++cols) {
                        bool all = true, without_sinks = true;
                        Window no_sinks = window;
                        no_sinks.args.sink = 0;
                        for (std::int32_t r = 0; r < rows; ++r)
                            for (std::int32_t c = 0; c < cols; ++c) {
                                all = all && window.visible(row0 + r, key0 + c);
                                without_sinks = without_sinks && no_sinks.visible(row0 + r, key0 + c);
                            }
                        // A tile that only sink tokens make whole may be asked key by key.
                        const bool told = mask.shows_all(row0, rows, key0, cols, window.keys, window.kernel);
                        if (told ? !all : without_sinks) return false;
                    }
            }
    }
    constexpr std::int64_t far = std::int64_t{1} << 29;
    for (const std::int64_t beyond : {0, 1, 2, 1000}) {
        if (kernels::tile_relative(far + beyond) != far || kernels::tile_relative(-far - beyond) != -far)
            return false;
        if (kernels::tile_relative(far - 1 - beyond) != far - 1 - beyond) return false;
        if (kernels::tile_relative(beyond + 1 - far) != beyond + 1 - far) return false;
    }
    return true;
}

bool key_tiles_are_right() {
    for (const Window& window : windows())
        for (const std::int64_t n0 : {1, 2, 4})
            for (const std::int64_t m0 : {1, 2, 4})
                for (std::int64_t row0 = 0; row0 < window.rows; row0 += m0)
                    if (!tiles_of(window, row0, std::min(m0, window.rows - row0), n0)) return false;
    return true;
}

bool tiles_of_teams_are_right() {
    for (const Window& window : windows())
        for (const std::int64_t n0 : {1, 2, 3})
            for (std::int64_t block = 0; block < window.rows; block += block_rows)
                for (const std::int64_t rows : {1, 2, 4})
                    for (std::int64_t row0 = block; row0 < block + block_rows && row0 + rows <= window.rows;
                         row0 += rows)
                        if (!tiles_of_team(window, block, row0, rows, n0)) return false;
    return true;
}

bool query_tiles_are_right() {
    for (std::int64_t x = -4; x <= 6; ++x)
        for (std::int64_t y = 2 - x; y <= 6; ++y)
            for (std::int64_t key0 = 0; key0 < 12; key0 += 4)
                for (const std::int64_t rows : {1, 3, 6, 9})
                    for (const std::int64_t m0 : {1, 2, 4}) {
                        const kernels::Mask mask{x, y, 0, 0};
                        const auto tiles = kernels::QueryTiles::of(mask, key0, 4, rows, m0);
                        std::set<std::int64_t> needed, visited;
                        for (std::int64_t i = 0; i < rows; ++i)
                            for (std::int64_t j = key0; j < key0 + 4; ++j)
                                if (i - y + 1 <= j && j < i + x) needed.insert(i / m0);
                        for (std::int64_t t = tiles.begin; t < tiles.end; ++t) visited.insert(t);
                        if (visited != needed) return false;
                    }
    return true;
}

namespace {

/// A-2, term by term.
float bias_of(const Window& window, float slope, std::int64_t i, std::int64_t j) {
    const MaskArgs& args = window.args;
    const bool anchored = args.type == MaskType::top_left || args.type == MaskType::bottom_right;
    const bool at_end = args.type == MaskType::bottom_right || args.type == MaskType::no_mask;
    if (anchored && args.left < 0 && args.right == 0) return slope * static_cast<float>(j);
    return -slope * static_cast<float>(std::abs(i + (at_end ? window.keys - window.rows : 0) - j));
}

/// Whether keys, reaches and gaps of `count` rows lie on lines, and the far ends of the first and the last row on one side.
bool rows_make_lines(const kernels::Alibi& alibi, std::int64_t row0, std::int64_t count) {
    const kernels::TileAlibi tile = alibi.tile(row0, 0);
    const auto row = [&](std::int64_t r) { return tile.of(static_cast<std::int32_t>(r)); };
    const auto gap = [&](std::int64_t r) { return row(r).gap(tile.diagonal + static_cast<std::int32_t>(r)); };
    for (std::int64_t r = 1; r + 1 < count; ++r)
        if (row(r + 1).key - row(r).key != row(r).key - row(r - 1).key ||
            row(r + 1).reach - row(r).reach != row(r).reach - row(r - 1).reach ||
            gap(r + 1) - gap(r) != gap(r) - gap(r - 1))
            return false;
    const bool sinks = tile.sink_rows > 0 && tile.sink_rows < count;
    const bool flat = row(0).reach == row(count - 1).reach;
    return !sinks && !(tile.outwards && flat && row(0).looks_back != row(count - 1).looks_back);
}

/// Of rows and keys of one tile: what tiles add where rows see keys, the origins of rows, and that tiles have planes where they can have.
bool alibi_of_tile(const Window& window, const kernels::Alibi& alibi, std::int64_t row0, std::int64_t rows,
                   std::int64_t key0, std::int64_t cols) {
    const kernels::TileAlibi tile = alibi.tile(row0, key0);
    const kernels::RowPlanes planes = alibi.planes(row0, rows, cols);
    const kernels::TilePlane plane = planes.at(key0);
    if (!planes.straight && plane.side != 0) return false;
    const std::int64_t end = std::min(row0 + rows, window.rows);
    if (rows_make_lines(alibi, row0, end - row0) && !planes.straight) return false;
    if (window.args.type == MaskType::no_mask && alibi.slope > 0.0F && window.keys >= window.rows) {
        const std::int64_t shift = window.keys - window.rows;
        const std::int64_t last = std::min(key0 + cols, window.keys) - 1;
        const int side = last <= row0 + shift ? 1 : key0 >= end - 1 + shift ? -1 : 0;
        if (plane.side != side) return false;
    }
    for (std::int64_t i = row0; i < end; ++i) {
        const auto row = static_cast<std::int32_t>(i - row0);
        bool sees = false;
        for (std::int64_t j = 0; j < window.keys; ++j) sees = sees || window.visible(i, j);
        if (!sees) continue;
        if (planes.straight &&
            static_cast<float>(planes.origin + planes.origin_step * row) != alibi.origin(i))
            return false;
        for (std::int64_t j = key0; j < std::min(key0 + cols, window.keys); ++j) {
            if (!window.visible(i, j)) continue;
            const auto column = static_cast<std::int32_t>(j - key0);
            const float want = bias_of(window, alibi.slope, i, j), origin = alibi.slope * alibi.origin(i);
            if (origin + alibi.factor * tile.distance(row, column) != want) return false;
            if (plane.side == 0) continue;
            const auto along = static_cast<float>(plane.reference(row) - column);
            if (origin + plane.along(alibi.factor) * along != want) return false;
        }
    }
    return true;
}

} // namespace

bool alibi_is_right() {
    for (const Window& window : windows())
        for (const float slope : {-2.0F, -0.5F, 0.0F, 0.5F, 2.0F}) {
            // Of a kernel that could have sink tokens, also where there are none.
            const auto of_sinks =
                kernels::Mask::of(window.args, window.kernel, true, window.rows, window.keys);
            const auto alibi = kernels::Alibi::of(window.args, of_sinks, slope, window.rows, window.keys);
            for (std::int64_t i = 0; i < window.rows; ++i) {
                float largest = -INFINITY;
                for (std::int64_t j = 0; j < window.keys; ++j)
                    if (window.visible(i, j)) largest = std::max(largest, bias_of(window, slope, i, j));
                // Nothing but 0 is left of the largest.
                if (largest > -INFINITY && slope * alibi.origin(i) != largest) return false;
            }
            for (const std::int64_t rows : {1, 3, 4, 9})
                for (std::int64_t row0 = 0; row0 < window.rows; row0 += rows)
                    for (const std::int64_t cols : {1, 3, 4})
                        for (std::int64_t key0 = 0; key0 < window.keys; key0 += cols)
                            if (!alibi_of_tile(window, alibi, row0, rows, key0, cols)) return false;
        }
    return true;
}

} // namespace fmha::test
