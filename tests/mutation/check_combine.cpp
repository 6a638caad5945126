// The loads of combine's blocks: every split of a round once, of the rows and channels of the block.

#include "kernels/programs/fmha_fwd_splitkv_combine.hpp"
#include "tests/mutation/checks.hpp"

#include <array>
#include <tuple>
#include <vector>

namespace fmha::test {
namespace {

constexpr int splits = 5, round_size = 3;
constexpr std::int64_t row0 = 8, channel0 = 20, step = 4096;

/// A matrix of which a tile is loaded: LSEs have no columns.
struct Loaded {
    bool lse = false;
    std::int64_t split = 0, row = 0, channel = 0;
    bool whole_units = false;
    friend bool operator==(const Loaded&, const Loaded&) = default;
};

/// Writes down the loads, and computes nothing.
struct LoadingContext : kernels::Decisions {
    struct Tile {};
    const char* lses = nullptr;
    const char* outputs = nullptr;
    std::vector<Loaded> loaded;

    void load(Tile&, const kernels::Matrix& matrix, std::int64_t row) {
        loaded.push_back({true, split_of(matrix, lses), row, 0, false});
    }
    void load(Tile&, const kernels::Matrix& matrix, std::int64_t row, std::int64_t channel) {
        loaded.push_back({false, split_of(matrix, outputs), row, channel, matrix.whole_units});
    }
    template <class... Anything>
    void map_rows(const Anything&...) const {}
    template <class... Anything>
    void set_rows(const Anything&...) const {}
    float exp2(float x) const { return x; }
    void fill(Tile&, float) const {}
    void add_scaled(Tile&, Tile&, Tile&) const {}

  private:
    static std::int64_t split_of(const kernels::Matrix& matrix, const char* first) {
        return (static_cast<const char*>(matrix.tensor.data) - first) / step;
    }
};

/// The loads of a pass over all splits in rounds of `n`; a turn without a split asks for the first one.
void add_pass(std::vector<Loaded>& to, int n, bool with_outputs, bool whole_units) {
    for (int s = 0; s < splits; s += n)
        for (int i = s; i < s + n; ++i) {
            const int split = i < splits ? i : 0;
            to.push_back({true, split, row0, 0, false});
            if (with_outputs) to.push_back({false, split, row0, channel0, whole_units});
        }
}

bool loads_of_block(bool whole_units) {
    alignas(16) static std::array<char, splits * step> lses{}, outputs{};
    kernels::CombineMatrices in{};
    in.partial_lse = {{.tensor = {.data = lses.data(), .row_stride = 1}}, step};
    in.partial_o = {
        {.tensor = {.data = outputs.data(), .row_stride = whole_units ? 24 : 23}, .cols = {23, 24, 20}},
        step};
    LoadingContext ctx;
    ctx.lses = lses.data();
    ctx.outputs = outputs.data();
    LoadingContext::Tile out, top, total;
    kernels::SplitTiles<LoadingContext::Tile, round_size> weights, partials;
    kernels::combine_each_row<round_size>(ctx, in, row0, channel0, splits, out, partials, top, total,
                                          weights);
    // Where units are not whole, a round is one split.
    std::vector<Loaded> want;
    add_pass(want, round_size, false, false);
    add_pass(want, whole_units ? round_size : 1, true, whole_units);
    return ctx.loaded == want;
}

/// Every split of a round is loaded before the first is used, and each is used once.
bool rounds_of_splits() {
    using Step =
        std::tuple<bool, int, int, bool>; // whether it is a load, i, the split of a load, whether it exists
    std::vector<Step> steps, want;
    kernels::each_split<round_size>(
        splits, [&](int i, int s, bool exists) { steps.emplace_back(true, i, s, exists); },
        [&](int i, bool exists) { steps.emplace_back(false, i, 0, exists); });
    for (const int s : {0, round_size}) {
        for (int i = 0; i < round_size; ++i) want.emplace_back(true, i, s + i, s + i < splits);
        for (int i = 0; i < round_size; ++i) want.emplace_back(false, i, 0, s + i < splits);
    }
    return steps == want;
}

} // namespace

bool combined_splits_are_right() {
    return rounds_of_splits() && loads_of_block(true) && loads_of_block(false);
}

} // namespace fmha::test
