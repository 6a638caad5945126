// Forward over ranges of keys (S-1, S-2), stored in fp32 and combined (S-4), is forward over all keys.
#include "reference/combine.hpp"
#include "reference/forward.hpp"
#include "tests/reference/random_problem.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace fmha::reference {
namespace {

using test::RandomProblem;

void advance(TensorView& view, std::int64_t elements) {
    if (view.present()) view.data = static_cast<std::byte*>(view.data) + element_bytes(view.type, elements);
}

/// One entry of a problem as a problem of its own, and its keys cut into splits.
class SplitEntry {
  public:
    SplitEntry(const FwdArgs& args, std::int64_t b, std::int64_t splits)
        : whole_(args), b_(b), lengths_(entry_lengths(args, b)),
          width_(std::max<std::int64_t>(1, (lengths_.seqlen_k + splits - 1) / splits)) {
        combined_.shape = whole_.shape;
        combined_.shape.mode = Mode::batch;
        combined_.shape.batch = 1;
        combined_.shape.seqlen_q = lengths_.seqlen_q;
        combined_.score = whole_.score;
        const std::int64_t heads = whole_.shape.nhead_q * splits, rows = lengths_.seqlen_q,
                           hdim = whole_.shape.hdim_v;
        lse_.resize(static_cast<std::size_t>(heads * rows));
        o_.resize(static_cast<std::size_t>(heads * rows * hdim));
        combined_.partials.num_splits = splits;
        combined_.partials.lse_acc = {lse_.data(), ElementType::fp32, 0, rows, 1, 1};
        combined_.partials.o_acc = {o_.data(), ElementType::fp32, 0, rows * hdim, hdim, 1};
        for (std::int64_t s = 0; s < splits; ++s) store(s);
    }
    SplitEntry(const SplitEntry&) = delete;
    SplitEntry& operator=(const SplitEntry&) = delete;
    ~SplitEntry() = default;

    const SplitKvArgs& args() const { return combined_; }
    std::int64_t queries() const { return lengths_.seqlen_q; }

  private:
    /// Stores forward's results for the keys of split s.
    void store(std::int64_t s) {
        const std::int64_t first = std::min(s * width_, lengths_.seqlen_k);
        FwdArgs part = whole_;
        part.score.sink_logit = nullptr;
        part.shape.batch = 1;
        for (TensorView* view : {&part.q, &part.k, &part.v, &part.bias})
            advance(*view, b_ * view->batch_stride);
        advance(part.k, first * part.k.row_stride);
        advance(part.v, first * part.v.row_stride);
        advance(part.bias, first * part.bias.col_stride);
        if (part.mask.type == MaskType::window_generic) {
            part.mask.left += first;
            part.mask.right -= first;
        }
        const auto keys = static_cast<std::int32_t>(std::min(width_, lengths_.seqlen_k - first));
        const auto queries = static_cast<std::int32_t>(lengths_.seqlen_q);
        part.lengths = {};
        if (part.shape.mode == Mode::group) {
            part.lengths.seqstart_q = whole_.lengths.seqstart_q + b_;
            part.lengths.seqstart_k = whole_.lengths.seqstart_k + b_;
        }
        part.lengths.seqlen_q = &queries;
        part.lengths.seqlen_k = &keys;
        const ForwardRows rows = forward(part, all_rows(part));
        const Partials& p = combined_.partials;
        for (std::size_t r = 0; r < rows.rows.size(); ++r) {
            const RowId& row = rows.rows[r];
            const std::int64_t head = row.h * p.num_splits + s;
            const auto at = static_cast<std::int64_t>(r);
            lse_[static_cast<std::size_t>(p.lse_acc.offset(0, head, row.i, 0))] =
                static_cast<float>(rows.lse(at));
            for (std::int64_t c = 0; c < whole_.shape.hdim_v; ++c)
                o_[static_cast<std::size_t>(p.o_acc.offset(0, head, row.i, c))] =
                    static_cast<float>(rows.o(at, c));
        }
    }

    FwdArgs whole_;
    std::int64_t b_;
    EntryLengths lengths_;
    std::int64_t width_;
    std::vector<float> lse_, o_;
    SplitKvArgs combined_;
};

/// Draws a problem whose keys can be cut: nothing in it depends on a key's number in a way that a shift cannot undo.
bool can_be_cut(FwdArgs& args) {
    if (args.score.bias_type == BiasType::alibi || args.quant.qscale == QScale::mx ||
        args.quant.qscale == QScale::blockscale)
        return false;
    args.dropout = {};
    args.shape.min_seqlen_q = 0;
    if (args.mask.type != MaskType::no_mask)
        args.mask = {MaskType::window_generic, std::abs(args.mask.left), std::abs(args.mask.right), 0};
    return true;
}

TEST(Recombination, OfAnyNumberOfSplitsIsTheUnsplitResult) {
    constexpr double u32 = 0x1p-24;
    int problems = 0, empty_splits = 0, empty_rows = 0;
    for (std::uint64_t seed = 1; seed <= 120 && !HasFailure(); ++seed) {
        RandomProblem problem(seed);
        FwdArgs& args = problem.args();
        if (!can_be_cut(args)) continue;
        ++problems;
        const std::int64_t splits = std::vector<std::int64_t>{1, 2, 3, 7, 128}[seed % 5];
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text() + " splits " +
                     std::to_string(splits));
        for (std::int64_t b = 0; b < args.shape.batch; ++b) {
            const SplitEntry entry(args, b, splits);
            const CombinedRows combined = combine(entry.args(), all_rows(entry.args()));
            std::vector<RowId> asked = combined.rows;
            for (RowId& row : asked) row.b = b;
            const ForwardRows whole = forward(args, asked);
            for (std::size_t r = 0; r < asked.size(); ++r) {
                const auto at = static_cast<std::int64_t>(r);
                const auto row = static_cast<std::int64_t>(r);
                empty_splits += combined.splits_taken[r] < splits ? 1 : 0;
                if (combined.lse[r] == whole.lse(at)) {
                    empty_rows += combined.splits_taken[r] == 0 ? 1 : 0;
                } else {
                    EXPECT_NEAR(combined.lse[r], whole.lse(at),
                                u32 * combined.largest_lse[r] + 1e-12 * (1.0 + whole.max_a(at)));
                }
                // Each lse_s and o_s was rounded once.
                const double error =
                    u32 * (1.0 + 2.0 * combined.largest_lse[r]) + 1e-12 * (1.0 + whole.max_a(at));
                for (std::int64_t c = 0; c < args.shape.hdim_v; ++c)
                    EXPECT_LE(std::abs(combined.o(row, c) - whole.o(at, c)),
                              error * whole.weighted_abs(at, c) + 1e-37)
                        << "row " << r << " channel " << c;
            }
        }
    }
    EXPECT_GE(problems, 30);
    EXPECT_GE(empty_splits, 100);
    EXPECT_GE(empty_rows, 10);
}

} // namespace
} // namespace fmha::reference
