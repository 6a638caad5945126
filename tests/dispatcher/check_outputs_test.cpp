// Blocks of a launch would race for an element that lies where another one does (L-4).

#include "dispatcher/types/check_outputs.hpp"

#include "tests/dispatcher/small_call.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace fmha::test {
namespace {

using testing::HasSubstr;

using small_call::batch, small_call::heads, small_call::keys, small_call::queries, small_call::shape,
    small_call::width;

char memory = 0; ///< never read

TensorView dense(std::int64_t rows, std::int64_t columns) {
    return small_call::dense(&memory, rows, columns);
}

FwdArgs forward() {
    FwdArgs args;
    args.shape = shape();
    args.o = dense(queries, width);
    args.lse = dense(queries, 1);
    args.randval = dense(queries, keys);
    return args;
}

BwdArgs backward() {
    BwdArgs args;
    args.shape = shape();
    args.d = dense(queries, 1);
    args.dq = dense(queries, width);
    args.dk = args.dv = dense(keys, width);
    args.dbias = dense(queries, keys);
    return args;
}

AppendKvArgs append() {
    AppendKvArgs args;
    args.shape = shape();
    args.seqlen_knew = 1;
    args.q = dense(queries, width);
    args.k = args.v = dense(keys, width);
    return args;
}

std::string told(const Invocation& arguments, std::int64_t max_seqlen_k = 0) {
    return told_by([&] { check_outputs(arguments, max_seqlen_k); });
}

TEST(CheckOutputs, TakesEveryOrderOfDimensions) {
    FwdArgs args = forward();
    EXPECT_EQ(told(args), "OK");
    args.o = {&memory, ElementType::fp16, queries * heads * width, width, heads * width, 1};
    EXPECT_EQ(told(args), "OK");
    args.o = {&memory, ElementType::fp16, -1000, 128, -32, 2}; // with gaps, from behind
    EXPECT_EQ(told(args), "OK");
    args.o = {&memory, ElementType::fp16, 1, batch, batch * heads, batch * heads * queries};
    EXPECT_EQ(told(args), "OK");
    EXPECT_EQ(told(backward()), "OK");
    EXPECT_EQ(told(append()), "OK");
    EXPECT_EQ(told(Invocation()), "OK");
}

TEST(CheckOutputs, RefusesAStrideOfZeroAndNamesIt) {
    FwdArgs args = forward();
    args.o.row_stride = 0;
    EXPECT_EQ(
        told(args),
        "L-4: o has row stride 0 and row extent 4; every element of an output needs a place of its own");
    args = forward();
    args.o.batch_stride = 0;
    EXPECT_THAT(told(args), HasSubstr("o has batch stride 0"));
    args = forward();
    args.lse.head_stride = 0;
    EXPECT_THAT(told(args), HasSubstr("lse has head stride 0"));
    args.lse = forward().lse;
    args.lse.col_stride = 0; // has one column
    EXPECT_EQ(told(args), "OK");
    args.randval.col_stride = 0;
    EXPECT_THAT(told(args), HasSubstr("randval has column stride 0"));
    args = forward();
    args.shape.batch = 1;
    args.o.batch_stride = args.lse.batch_stride = args.randval.batch_stride = 0; // of one batch
    EXPECT_EQ(told(args), "OK");
    args.shape.nhead_q = args.shape.seqlen_q = 1;
    args.o = {&memory, ElementType::fp16, 0, 0, 0, 0};
    EXPECT_THAT(told(args), HasSubstr("o has column stride 0 and column extent 16"));
    args.o.data = nullptr;
    EXPECT_EQ(told(args), "OK");
}

TEST(CheckOutputs, RefusesRowsThatReachIntoTheNext) {
    FwdArgs args = forward();
    args.o.row_stride = width - 1;
    EXPECT_THAT(told(args), HasSubstr("o has row stride 15 and column stride 1"));
    args.o.row_stride = -(width - 1);
    EXPECT_THAT(told(args), HasSubstr("o has row stride -15"));
    // 6 heads of 2 elements meet 4 rows of 3 after lcm(2, 3) elements.
    args = forward();
    args.shape.nhead_q = 6;
    args.shape.hdim_v = 1;
    args.o = {&memory, ElementType::fp16, 100, 2, 3, 1};
    EXPECT_THAT(told(args), HasSubstr("o has head stride 2 and row stride 3"));
    args.shape.nhead_q = 3;
    EXPECT_EQ(told(args), "OK");
    args.o.row_stride = std::numeric_limits<std::int64_t>::min();
    EXPECT_EQ(told(args), "OK");
}

// A bound of the rows may be above them all, and other heads begin where the rows end.
TEST(CheckOutputs, TakesAnyBoundOfPackedRows) {
    FwdArgs args = forward();
    args.shape.mode = Mode::group;
    args.shape.seqlen_q = args.shape.seqlen_k = 0;
    args.shape.max_seqlen_q = 1000;
    EXPECT_EQ(told(args, 1000), "OK");
    BwdArgs gradients = backward();
    gradients.shape.mode = Mode::group;
    gradients.shape.max_seqlen_q = 1000;
    EXPECT_EQ(told(gradients, 1000), "OK");
    gradients.dk.head_stride = width - 1;
    EXPECT_THAT(told(gradients, 1000), HasSubstr("dk has head stride 15 and column stride 1"));
}

TEST(CheckOutputs, RefusesPackedRowsOfOnePlace) {
    FwdArgs args = forward();
    args.shape.mode = Mode::group;
    args.shape.seqlen_q = args.shape.seqlen_k = 0;
    args.o.batch_stride = args.lse.batch_stride = args.randval.batch_stride = 0;
    EXPECT_EQ(told(args, keys), "OK");
    args.o.row_stride = 0;
    EXPECT_THAT(told(args, keys), HasSubstr("o has row stride 0"));
    BwdArgs gradients = backward();
    gradients.shape.mode = Mode::group;
    gradients.dk.row_stride = 0;
    EXPECT_THAT(told(gradients, keys), HasSubstr("dk has row stride 0"));
    EXPECT_EQ(told(gradients), "OK") << "where nobody says how many keys there are";
}

/// Of attention whose O has one place for all heads.
template <class Args>
Args heads_in_one_place() {
    Args args;
    args.shape = shape();
    args.o = dense(queries, width);
    args.o.head_stride = 0;
    return args;
}

template <class Args>
void expect_refused(Args args, TensorView Args::*output, const std::string& name) {
    (args.*output).head_stride = 0;
    EXPECT_THAT(told(args), HasSubstr("L-4: " + name + " has ")) << name;
}

TEST(CheckOutputs, KnowsTheOutputsOfEveryFamily) {
    EXPECT_THAT(told(heads_in_one_place<SplitKvArgs>()), HasSubstr("L-4: o has "));
    EXPECT_THAT(told(heads_in_one_place<PagedKvArgs>()), HasSubstr("L-4: o has "));
    EXPECT_THAT(told(heads_in_one_place<BatchPrefillArgs>()), HasSubstr("L-4: o has "));
    expect_refused(backward(), &BwdArgs::d, "d");
    expect_refused(backward(), &BwdArgs::dq, "dq");
    expect_refused(backward(), &BwdArgs::dk, "dk");
    expect_refused(backward(), &BwdArgs::dv, "dv");
    expect_refused(backward(), &BwdArgs::dbias, "dbias");
    expect_refused(append(), &AppendKvArgs::k, "k");
    expect_refused(append(), &AppendKvArgs::v, "v");
    AppendKvArgs rotated = append();
    rotated.q.head_stride = 0;
    EXPECT_EQ(told(rotated), "OK") << "queries are inputs until they are rotated";
    rotated.rope.type = Rope::interleaved;
    EXPECT_THAT(told(rotated), HasSubstr("L-4: q has "));
}

TEST(CheckOutputs, CountsSlotsOfACacheAsFarAsTheyAreKnown) {
    AppendKvArgs args = append();
    args.k.batch_stride = args.v.batch_stride = 0;
    EXPECT_THAT(told(args), HasSubstr("k has batch stride 0"));
    args.place.page_size = keys;
    EXPECT_EQ(told(args), "OK") << "there may be one page";
    args.place.page_count = 2;
    EXPECT_THAT(told(args), HasSubstr("k has batch stride 0"));
    args.seqlen_knew = 0;
    EXPECT_EQ(told(args), "OK") << "nothing is written";
}

TEST(CheckOutputs, WantsSinkLogitsForTheirGradients) {
    BwdArgs args = backward();
    float number = 0.0F;
    args.d_sink = &number;
    EXPECT_THROW(check_outputs(args, 0), InputError);
    EXPECT_THAT(told(args), HasSubstr("score.sink_logit is NULL"));
    args.score.sink_logit = &number;
    EXPECT_EQ(told(args), "OK");
}

} // namespace
} // namespace fmha::test
