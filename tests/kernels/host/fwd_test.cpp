#include "fwd_problem.hpp"
#include "judge.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/targets/host/host_target.hpp"

#include <gtest/gtest.h>

namespace fmha::host_target::test {
namespace {

constexpr Tile small_tile{.m0 = 32, .n0 = 32, .k0 = 16, .n1 = 32, .k1 = 16, .k0max = 64};
constexpr Tile wide_tile{.m0 = 64, .n0 = 128, .k0 = 32, .n1 = 16, .k1 = 32, .k0max = 64};

struct NamedShape {
    std::string name;
    Shape shape;
};
void PrintTo(const NamedShape& named, std::ostream* os) {
    *os << named.name;
}

std::vector<NamedShape> shapes() {
    std::vector<NamedShape> all;
    const auto add = [&](std::string name, auto change) {
        Shape shape;
        change(shape);
        all.push_back({std::move(name), shape});
    };
    for (const auto& entry : EnumTable<DataType>::names)
        for (const std::string arch : {"gfx950", "gfx942"}) {
            const DataType type = entry.value;
            const bool mx = type == DataType::mxfp8 || type == DataType::mxfp4;
            add(std::string(entry.name) + "_" + arch, [&](Shape& s) {
                s.data_type = type;
                s.arch = arch;
                if (mx) {
                    s.v_layout = VLayout::column;
                    s.qscale = QScale::mx;
                    s.hdim_q = 64;
                    s.seqlen_k = {84};
                }
            });
        }
    add("column_major_v", [](Shape& s) { s.v_layout = VLayout::column; });
    add("group", [](Shape& s) {
        s.group = true;
        s.batch = 4;
        s.seqlen_q = {5, 70, 0, 33};
        s.seqlen_k = {83, 1, 7, 0};
    });
    add("group_with_padding", [](Shape& s) {
        s.group = true;
        s.seqlen_q = {40, 3};
        s.seqlen_k = {17, 90};
        s.extra = 5;
    });
    add("batch_lengths", [](Shape& s) {
        s.seqlen_q = {64, 9};
        s.seqlen_k = {0, 65};
        s.extra = 3;
    });
    add("min_seqlen_q", [](Shape& s) {
        s.group = true;
        s.seqlen_q = {12, 13};
        s.min_seqlen_q = 12;
    });
    const auto mask = [](MaskType type, std::int64_t left, std::int64_t right, std::int64_t sink = 0) {
        return [=](Shape& s) { s.mask = {type, left, right, sink}; };
    };
    add("top_left_causal", mask(MaskType::top_left, -1, 0));
    add("bottom_right_causal", mask(MaskType::bottom_right, -1, 0));
    add("top_left_window", mask(MaskType::top_left, 20, 3));
    add("bottom_right_window", mask(MaskType::bottom_right, 20, 3));
    add("right_window", mask(MaskType::top_left, -1, 9));
    add("left_window", mask(MaskType::bottom_right, 11, -1));
    add("generic", mask(MaskType::window_generic, 5, -3));
    add("generic_negative_left", mask(MaskType::window_generic, -4, 30));
    add("sink_tokens", [](Shape& s) {
        s.seqlen_q = {170};
        s.seqlen_k = {190};
        s.mask = {MaskType::bottom_right, 20, 3, 5};
    });
    add("sink_tokens_more_queries", [](Shape& s) {
        s.seqlen_q = {190};
        s.seqlen_k = {70};
        s.mask = {MaskType::top_left, 20, 3, 40};
    });
    add("more_queries_than_keys", [](Shape& s) {
        s.seqlen_q = {90};
        s.seqlen_k = {33};
        s.mask = {MaskType::bottom_right, -1, 0, 0};
        s.sink_logit = true;
    });
    add("soft_cap", [](Shape& s) { s.soft_cap = 1.5F; });
    add("bias", [](Shape& s) { s.bias = BiasType::elementwise; });
    add("bias_group_fp8", [](Shape& s) {
        s.bias = BiasType::elementwise;
        s.data_type = DataType::fp8;
        s.group = true;
        s.seqlen_k = {20, 51};
    });
    add("alibi", [](Shape& s) { s.bias = BiasType::alibi; });
    add("alibi_causal", [](Shape& s) {
        s.bias = BiasType::alibi;
        s.mask = {MaskType::bottom_right, -1, 0, 0};
    });
    add("alibi_window", [](Shape& s) {
        s.bias = BiasType::alibi;
        s.mask = {MaskType::top_left, 30, 4, 0};
    });
    add("sink_logit", [](Shape& s) { s.sink_logit = true; });
    add("dropout", [](Shape& s) { s.p_drop = 0.3F; });
    add("dropout_group_causal", [](Shape& s) {
        s.p_drop = 0.1F;
        s.group = true;
        s.seqlen_q = {50, 66};
        s.mask = {MaskType::top_left, -1, 0, 0};
    });
    for (const QScale scale : {QScale::pertensor, QScale::blockscale})
        for (const bool group : {false, true})
            add(std::string(to_string(scale)) + (group ? "_group" : ""), [&](Shape& s) {
                s.data_type = DataType::fp8bf16;
                s.qscale = scale;
                s.group = group;
                s.seqlen_q = group ? std::vector<std::int64_t>{150, 40} : std::vector<std::int64_t>{150};
                s.seqlen_k = group ? std::vector<std::int64_t>{30, 300} : std::vector<std::int64_t>{300};
            });
    return all;
}

class HostForward : public testing::TestWithParam<NamedShape> {};

TEST_P(HostForward, AgreesWithTheReferenceForEveryTile) {
    FwdProblem problem(GetParam().shape);
    for (const Tile& tile : {small_tile, wide_tile}) {
        const KernelConfig config = problem.config(tile);
        problem.poison_outputs();
        run_kernel(config, problem.args());
        EXPECT_EQ(judge(problem, config).complaint(true), "") << "tile m0=" << tile.m0;
    }
}

INSTANTIATE_TEST_SUITE_P(All, HostForward, testing::ValuesIn(shapes()),
                         [](const auto& param_info) { return param_info.param.name; });

} // namespace
} // namespace fmha::host_target::test
