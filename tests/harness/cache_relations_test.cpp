// The duties of programs over a cache to each other: attention reads the keys that append-KV wrote, a prompt in chunks has the bits of one
// prefill, decode gives the last row of it, and splits do not show. Kernels are those that are planned, memory and verdicts
// those of the harness.

#include "harness/cases/case_problem.hpp"
#include "harness/data/cache_places.hpp"
#include "harness/data/splitkv_tensors.hpp"
#include "harness/gates/append_gates.hpp"
#include "harness/run/candidate.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/catalogue_kernels.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace fmha::harness {
namespace {

struct Where {
    const char* target;
    const char* arch;
};
void PrintTo(const Where& where, std::ostream* out) {
    *out << where.target << " " << where.arch;
}

/// A case with its memory and the kernels that are planned for it.
class Planned {
  public:
    Planned(Case c, const Where& where)
        : case_(std::move(c)), data_(family_of(case_.family).allocate(case_, Fp8Flavour::ocp)),
          source_(house_kernels(make_target(where.target, {.arch = where.arch, .kernels_dir = {}}), {},
                                kernel_families_of({&case_, 1}))),
          kernels_(
              planned_candidate(*source_, family_of(case_.family), case_, to_problem(case_, where.arch))) {
        std::vector<KernelConfig> configs;
        for (const StageKernel& stage : kernels_.stages) configs.push_back(stage.instance->config());
        data_->prepare(configs);
        data_->tensors().refill(Poison::nan);
    }

    GuardedTensor& tensor(std::string_view name) { return data_->tensors().tensor(name); }
    template <class Args>
    Args args() const {
        return std::get<Args>(data_->invocation());
    }
    void run() { run_on(data_->invocation()); }
    void run_on(const Invocation& arguments) {
        for (const StageKernel& stage : kernels_.stages) stage.instance->launch(arguments, {});
    }
    Outputs outputs() const { return data_->outputs(kernels_.families.back()); }
    /// "" when the gates accept the contents of the memory.
    std::string complaint() {
        // Of the memory as it is now: another stage may have written this one's input.
        const CaseResult result = judge_run_outputs(case_, *data_, *data_->expectation(1), kernels_);
        return result.outcome == Outcome::passed
                   ? std::string()
                   : std::string(to_string(result.outcome)) + ": " + result.message;
    }

  private:
    Case case_;
    std::unique_ptr<CaseData> data_;
    std::unique_ptr<KernelSource> source_;
    Candidate kernels_;
};

Case cached_case(ApiFamily family) {
    Case c;
    c.id = "t/cache@1";
    c.family = family;
    c.data_type = DataType::bf16;
    c.batch = 3;
    c.nhead_q = 4;
    c.nhead_k = 2;
    c.hdim_q = c.hdim_v = 64;
    c.seqlen_q = {3};
    c.seqlen_k = {131, 260, 5};
    c.mask = MaskType::bottom_right;
    c.window_right = 0;
    c.length_form_k = LengthForm::seqlen;
    c.cache.page_size = 128;
    return c;
}

class CacheRelations : public testing::TestWithParam<Where> {};
INSTANTIATE_TEST_SUITE_P(Targets, CacheRelations,
                         testing::Values(Where{"host", "gfx950"}, Where{"emulated", "gfx942"},
                                         Where{"emulated", "sm_90"}),
                         [](const auto& test) {
                             return std::string(test.param.target) + "_" + test.param.arch;
                         });

constexpr std::int64_t appended = 3;

/// The call that puts the last keys of every entry of `attention` into its cache. `brings` has them as k_new and v_new.
template <class Args>
AppendKvArgs append_to(const Args& attention, const Planned& brings) {
    AppendKvArgs append = brings.args<AppendKvArgs>();
    append.k = attention.k;
    append.v = attention.v;
    append.place = attention.place;
    append.shape.seqlen_k = attention.shape.seqlen_k;
    return append;
}

/// Nothing that append-KV has to write is there before it has.
void forget_last_keys(const Case& c, Planned& attention) {
    const CachePlaces places(c);
    for (std::int64_t b = 0; b < c.batch; ++b)
        for (std::int64_t n = 1; n <= appended; ++n) {
            const auto at = places.of_key(b, c.seqlen_k[static_cast<std::size_t>(b)] - n);
            for (std::int64_t h = 0; h < c.nhead_k; ++h)
                for (std::int64_t channel = 0; channel < c.hdim_q; ++channel) {
                    attention.tensor("k").set_code(at.slot, h, at.row, channel, 0x7FC0U);
                    attention.tensor("v").set_code(at.slot, h, at.row, channel, 0x7FC0U);
                }
        }
}

template <class Args>
void expect_chain(Case c, Rope rope, const Where& where) {
    SCOPED_TRACE(std::string(to_string(c.family)) + ", page size " + std::to_string(c.cache.page_size) +
                 ", rope " + std::string(to_string(rope)));
    Case before = c;
    before.family = ApiFamily::fwd_appendkv;
    before.append.seqlen_knew = appended;
    before.append.rope = rope;
    before.seqlen_q = {0};
    for (std::int64_t& keys : before.seqlen_k) keys -= appended;
    Planned attention(c, where), append(before, where);
    attention.run();
    ASSERT_EQ(attention.complaint(), "");
    const Outputs whole = attention.outputs();

    forget_last_keys(c, attention);
    const AppendKvArgs call = append_to(attention.args<Args>(), append);
    const auto expected = reference::append(call);
    append.run_on(call);
    EXPECT_TRUE(judge_appended(call, appended_outputs(call), expected, queries_of(call)).passed());
    attention.run();
    EXPECT_EQ(attention.complaint(), "");
    const std::string difference = attention.outputs().first_difference(whole);
    if (rope == Rope::none)
        EXPECT_EQ(difference, ""); // the new keys are those of their positions
    else
        EXPECT_NE(difference, "");

    // One position early is seen, by either stage.
    std::vector<std::int32_t> early(call.lengths.seqlen_k, call.lengths.seqlen_k + c.batch);
    for (std::int32_t& keys : early) --keys;
    AppendKvArgs wrong = call;
    wrong.lengths.seqlen_k = early.data();
    append.run_on(wrong);
    EXPECT_FALSE(judge_appended(call, appended_outputs(call), expected, queries_of(call)).passed());
    attention.run();
    EXPECT_NE(attention.outputs().first_difference(whole), "");
}

TEST_P(CacheRelations, AttentionReadsWhatAppendingWrote) {
    for (const Rope rope : {Rope::none, Rope::interleaved, Rope::half_rotated})
        expect_chain<PagedKvArgs>(cached_case(ApiFamily::fwd_pagedkv), rope, GetParam());
    for (const std::int64_t page_size : {128, 0}) {
        Case c = cached_case(ApiFamily::fwd_splitkv);
        c.split.num_splits = 2;
        c.cache.page_size = page_size;
        c.cache.cache_batch_idx = page_size == 0;
        expect_chain<SplitKvArgs>(c, Rope::interleaved, GetParam());
    }
}

/// Rows [first, first + count) of the queries of every entry, over the keys up to the last of them. `lengths` takes the lengths that the call
/// points to.
template <class Args>
Args chunk(const Args& whole, std::int64_t first, std::int64_t count, std::vector<std::int32_t>& lengths) {
    Args part = whole;
    const auto forward = [first](TensorView& view) {
        view.data = static_cast<char*>(view.data) + first * view.row_stride * element_bits(view.type) / 8;
    };
    const std::int64_t rows = whole.shape.seqlen_q;
    lengths.clear();
    forward(part.q);
    forward(part.o);
    if (part.lse.present()) forward(part.lse);
    for (std::int64_t b = 0; b < whole.shape.batch; ++b)
        lengths.push_back(static_cast<std::int32_t>(whole.lengths.seqlen_k[b] - rows + first + count));
    part.lengths.seqlen_k = lengths.data();
    part.shape.seqlen_q = part.shape.max_seqlen_q = count;
    return part;
}

Case prompt() {
    Case c = cached_case(ApiFamily::fwd_pagedkv);
    c.seqlen_q = {150};
    c.seqlen_k = {150, 279, 384};
    c.lse = true;
    return c;
}

/// Key tiles begin with the first key, and no row depends on the others of its tile, hence the bits are promised of one kernel.
TEST_P(CacheRelations, APromptInChunksHasTheBitsOfOnePrefill) {
    Planned prefill(prompt(), GetParam());
    prefill.run();
    ASSERT_EQ(prefill.complaint(), "");
    const Outputs whole = prefill.outputs();
    const auto args = prefill.args<PagedKvArgs>();
    for (const std::vector<std::int64_t>& edges :
         {std::vector<std::int64_t>{0, 17, 64, 150}, {0, 128, 149, 150}}) {
        for (const char* name : {"o", "lse"}) prefill.tensor(name).poison(Poison::nan);
        for (std::size_t n = 0; n + 1 < edges.size(); ++n) {
            std::vector<std::int32_t> lengths;
            prefill.run_on(chunk(args, edges[n], edges[n + 1] - edges[n], lengths));
        }
        EXPECT_EQ(prefill.outputs().first_difference(whole), "");
    }
    // A chunk that sees one key too few is seen.
    std::vector<std::int32_t> lengths;
    auto late = chunk(args, 64, 86, lengths);
    for (std::int32_t& keys : lengths) --keys;
    prefill.run_on(late);
    EXPECT_NE(prefill.outputs().first_difference(whole), "");
}

/// Decode has kernels of its own, and shares tiles among heads: its row must pass where the last row of the prefill does.
TEST_P(CacheRelations, DecodeGivesTheLastRowOfAPrefill) {
    Planned prefill(prompt(), GetParam());
    prefill.run();
    Case one = prompt();
    one.seqlen_q = {1};
    Planned decode(one, GetParam());
    std::vector<std::int32_t> lengths;
    const auto args = prefill.args<PagedKvArgs>();
    decode.run_on(chunk(args, 149, 1, lengths));
    EXPECT_EQ(prefill.complaint(), "");

    Case in_splits = one;
    in_splits.family = ApiFamily::fwd_splitkv;
    for (const std::int64_t splits : {1, 2, 3, 7, 16, 128}) {
        in_splits.split.num_splits = splits;
        Planned split(in_splits, GetParam());
        auto call = split.args<SplitKvArgs>();
        const PagedKvArgs last = chunk(args, 149, 1, lengths);
        call.q = last.q;
        call.k = last.k;
        call.v = last.v;
        call.o = last.o;
        call.lse = last.lse;
        call.place = last.place;
        split.run_on(call);
        EXPECT_EQ(prefill.complaint(), "") << splits << " splits";
    }
    // The row before the last one is not the last one.
    std::vector<std::int32_t> fewer;
    PagedKvArgs wrong = chunk(args, 148, 1, fewer);
    wrong.o = chunk(args, 149, 1, lengths).o;
    wrong.lse = {};
    decode.run_on(wrong);
    EXPECT_NE(prefill.complaint(), "");
}

} // namespace
} // namespace fmha::harness
