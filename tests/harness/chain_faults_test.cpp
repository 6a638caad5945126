// Chains over a cache: a mistake in either kernel of append-then-attend, in one chunk of a prompt, or in the row of a decode turns a
// case of its file red, at the gate that is about it.

#include "harness/cases/check_form.hpp"
#include "harness/data/pagedkv_tensors.hpp"
#include "harness/families/chain.hpp"
#include "tests/harness/faulty_kernels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace fmha::harness::test {
namespace {

using targets::AppendFault;
using targets::CacheFault;
using testing::HasSubstr;

/// Changes the call of a kernel of attention before it runs, or its results afterwards.
struct Change {
    std::function<void(PagedKvArgs&)> before = [](PagedKvArgs&) {};
    std::function<void(const PagedKvArgs&)> after = [](const PagedKvArgs&) {};
};

/// Paged-KV with a change, after append-KV with a mistake.
Launch paged(const Change& change, AppendFault fault = no_fault<AppendFault>) {
    return [=](const KernelConfig& config, const Invocation& invocation) {
        if (config.signature.family == KernelFamily::fwd_appendkv)
            return launch_with(fault)(config, invocation);
        auto args = std::get<PagedKvArgs>(invocation);
        change.before(args);
        launch_with(no_fault<CacheFault>)(config, args);
        change.after(args);
    };
}

std::vector<Case> some_of(std::string_view file, const std::function<bool(const Case&)>& chosen) {
    std::vector<Case> cases = cases_of(file), some;
    std::ranges::copy_if(cases, std::back_inserter(some), chosen);
    EXPECT_FALSE(some.empty()) << file;
    return some;
}

TEST(AppendedKeys, AreJudgedWhereAppendKvErrs) {
    const auto cases = some_of("pagedkv/appended", [](const Case& c) { return c.iperm == Layout::bhsd; });
    EXPECT_EQ(first_red(cases, paged({})), "");
    for (const AppendFault fault :
         {AppendFault::value_not_written, AppendFault::last_key_dropped, AppendFault::keys_of_the_neighbour,
          AppendFault::next_page, AppendFault::length_of_the_first_entry})
        EXPECT_NE(first_red(cases, paged({}, fault)), "") << to_string(fault);
    EXPECT_THAT(first_red(cases, paged({}, AppendFault::value_not_written)), HasSubstr("G5.4 v"));
}

TEST(AppendedKeys, AreJudgedWhereAttentionEndsBeforeThem) {
    const auto cases = some_of("pagedkv/appended", [](const Case& c) { return c.chain.appended == 1; });
    static std::vector<std::int32_t> before;
    Change late;
    late.before = [](PagedKvArgs& args) {
        before.assign(args.lengths.seqlen_k, args.lengths.seqlen_k + args.shape.batch);
        for (std::int32_t& keys : before) --keys;
        args.lengths.seqlen_k = before.data();
    };
    EXPECT_THAT(first_red(cases, paged(late)), HasSubstr("G1 o"));
}

TEST(AppendedKeys, MayNotBeWrittenByAttention) {
    const auto cases = some_of("pagedkv/appended", [](const Case& c) { return c.chain.appended == 1; });
    Change writes;
    writes.after = [](const PagedKvArgs& args) { *static_cast<std::uint16_t*>(args.k.data) ^= 1U; };
    EXPECT_THAT(first_red(cases, paged(writes)), HasSubstr("G5.5"));
}

/// A mistake in RoPE is judged at the channels that it rotates; attention over them is judged from the contents of memory.
TEST(RotatedKeys, AreJudgedWhereAppendKvErrs) {
    const auto cases = some_of("pagedkv/rotated", [](const Case& c) { return c.chain.appended == 5; });
    EXPECT_EQ(first_red(cases, paged({})), "");
    for (const AppendFault fault :
         {AppendFault::position_off_by_one, AppendFault::positions_from_zero,
          AppendFault::queries_advance_always, AppendFault::queries_never_advance,
          AppendFault::sine_with_the_wrong_sign, AppendFault::pairs_of_the_other_kind,
          AppendFault::last_pair_not_rotated, AppendFault::tail_not_copied})
        EXPECT_NE(first_red(cases, paged({}, fault)), "") << to_string(fault);
    EXPECT_THAT(first_red(cases, paged({}, AppendFault::queries_never_advance)), HasSubstr("G5.4 q"));
}

TEST(RotatedKeys, AreJudgedWhereAttentionReadsQueriesAsTheyWere) {
    const auto cases = some_of("pagedkv/rotated", [](const Case& c) { return c.chain.appended == 5; });
    const auto with_old_queries = [](const KernelConfig& config, const Invocation& invocation) {
        static std::vector<char> before;
        const auto bytes = [](const TensorView& q, const Shape& shape) {
            return static_cast<std::size_t>(element_bytes(
                q.type, (shape.batch - 1) * q.batch_stride + (shape.nhead_q - 1) * q.head_stride +
                            (shape.seqlen_q - 1) * q.row_stride + shape.hdim_q));
        };
        if (const auto* append = std::get_if<AppendKvArgs>(&invocation)) {
            const auto* q = static_cast<const char*>(append->q.data);
            before.assign(q, q + bytes(append->q, append->shape));
            launch_with(no_fault<AppendFault>)(config, invocation);
            return;
        }
        auto args = std::get<PagedKvArgs>(invocation);
        args.q.data = before.data();
        launch_with(no_fault<CacheFault>)(config, args);
    };
    EXPECT_THAT(first_red(cases, with_old_queries), HasSubstr("G1 o"));
}

TEST(RotatedKeys, NeedAppendKv) {
    const auto refusal = [](const auto& change) -> std::string {
        Case c = some_of("pagedkv/rotated", [](const Case&) { return true; }).front();
        change(c);
        try {
            check_form(c, "here");
        } catch (const InputError& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(refusal([](Case&) {}), "");
    EXPECT_THAT(refusal([](Case& c) { c.chain.appended = 0; }), HasSubstr("state appended too"));
    EXPECT_THAT(refusal([](Case& c) { c.fill = Fill::edge_last; }), HasSubstr("other fills fix the output"));
    EXPECT_THAT(refusal([](Case& c) { c.mode = Mode::group; }), HasSubstr("batch mode only"));
}

bool is_plain(const Case& c) {
    return c.bias == BiasType::no_bias && c.chain.chunk_rows == 17;
}

TEST(ChunksOfAPrompt, MustHaveTheBitsOfOnePrefill) {
    const auto cases = some_of("pagedkv/chunks", is_plain);
    EXPECT_EQ(first_red(cases, paged({})), "");
    // A result that is right within all limits, and depends on how many rows a call has.
    Change last_bit;
    last_bit.after = [](const PagedKvArgs& args) {
        if (args.shape.seqlen_q == 17) *static_cast<std::uint16_t*>(args.o.data) ^= 1U;
    };
    EXPECT_THAT(first_red(cases, paged(last_bit)), HasSubstr("G5.10"));
}

TEST(ChunksOfAPrompt, AreJudgedWhereOneSeesAKeyTooFew) {
    static std::vector<std::int32_t> fewer;
    Change late;
    late.before = [](PagedKvArgs& args) {
        if (args.shape.seqlen_q != 17) return;
        fewer.assign(args.lengths.seqlen_k, args.lengths.seqlen_k + args.shape.batch);
        for (std::int32_t& keys : fewer) keys = std::max(0, keys - 1);
        args.lengths.seqlen_k = fewer.data();
    };
    EXPECT_THAT(first_red(some_of("pagedkv/chunks", is_plain), paged(late)), HasSubstr("G5.10"));
}

TEST(LastRows, AreJudgedAsRowsOfThePrefill) {
    const auto cases = some_of("pagedkv/last_rows", [](const Case& c) {
        return c.mask == MaskType::bottom_right && c.bias == BiasType::no_bias && c.chain.last_rows == 2;
    });
    EXPECT_EQ(first_red(cases, paged({})), "");
    Change first_rows;
    first_rows.before = [](PagedKvArgs& args) { args.mask.type = MaskType::top_left; };
    EXPECT_THAT(first_red(cases, paged(first_rows)), HasSubstr("G1 o"));
    Change row_before;
    row_before.before = [](PagedKvArgs& args) {
        args.q.data = static_cast<char*>(args.q.data) - 2 * args.q.row_stride;
    };
    EXPECT_THAT(first_red(cases, paged(row_before)), HasSubstr("G1 o"));
}

/// The oracles meet on two problems here: one on the call, the other on the rows of the whole.
TEST(LastRows, AreThoseOfTheWholeForTheReference) {
    const Case c =
        some_of("pagedkv/last_rows", [](const Case& one) { return one.chain.last_rows == 2; }).front();
    const PagedKvTensors tensors(c, Fp8Flavour::ocp);
    const auto call = reference::attention_of(planned_call(tensors)),
               whole = reference::attention_of(tensors.args());
    EXPECT_LE(call_disagreement(call, whole, 38, 1), 1.0);
    EXPECT_GT(call_disagreement(call, whole, 37, 1), 1.0);
}

} // namespace
} // namespace fmha::harness::test
