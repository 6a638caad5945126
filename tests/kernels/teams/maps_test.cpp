// Tensor maps: which they are, which tensors have none, and that the boxes they describe are the tiles of the tensors.

#include "dispatcher/tensor_maps.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/targets/hip/descriptor.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/emulated/team_block.hpp"
#include "kernels/targets/hip/ws_maps.hpp"
#include "kernels/targets/hip/ws_plan.hpp"
#include "team_kernels.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace fmha::hip_target::test {
namespace {

constexpr std::int64_t batch = 3, heads_q = 4, heads_k = 2, rows_q = 150, rows_k = 90;

/// Tensors whose element i is i, and a kernel of 128 × 64 tiles for them.
struct Launch {
    KernelConfig kernel;
    FwdArgs args;
    std::vector<std::uint16_t> memory;
};

/// Strides in elements.
struct Layout {
    const char* name;
    std::int64_t channels;
    std::int64_t row, head, entry; ///< of K and V; Q has twice their heads and `queries_entry`
    std::int64_t queries_row, queries_head, queries_entry;
};
const Layout layouts[] = {
    {"entry, head, row, channel", 64, 64, rows_k * 64, 2 * rows_k * 64, 64, rows_q * 64, 4 * rows_q * 64},
    {"entry, row, head, channel", 128, 2 * 128, 128, rows_k * 2 * 128, 4 * 128, 128, rows_q * 4 * 128},
    {"row, entry, head, channel", 64, batch * 2 * 64, 64, 2 * 64, batch * 4 * 64, 64, 4 * 64},
    {"beside one another in rows of 3 tensors", 64, 8 * 64, 64, rows_k * 8 * 64, 12 * 64, 64,
     rows_q * 12 * 64},
    {"rows with room behind them", 72, 80, rows_k * 80 + 8, 2 * (rows_k * 80 + 8) + 16, 88, rows_q * 88 + 8,
     4 * (rows_q * 88 + 8)},
};

Launch launch_of(const Layout& layout) {
    FwdProblem problem([&] {
        Shape shape = team_shape(DataType::fp16, 128);
        shape.hdim_q = shape.hdim_v = layout.channels;
        return shape;
    }());
    Launch launch{team_kernel(problem, 2, 64, 128), {}, std::vector<std::uint16_t>(1 << 20)};
    std::iota(launch.memory.begin(), launch.memory.end(), std::uint16_t{0});
    launch.args.shape = {.mode = Mode::batch,
                         .batch = batch,
                         .nhead_q = heads_q,
                         .nhead_k = heads_k,
                         .seqlen_q = rows_q,
                         .seqlen_k = rows_k,
                         .max_seqlen_q = rows_q,
                         .min_seqlen_q = 0,
                         .hdim_q = layout.channels,
                         .hdim_v = layout.channels};
    launch.args.q = {launch.memory.data(), ElementType::fp16,  layout.queries_entry,
                     layout.queries_head,  layout.queries_row, 1};
    launch.args.k = {launch.memory.data() + 8, ElementType::fp16, layout.entry, layout.head, layout.row, 1};
    launch.args.v = launch.args.k;
    return launch;
}

/// The bits of LDS after one copy of a tile of `lines` lines and 128 channels, from row `row0` on.
std::vector<std::uint16_t> copied(const TensorMapSpec& map, const MapRows& rows,
                                  const kernels::MatrixPlace& place, std::int64_t length, std::int64_t row0) {
    const int lines = map.box[1], bytes = SwizzledTile::bytes(lines, 128, map.type);
    TeamBlock block(bytes + 16, 1, 128, Schedule::feed_first, 0);
    block.run([&](int agent) {
        block.init_barrier(bytes, 1);
        block.expect(agent, bytes, bytes);
        BoxCorner corner = rows.corner(place, length, row0);
        for (int half = 0; half < 2; ++half) {
            corner.at[0] = 64 * half;
            block.copy_box(agent, map, corner, half * SwizzledTile::block_bytes(lines), bytes);
        }
        block.wait(agent, bytes, 0);
    });
    std::vector<std::uint16_t> elements(static_cast<std::size_t>(bytes) / 2);
    std::memcpy(elements.data(), block.unit(0), static_cast<std::size_t>(bytes));
    return elements;
}

/// Where PTX has element (line, channel) of a tile in the 128-byte swizzle: units of 8 elements change places by the line.
std::size_t swizzled_place(int lines, int line, int channel) {
    const int unit = channel % 64 / 8;
    return static_cast<std::size_t>(channel / 64 * lines * 64 + line * 64 + (unit ^ line % 8) * 8 +
                                    channel % 8);
}

/// Every element of the tile is that of the tensor, or 0 where there is none.
void expect_tile(const std::vector<std::uint16_t>& found, const TensorView& view, int lines,
                 const kernels::MatrixPlace& place, std::int64_t length, std::int64_t row0,
                 std::int64_t channels, const std::string& name) {
    for (int line = 0; line < lines; ++line)
        for (int channel = 0; channel < 128; ++channel) {
            const bool exists = row0 + line < length && channel < channels;
            const std::uint16_t expected =
                exists ? static_cast<const std::uint16_t*>(view.data)[view.offset(
                             place.entry, place.head, place.first_row + row0 + line, channel)]
                       : std::uint16_t{0};
            ASSERT_EQ(found[swizzled_place(lines, line, channel)], expected)
                << name << ", row " << row0 + line << ", channel " << channel;
        }
}

TEST(Maps, DescribeTheTilesOfEveryLayout) {
    for (const Layout& layout : layouts) {
        const Launch launch = launch_of(layout);
        const WsMaps maps = ws_maps_of(launch.kernel, launch.args);
        ASSERT_FALSE(maps.problem) << layout.name << ": " << to_sentence(*maps.problem);
        for (const kernels::MatrixPlace& place : {kernels::MatrixPlace{0, 0, 0}, {1, 1, 0}, {2, 0, 0}})
            for (const std::int64_t tile : {0, 1}) {
                expect_tile(copied(maps.specs[1], maps.rows[1], place, rows_k, tile * 64), launch.args.k, 64,
                            place, rows_k, tile * 64, layout.channels, layout.name);
                expect_tile(copied(maps.specs[0], maps.rows[0], place, rows_q, tile * 128), launch.args.q,
                            128, place, rows_q, tile * 128, layout.channels, layout.name);
            }
        EXPECT_EQ(maps.specs[2], maps.specs[1]) << layout.name;
    }
}

// Entries have 90, 64 and 1 of 90 keys: maps end with them.
TEST(Maps, EndWithTheSequencesOfABatch) {
    const std::int32_t lengths[] = {90, 64, 1};
    for (const Layout& layout : layouts) {
        Launch launch = launch_of(layout);
        launch.args.lengths.seqlen_k = lengths;
        const WsMaps maps = ws_maps_of(launch.kernel, launch.args);
        ASSERT_FALSE(maps.problem) << layout.name << ": " << to_sentence(*maps.problem);
        EXPECT_FALSE(maps.rows[0].ends_with_sequence);
        for (const std::int64_t entry : {0, 1, 2})
            for (const std::int64_t row0 : {0, 64}) {
                const kernels::MatrixPlace place{entry, 1, 0};
                const std::int64_t length = lengths[entry];
                if (row0 >= length) continue;
                expect_tile(copied(maps.specs[2], maps.rows[2], place, length, row0), launch.args.v, 64,
                            place, length, row0, layout.channels, layout.name);
            }
    }
}

// Sequences of 33, 0 and 57 rows one after another; nothing says how many rows there are.
TEST(Maps, EndWithTheSequencesOfAGroup) {
    Launch launch = launch_of(layouts[1]);
    launch.args.shape.mode = Mode::group;
    launch.args.q.batch_stride = launch.args.k.batch_stride = launch.args.v.batch_stride = 0;
    const WsMaps maps = ws_maps_of(launch.kernel, launch.args);
    ASSERT_FALSE(maps.problem);
    for (const auto& [first, length] : {std::pair<std::int64_t, std::int64_t>{0, 33}, {33, 57}}) {
        const kernels::MatrixPlace place{1, 1, first};
        for (const std::size_t i : {0U, 1U})
            expect_tile(copied(maps.specs[i], maps.rows[i], place, length, 0),
                        i == 0 ? launch.args.q : launch.args.k, maps.specs[i].box[1], place, length, 0, 128,
                        "group");
    }
}

// Pages of 128 slots, of which an entry has some: the map ends behind those. Rows of the tile are numbered as the program does.
TEST(Maps, EndWithTheKeysOfAPage) {
    constexpr std::int64_t slots = 128, pages = 5;
    for (const auto& [row, head, page] : {std::array<std::int64_t, 3>{64, slots * 64, 2 * slots * 64},
                                          {2 * 64, 64, slots * 2 * 64},
                                          {72, slots * 72 + 8, 2 * (slots * 72 + 8) + 24}}) {
        const Launch launch = launch_of(layouts[0]);
        PagedKvArgs args;
        args.shape = launch.args.shape;
        args.q = launch.args.q;
        args.k = args.v = {launch.args.k.data, ElementType::fp16, page, head, row, 1};
        args.place.page_size = slots;
        args.place.page_count = pages;
        KernelConfig kernel = launch.kernel;
        kernel.signature.family = KernelFamily::fwd_pagedkv;
        const WsMaps maps = ws_maps_of(kernel, args);
        ASSERT_FALSE(maps.problem) << to_sentence(*maps.problem);
        for (const std::int64_t number : {0, 3, 4})
            for (const std::int64_t slot : {0, 64})
                for (const std::int64_t keys : {1, 33, 64}) {
                    const std::int64_t tile_row = 640;
                    const kernels::MatrixPlace place{number, 1, slot - tile_row};
                    expect_tile(copied(maps.specs[2], maps.rows[2], place, tile_row + keys, tile_row), args.v,
                                64, place, tile_row + keys, tile_row, 64, "pages");
                }
    }
}

TEST(Maps, DescribeEntriesAndHeadsThatShareMemory) {
    for (const Layout& layout : layouts)
        for (const bool of_entries : {false, true})
            for (const bool of_heads : {false, true}) {
                Launch launch = launch_of(layout);
                for (TensorView* view : {&launch.args.q, &launch.args.k, &launch.args.v}) {
                    if (of_entries) view->batch_stride = 0;
                    if (of_heads) view->head_stride = 0;
                }
                const WsMaps maps = ws_maps_of(launch.kernel, launch.args);
                ASSERT_FALSE(maps.problem) << layout.name << ": " << to_sentence(*maps.problem);
                for (const std::int64_t entry : {0, 2}) {
                    const kernels::MatrixPlace place{entry, 1, 0};
                    expect_tile(copied(maps.specs[1], maps.rows[1], place, rows_k, 64), launch.args.k, 64,
                                place, rows_k, 64, layout.channels, layout.name);
                    expect_tile(copied(maps.specs[0], maps.rows[0], place, rows_q, 128), launch.args.q, 128,
                                place, rows_q, 128, layout.channels, layout.name);
                }
            }
}

// A launch that the dispatcher lets through has maps, and one that it does not has none.
TEST(Maps, AreThereWhereTheDispatcherSaysSo) {
    std::mt19937_64 random(3);
    const auto pick = [&](std::vector<std::int64_t> from) {
        return from[std::uniform_int_distribution<std::size_t>(0, from.size() - 1)(random)];
    };
    const std::int32_t lengths[] = {90, 64, 1};
    std::vector<Launch> launches;
    for (const Layout& layout : layouts) launches.push_back(launch_of(layout));
    int there = 0, absent = 0;
    for (int i = 0; i < 20'000; ++i) {
        const Launch& launch = launches[static_cast<std::size_t>(pick({0, 1, 2, 3, 4}))];
        FwdArgs args = launch.args;
        constexpr std::int64_t one = 1;
        using limits = std::numeric_limits<std::int64_t>;
        for (int change = 0; change < 2; ++change) {
            TensorView& view =
                *std::array{&args.q, &args.k, &args.v}.at(static_cast<std::size_t>(pick({0, 1, 2})));
            std::int64_t* const strides[] = {&view.batch_stride, &view.head_stride, &view.row_stride};
            std::int64_t& stride = *strides[pick({0, 1, 2})];
            stride = pick({stride,
                           stride,
                           0,
                           0,
                           8,
                           -8,
                           -64,
                           one << 20,
                           one << 32,
                           (one << 33) - 8,
                           one << 33,
                           one << 38,
                           (one << 39) - 8,
                           one << 39,
                           one << 45,
                           one << 60,
                           -(one << 60),
                           one << 62,
                           limits::max() - 63,
                           limits::min() + 64});
        }
        args.shape.batch = pick({1, 3});
        args.shape.nhead_k = pick({1, 2, 2, one << 20});
        if (args.shape.nhead_k > 2) args.shape.nhead_q = 2 * args.shape.nhead_k;
        args.shape.seqlen_k = pick({0, 1, 90, (one << 32) + 1});
        if (pick({0, 0, 0, 1}) == 1) args.k.col_stride = 2;
        if (pick({0, 1}) == 1) args.lengths.seqlen_k = lengths;
        if (pick({0, 0, 1}) == 1) args.shape.mode = Mode::group;
        const WsMaps maps = ws_maps_of(launch.kernel, args);
        ++(maps.problem ? absent : there);
        ASSERT_EQ(tensor_maps_have(args, VLayout::row), !maps.problem)
            << (maps.problem ? to_sentence(*maps.problem) : "there are maps") << ", number " << i;
    }
    EXPECT_GT(there, 1000);
    EXPECT_GT(absent, 1000);
}

TEST(Maps, AreThoseOfTheDriver) {
    const Launch launch = launch_of(layouts[1]);
    const WsMaps maps = ws_maps_of(launch.kernel, launch.args);
    const TensorMapSpec& k = maps.specs[1];
    EXPECT_EQ(k.base, launch.args.k.data);
    EXPECT_EQ(k.extents, (std::array<std::int64_t, 5>{128, 90, 2, 3, 1}));
    EXPECT_EQ(k.strides, (std::array<std::int64_t, 5>{2, 512, 256, 46080, 16}));
    EXPECT_EQ(k.box, (std::array<std::int32_t, 5>{64, 64, 1, 1, 1}));
    EXPECT_EQ(k.swizzle_bytes, 128);
    EXPECT_EQ(k.box_bytes(), 8192);
    EXPECT_EQ(maps.specs[0].box, (std::array<std::int32_t, 5>{64, 128, 1, 1, 1}));
}

TEST(Maps, OfNoElementsAreNone) {
    Launch launch = launch_of(layouts[0]);
    launch.args.k.data = launch.args.v.data = nullptr;
    launch.args.shape.seqlen_k = 0;
    const WsMaps maps = ws_maps_of(launch.kernel, launch.args);
    ASSERT_FALSE(maps.problem);
    EXPECT_TRUE(maps.specs[0].any());
    EXPECT_FALSE(maps.specs[1].any() || maps.specs[2].any());
}

struct Refused {
    void (*change)(FwdArgs&);
    MapProblem problem;
    const char* tensor;
    std::int64_t value;
};

TEST(Maps, AreRefusedForAReason) {
    using enum MapProblem;
    const Refused table[] = {
        {[](FwdArgs& a) { a.q.data = static_cast<std::uint16_t*>(a.q.data) + 1; }, base_alignment, "q", 2},
        {[](FwdArgs& a) { a.k.col_stride = 2; }, channel_stride, "k", 4},
        {[](FwdArgs& a) { a.k.row_stride = 68; }, stride_alignment, "k", 136},
        {[](FwdArgs& a) { a.v.row_stride = 0; }, stride_range, "v", 0},
        {[](FwdArgs& a) { a.v.head_stride = -64; }, stride_range, "v", -128},
        {[](FwdArgs& a) { a.v.batch_stride = std::int64_t{1} << 39; }, stride_range, "v",
         std::int64_t{1} << 40},
        {[](FwdArgs& a) { a.q.row_stride = -64; }, stride_range, "q", -128},
        // In bytes these are beyond 64 bits, where the last would be 128.
        {[](FwdArgs& a) { a.q.head_stride = std::int64_t{1} << 62; }, stride_range, "q",
         std::int64_t{1} << 62},
        {[](FwdArgs& a) { a.k.head_stride = std::numeric_limits<std::int64_t>::min() + 64; }, stride_range,
         "k", -(std::int64_t{1} << 62)},
        {[](FwdArgs& a) { a.shape.seqlen_k = (std::int64_t{1} << 32) + 1; }, extent, "k",
         (std::int64_t{1} << 32) + 1},
        {[](FwdArgs& a) { a.v.type = ElementType::fp32; }, element_type, "v", 32},
    };
    for (const Refused& row : table) {
        Launch launch = launch_of(layouts[0]);
        row.change(launch.args);
        const WsMaps maps = ws_maps_of(launch.kernel, launch.args);
        ASSERT_TRUE(maps.problem) << row.tensor << row.value;
        EXPECT_EQ(*maps.problem, (Unmappable{row.problem, row.tensor, row.value}))
            << to_sentence(*maps.problem);
        EXPECT_NE(to_sentence(*maps.problem).find(row.tensor), std::string::npos);
    }
    // Steps of 16 bytes from page to page, which coordinates count up to 2^31 − 2.
    PagedKvArgs paged;
    paged.shape = launch_of(layouts[0]).args.shape;
    paged.q = launch_of(layouts[0]).args.q;
    paged.k = paged.v = {paged.q.data, ElementType::fp16, 8, 1 << 20, 64, 1};
    paged.place.page_size = 128;
    paged.place.page_count = (std::int64_t{1} << 31) - (1 << 17);
    KernelConfig kernel = launch_of(layouts[0]).kernel;
    kernel.signature.family = KernelFamily::fwd_pagedkv;
    const auto problem = ws_maps_of(kernel, paged).problem;
    ASSERT_TRUE(problem);
    EXPECT_EQ(*problem, (Unmappable{places, "k", 16})) << to_sentence(*problem);
    --paged.place.page_count;
    EXPECT_FALSE(ws_maps_of(kernel, paged).problem);
    paged.k.head_stride = -64;
    EXPECT_EQ(*ws_maps_of(kernel, paged).problem, (Unmappable{stride_range, "k", -128}));
    // The steps to the last of 2^20 heads are beyond 64 bits, too.
    paged.k.head_stride = std::int64_t{1} << 60;
    paged.shape.nhead_k = paged.shape.nhead_q = 1 << 20;
    EXPECT_EQ(*ws_maps_of(kernel, paged).problem, (Unmappable{places, "k", 16}));
    // A stride that nothing uses is not looked at.
    Launch launch = launch_of(layouts[0]);
    launch.args.shape.batch = 1;
    launch.args.v.batch_stride = 7;
    EXPECT_FALSE(ws_maps_of(launch.kernel, launch.args).problem);
}

TEST(Maps, AreRefusedByALaunch) {
    FwdProblem problem([] {
        Shape shape = team_shape(DataType::fp16, 64);
        shape.padding = 4;
        return shape;
    }());
    try {
        emulate_kernel(team_kernel(problem, 2, 64, 64), problem.args(), {.threads = 1});
        FAIL() << "it ran";
    } catch (const UnsupportedInvocation& reason) {
        EXPECT_EQ(std::string(reason.what()),
                  "q has a stride of 136 bytes; tensor copies take multiples of 16");
    }
}

} // namespace
} // namespace fmha::hip_target::test
