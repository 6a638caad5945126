// New keys and queries of append-KV: each is written once, where V-2 and V-3 say, with the angles of V-4 and V-5.

#include "kernels/programs/fmha_fwd_appendkv.hpp"
#include "tests/mutation/checks.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace fmha::test {
namespace {

using kernels::Matrix;

/// The head stride that tells queries from keys.
constexpr std::int64_t query_heads = 5;

constexpr std::int16_t query_rows = 2, key_rows = 3;

/// Notes the writes: their number, their source, and their angles.
struct AppendContext : kernels::Decisions {
    KernelConfig config;
    struct Row {
        int copies = 0, pairs = 0;
        std::int64_t from = -1, angles = -1;
        bool operator==(const Row&) const = default;
    };
    std::map<std::pair<const void*, std::int64_t>, Row> written; ///< by tensor and offset of channel 0

    const KernelConfig& cfg() const { return config; }
    struct Tile {
        const Matrix* from = nullptr;
        Matrix matrix;
        std::int64_t row = 0, col = 0;
    };
    Tile first() const { return {}; }
    Tile second() const { return {}; }
    Tile cosines() const { return {}; }
    Tile sines() const { return {}; }
    void load(Tile& tile, const Matrix& matrix, std::int64_t row, std::int64_t col) const {
        tile.matrix = matrix;
        tile.row = row;
        tile.col = col;
    }
    Tile cosine, source;
    void rotate(Tile& first, Tile&, Tile& cosines, Tile&) {
        source = first;
        cosine = cosines;
    }
    void store(const Matrix& to, const Tile&, std::int64_t to_row, std::int64_t pair) {
        const std::int64_t pairs = std::clamp<std::int64_t>(to.cols.size - pair, 0, kernels::rotary_pairs);
        for (std::int64_t i = 0; i < rows(to, to_row, source.matrix, source.row) && pairs > 0; ++i) {
            Row& row = written[{to.tensor.data, to.offset(to_row + i, 0)}];
            row.pairs += static_cast<int>(pairs);
            row.from = source.matrix.offset(source.row + i, 0);
            row.angles = cosine.matrix.offset(cosine.row + i, 0);
        }
    }
    void copy(const Matrix& to, std::int64_t to_row, const Matrix& from, std::int64_t from_row,
              std::int64_t) {
        for (std::int64_t i = 0; i < rows(to, to_row, from, from_row); ++i) {
            Row& row = written[{to.tensor.data, to.offset(to_row + i, 0)}];
            ++row.copies;
            row.from = from.offset(from_row + i, 0);
        }
    }
    static std::int64_t rows(const Matrix& to, std::int64_t to_row, const Matrix& from,
                             std::int64_t from_row) {
        const std::int64_t of_block = to.tensor.head_stride == query_heads ? query_rows : key_rows;
        return std::min<std::int64_t>({of_block, to.rows.size - to_row, from.rows.size - from_row});
    }
};

struct Appended {
    std::int64_t cached, added, queries, page_size, room, rotary;
    bool bad_page, advance;
};

bool is_right(const Appended& problem) {
    float memory[6] = {};
    AppendContext ctx;
    ctx.config.algorithm.tile = {.m0 = query_rows, .n0 = key_rows};
    ctx.config.algorithm.pad = {true, true, 1, 1};
    ctx.config.signature.rope = problem.rotary > 0 ? Rope::half_rotated : Rope::none;
    AppendKvArgs args;
    args.shape = {Mode::batch, 1, 1, 1, problem.queries, problem.room, 0, 0, 2 * problem.rotary + 8, 16};
    args.seqlen_knew = problem.added;
    args.has_mask = problem.advance;
    const auto view = [&](int which, std::int64_t head) {
        return TensorView{memory + which, ElementType::fp32, 1'000'000 + which, head, 1000 + which, 1};
    };
    args.q = view(0, query_heads);
    args.k = view(1, 0);
    args.v = view(2, 0);
    args.k_new = view(3, 0);
    args.v_new = view(4, 0);
    args.rope = {ctx.config.signature.rope, problem.rotary, view(5, 77), view(5, 77)};
    const std::int32_t cached[] = {static_cast<std::int32_t>(problem.cached)};
    args.lengths.seqlen_k = cached;
    std::int32_t table[] = {3, 1, 4, 2, 5, 0};
    if (problem.bad_page) table[1] = 6, table[2] = -1;
    if (problem.page_size > 0) {
        args.place.block_table = table;
        args.place.block_table_stride = problem.room / problem.page_size;
        args.place.page_size = problem.page_size;
        args.place.page_count = 6;
    }
    const kernels::AppendGrid grid(ctx.config, args);
    for (std::int64_t n = 0; n < grid.size(); ++n) kernels::fmha_fwd_appendkv(ctx, args, grid[n]);

    if (problem.cached < 0) return ctx.written.empty();
    std::map<std::pair<const void*, std::int64_t>, AppendContext::Row> want;
    const int pairs = static_cast<int>(problem.rotary / 2);
    const std::int64_t room =
        problem.page_size > 0 ? problem.room / problem.page_size * problem.page_size : problem.room;
    for (std::int64_t i = 0; i < problem.added && problem.cached + i < room; ++i) {
        const std::int64_t position = problem.cached + i;
        const std::int64_t page = problem.page_size > 0 ? table[position / problem.page_size] : 0;
        const std::int64_t slot = problem.page_size > 0 ? position % problem.page_size : position;
        if (page < 0 || page >= 6) continue;
        // Keys are rotated, first and second channels, and the rest of them is copied.
        const std::int64_t angles = pairs > 0 ? args.rope.cos.offset(0, 0, position, 0) : -1;
        want[{args.k.data, args.k.offset(page, 0, slot, 0)}] = {1, pairs, args.k_new.offset(0, 0, i, 0),
                                                                angles};
        if (pairs > 0)
            want[{args.k.data, args.k.offset(page, 0, slot, pairs)}] = {
                0, pairs, args.k_new.offset(0, 0, i, 0), angles};
        want[{args.v.data, args.v.offset(page, 0, slot, 0)}] = {1, 0, args.v_new.offset(0, 0, i, 0), -1};
    }
    for (std::int64_t i = 0; i < problem.queries && pairs > 0; ++i) {
        const std::int64_t angles = args.rope.cos.offset(0, 0, problem.cached + (problem.advance ? i : 0), 0);
        for (const std::int64_t channel : {0, pairs})
            want[{args.q.data, args.q.offset(0, 0, i, channel)}] = {0, pairs, args.q.offset(0, 0, i, 0),
                                                                    angles};
    }
    return ctx.written == want;
}

} // namespace

bool appended_keys_are_right() {
    for (const std::int64_t cached : {-1, 0, 3, 5})
        for (const std::int64_t added : {1, 4, 5, 11})
            for (const std::int64_t queries : {1, 4, 6})
                for (const std::int64_t page_size : {0, 3, 4, 6})
                    for (const std::int64_t room : {6, 12, 24})
                        for (const std::int64_t rotary : {0, 8, 64, 72})
                            for (const bool bad_page : {false, true})
                                if (!is_right({cached, added, queries, page_size, room, rotary,
                                               bad_page && page_size > 0, queries == 4}))
                                    return false;
    return true;
}

} // namespace fmha::test
