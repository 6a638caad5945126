// Relations between gradients that kernels compute, on the host and on the emulated machine: of a scaled dO, of other orders of heads and
// entries, and of reduced dK and dV.
#include "backward_problem.hpp"
#include "backward_specs.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "reference/backward.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/catalog/working_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

namespace fmha::test {
namespace {

/// Where kernels run, and whose they are.
struct Where {
    const char* name;
    const char* arch;
    bool emulated;
};
constexpr Where host{"host", "gfx942", false}, cdna{"emulated_gfx942", "gfx942", true},
    hopper{"emulated_sm_90", "sm_90", true};

/// Place, data type and head dimension.
using Relation = std::tuple<Where, DataType, int>;
class BackwardRelations : public testing::TestWithParam<Relation> {
  protected:
    static Where where() { return std::get<Where>(GetParam()); }
    static void launch_alone(const KernelConfig& kernel, const BwdArgs& args) {
        if (where().emulated)
            hip_target::emulate_kernel(kernel, args, {.threads = 1});
        else
            host_target::run_kernel(kernel, args, {.threads = 1});
    }
    static Numerics numerics_of(const KernelConfig& kernel) {
        return where().emulated ? hip_target::numerics_of(kernel) : host_target::numerics_of(kernel);
    }
    /// Around the first kernel of this data type and head dimension that has these features.
    BackwardChain chain_with(Mode mode, bool deterministic, BiasType bias) const {
        const auto kernel = std::ranges::find_if(mains_, [&](const KernelConfig& config) {
            const Signature& s = config.signature;
            return s.data_type == std::get<DataType>(GetParam()) && s.hdim_q == std::get<int>(GetParam()) &&
                   s.mode == mode && s.is_deterministic == deterministic && s.bias == bias &&
                   s.mask == MaskClass::generic && config.algorithm.pad.d != 0 &&
                   config.algorithm.max_seq_len_q == 0 && !s.has_dropout;
        });
        if (kernel == mains_.end()) throw Error("the catalogue has no such kernel");
        return chain_of(*kernel, dots_, converts_);
    }

  private:
    std::vector<KernelConfig> dots_ = list(KernelFamily::bwd_dot_do_o),
                              mains_ = list(KernelFamily::bwd_dq_dk_dv),
                              converts_ = list(KernelFamily::bwd_convert_dq);

    static std::vector<KernelConfig> list(KernelFamily family) {
        return catalog::test::working_list(where().arch, family);
    }
};
std::string name_of(const testing::TestParamInfo<Relation>& test) {
    return std::string(std::get<Where>(test.param).name) + "_" +
           std::string(to_string(std::get<DataType>(test.param))) + "_" +
           std::to_string(std::get<int>(test.param));
}
constexpr std::array every_type{DataType::fp16, DataType::bf16, DataType::fp32};
INSTANTIATE_TEST_SUITE_P(Host, BackwardRelations,
                         testing::Combine(testing::Values(host), testing::ValuesIn(every_type),
                                          testing::Values(32, 64, 128, 256)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Emulated, BackwardRelations,
                         testing::Combine(testing::Values(cdna, hopper), testing::ValuesIn(every_type),
                                          testing::Values(64)),
                         name_of);

/// Not of fp16: its small numbers lose bits.
class BackwardScaling : public BackwardRelations {};
INSTANTIATE_TEST_SUITE_P(Host, BackwardScaling,
                         testing::Combine(testing::Values(host),
                                          testing::Values(DataType::bf16, DataType::fp32),
                                          testing::Values(32, 64, 128, 256)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Emulated, BackwardScaling,
                         testing::Combine(testing::Values(cdna, hopper),
                                          testing::Values(DataType::bf16, DataType::fp32),
                                          testing::Values(64)),
                         name_of);

TEST_P(BackwardScaling, OfDoByAPowerOfTwoScalesEveryGradient) {
    for (const Mode mode : {Mode::batch, Mode::group}) {
        const BackwardChain chain = chain_with(mode, true, BiasType::elementwise);
        for (BackwardSpec spec : specs_for(chain.main)) {
            spec.sinks = BackwardSinks::normal;
            BackwardProblem problem(chain, spec);
            problem.run(launch_alone);
            const std::vector<double> before = problem.output_values();
            // Every stored dO that is a number, times 4.
            const TensorView& d_o = problem.args().d_o;
            auto* codes = static_cast<std::byte*>(d_o.data);
            const auto size = static_cast<std::size_t>(element_bytes(d_o.type, 1));
            const std::int64_t count =
                problem.args().shape.mode == Mode::batch
                    ? d_o.batch_stride * problem.args().shape.batch
                    : std::int64_t{problem.args().lengths.seqstart_q[problem.args().shape.batch]} *
                          spec.heads * (problem.args().shape.hdim_v + spec.gap);
            for (std::int64_t n = 0; n < count; ++n, codes += size) {
                std::uint32_t code = 0;
                std::memcpy(&code, codes, size);
                const double value = reference::decode(d_o.type, code);
                if (std::isnan(value)) continue;
                code = reference::encode(d_o.type, 4.0 * value);
                std::memcpy(codes, &code, size);
            }
            problem.reset();
            problem.run(launch_alone);
            const std::vector<double> after = problem.output_values();
            ASSERT_EQ(before.size(), after.size());
            int compared = 0;
            for (std::size_t n = 0; n < before.size(); ++n) {
                if (!std::isfinite(before[n]) || std::abs(before[n]) < 0x1p-100)
                    continue; // no gradient, or near the end of the type
                ASSERT_EQ(4.0 * before[n], after[n]) << spec.text() << " at " << n;
                ++compared;
            }
            EXPECT_GT(compared, 100) << spec.text();
        }
    }
}

/// The same memory with heads and entries counted from the other end.
void turn(TensorView& view, std::int64_t batch, std::int64_t heads) {
    if (!view.present()) return;
    const std::int64_t last = (batch - 1) * view.batch_stride + (heads - 1) * view.head_stride;
    view.data = static_cast<std::byte*>(view.data) + element_bytes(view.type, last);
    view.batch_stride = -view.batch_stride;
    view.head_stride = -view.head_stride;
}

TEST_P(BackwardRelations, PermutingHeadsAndEntriesPermutesEveryGradient) {
    for (const BiasType bias : {BiasType::no_bias, BiasType::elementwise}) {
        const BackwardChain chain = chain_with(Mode::batch, true, bias);
        const BackwardSpec spec{.batch = 3,
                                .heads = 4,
                                .kv_heads = 2,
                                .seqlen_q = {70},
                                .seqlen_k = {300},
                                .mask = {MaskType::bottom_right, 100, 0}};
        BackwardProblem problem(chain, spec);
        problem.run(launch_alone);
        const std::vector<std::byte> before = problem.outputs();
        problem.reset();
        BwdArgs& args = problem.args();
        const TensorView as_laid_out = args.dk;
        for (TensorView* view : {&args.k, &args.v}) turn(*view, spec.batch, spec.kv_heads);
        for (TensorView* view : {&args.q, &args.o, &args.lse, &args.d_o, &args.d, &args.dq, &args.dk,
                                 &args.dv, &args.bias, &args.dbias})
            turn(*view, spec.batch, spec.heads);
        problem.run(launch_alone);
        EXPECT_EQ(problem.outputs(), before) << to_string(bias);
        // The comparison sees heads that are mixed up: with dK as it was, it holds other heads' gradients.
        problem.reset();
        args.dk = as_laid_out;
        problem.run(launch_alone);
        EXPECT_NE(problem.outputs(), before) << to_string(bias);
    }
}

/// The stored bits of one element.
std::byte* bits_of(const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t c) {
    return static_cast<std::byte*>(view.data) + element_bytes(view.type, view.offset(b, h, j, c));
}

/// dK or dV of one key as numbers.
std::vector<double> line_of(const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t j,
                            std::int64_t cols) {
    std::vector<double> values;
    for (std::int64_t c = 0; c < cols; ++c) {
        std::uint32_t code = 0;
        std::memcpy(&code, bits_of(view, b, h, j, c), static_cast<std::size_t>(element_bytes(view.type, 1)));
        values.push_back(reference::decode(view.type, code));
    }
    return values;
}

/// The largest distance between a reduced gradient and the sum of those of the query heads, in units of the limits of both.
double distance_of_reduced(const BackwardProblem& reduced, const BackwardProblem& each,
                           const Numerics& numerics, std::int64_t heads) {
    const auto expected_of = [&](const BackwardProblem& problem) {
        reference::GradientOptions options;
        options.numerics = numerics;
        options.threads = 1;
        return reference::backward(problem.args(), {{}, reference::all_keys(problem.args()), false, false},
                                   options);
    };
    const reference::Gradients sums = expected_of(reduced), parts = expected_of(each);
    double worst = 0.0;
    for (const bool of_k : {true, false}) {
        const reference::GradientTable &sum_table = of_k ? sums.dk : sums.dv,
                                       &part_table = of_k ? parts.dk : parts.dv;
        const auto values = [&](const BackwardProblem& problem, const reference::KeyId& id) {
            return line_of(of_k ? problem.args().dk : problem.args().dv, id.b, id.h, id.j, sum_table.cols);
        };
        std::vector<double> limit(sum_table.value.size()), difference(limit.size());
        const auto line_of_key = [&](const reference::KeyId& id) {
            return std::ranges::find(sums.request.keys, id) - sums.request.keys.begin();
        };
        const auto add = [&](const reference::Gradients& gradients, const reference::GradientTable& table,
                             const BackwardProblem& problem, std::int64_t line, double sign) {
            reference::KeyId id = gradients.request.keys[static_cast<std::size_t>(line)];
            const std::vector<double> got = values(problem, id);
            const reference::GradientBound bound(gradients, table, line,
                                                 reference::GradientBound::Stored::tag);
            if (sign < 0.0) id.h /= heads;
            for (std::int64_t c = 0; c < table.cols; ++c) {
                difference[sum_table.at(line_of_key(id), c)] += sign * got[static_cast<std::size_t>(c)];
                limit[sum_table.at(line_of_key(id), c)] += bound.limit(c);
            }
        };
        for (std::int64_t line = 0; line < sum_table.lines; ++line) add(sums, sum_table, reduced, line, 1.0);
        for (std::int64_t line = 0; line < part_table.lines; ++line) add(parts, part_table, each, line, -1.0);
        for (std::size_t n = 0; n < limit.size(); ++n)
            worst = std::max(worst, difference[n] == 0.0 ? 0.0 : std::abs(difference[n]) / limit[n]);
    }
    return worst;
}

TEST_P(BackwardRelations, ReducedGradientsAreTheSumsOverTheHeads) {
    for (const bool deterministic : {false, true}) {
        const BackwardChain chain = chain_with(Mode::batch, deterministic, BiasType::elementwise);
        BackwardSpec spec{.batch = 2,
                          .heads = 6,
                          .kv_heads = 2,
                          .seqlen_q = {70},
                          .seqlen_k = {150},
                          .mask = {MaskType::bottom_right, 60, 0},
                          .compute_units = 3};
        const BackwardProblem each(chain, spec);
        spec.reduce_dk_dv = true;
        BackwardProblem reduced(chain, spec);
        each.run(launch_alone);
        reduced.run(launch_alone);
        const Numerics numerics = numerics_of(chain.main);
        EXPECT_LE(distance_of_reduced(reduced, each, numerics, 3), 1.0);
        // The comparison sees a head that is missing.
        const TensorView& dk = reduced.args().dk;
        for (std::int64_t c = 0; c < reduced.args().shape.hdim_q; ++c)
            std::memcpy(bits_of(dk, 1, 1, 100, c), bits_of(each.args().dk, 1, 3, 100, c),
                        static_cast<std::size_t>(element_bytes(dk.type, 1)));
        EXPECT_GT(distance_of_reduced(reduced, each, numerics, 3), 1.0);
    }
}

} // namespace
} // namespace fmha::test
