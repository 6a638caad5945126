// Rounding half up instead of half to even, put into the host kernel's two conversions, is seen by the fills whose values
// are ties; on other data it is not, because a tie is one value in thousands.

#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/data/fwd_tensors.hpp"
#include "harness/data/tie_values.hpp"
#include "kernels/programs/programs.hpp"
#include "kernels/targets/host/executor.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/harness/gate_support.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace fmha::harness::test {
namespace {

using testing::HasSubstr;

/// x rounded to the nearest value of `type`, half ways away from zero.
float half_up(float x, ElementType type) {
    const double even = reference::round_to(type, x), step = reference::spacing(type, x);
    if (std::abs(x - even) * 2.0 != step || std::abs(even) > std::abs(x)) return static_cast<float>(even);
    return static_cast<float>(x + std::copysign(step / 2.0, x));
}

enum class Rounding { even, outputs_half_up, weights_half_up };

/// The host's block context with one conversion replaced.
class RoundingContext : public host_target::HostContext {
  public:
    RoundingContext(const KernelConfig& config, Rounding rounding)
        : HostContext(config, nullptr), rounding_(rounding) {}

    host_target::FloatTile narrow(const host_target::FloatTile& scores, bool carried = false) const {
        if (rounding_ != Rounding::weights_half_up) return HostContext::narrow(scores, carried);
        for (int r = 0; r < scores.rows; ++r)
            for (int c = 0; c < scores.cols; ++c)
                scores.row(r)[c] =
                    half_up(scores.row(r)[c] / (carried ? 1.0F : weight_unit()), weight_type());
        return scores;
    }
    using HostContext::store;
    void store(const kernels::Matrix& matrix, const host_target::FloatTile& tile, std::int64_t row0,
               std::int64_t col0) const {
        if (rounding_ == Rounding::outputs_half_up)
            for (int r = 0; r < tile.rows; ++r)
                for (int c = 0; c < tile.cols; ++c)
                    tile.row(r)[c] = half_up(tile.row(r)[c], matrix.tensor.type);
        HostContext::store(matrix, tile, row0, col0);
    }

  private:
    Rounding rounding_;
};

class RoundingInstance final : public KernelInstance {
  public:
    RoundingInstance(std::shared_ptr<const KernelInstance> right, Rounding rounding)
        : right_(std::move(right)), rounding_(rounding) {}
    const KernelConfig& config() const override { return right_->config(); }
    std::string name() const override { return right_->name(); }
    void launch(const Invocation& invocation, Stream) const override {
        host_target::run_blocks(kernels::Program<KernelFamily::fwd>{}, config(),
                                std::get<FwdArgs>(invocation), {.threads = 1},
                                [&](auto*) { return RoundingContext(config(), rounding_); });
    }

  private:
    std::shared_ptr<const KernelInstance> right_;
    Rounding rounding_;
};

class RoundingKernel final : public FittingHostKernel {
  public:
    explicit RoundingKernel(Rounding rounding) : rounding_(rounding) {}
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override {
        StageKernel candidate = FittingHostKernel::planned(problem, main);
        candidate.instance = std::make_shared<RoundingInstance>(candidate.instance, rounding_);
        return candidate;
    }

  private:
    Rounding rounding_;
};

CaseResult run(const Case& c, Rounding rounding, const std::string& arch = "gfx950") {
    CaseRunOptions options;
    options.arch = arch;
    return run_case(c, RoundingKernel(rounding), options).front();
}

Case tie_case(DataType type) {
    Case c = small_case();
    c.data_type = type;
    c.seqlen_k = {128};
    c.fill = Fill::ties;
    return c;
}

Case weight_tie_case(DataType type) {
    Case c = tie_case(type);
    c.fill = Fill::weight_ties;
    c.scale_s = std::log(2.0);
    return c;
}

using TypeOnArch = std::pair<DataType, const char*>;
class OutputTies : public testing::TestWithParam<TypeOnArch> {};
class WeightTies : public testing::TestWithParam<TypeOnArch> {};

TEST_P(OutputTies, SeeRoundingHalfUp) {
    const auto [type, arch] = GetParam();
    const CaseResult right = run(tie_case(type), Rounding::even, arch);
    EXPECT_EQ(right.outcome, Outcome::passed) << right.message;
    EXPECT_TRUE(verdict(right, "exact").passed);
    const CaseResult wrong = run(tie_case(type), Rounding::outputs_half_up, arch);
    EXPECT_EQ(wrong.outcome, Outcome::failed);
    EXPECT_FALSE(verdict(wrong, "exact").passed);
    EXPECT_THAT(verdict(wrong, "exact").detail, HasSubstr("the exact value"));
}

TEST_P(WeightTies, SeeRoundingHalfUp) {
    const auto [type, arch] = GetParam();
    const CaseResult right = run(weight_tie_case(type), Rounding::even, arch);
    EXPECT_EQ(right.outcome, Outcome::passed) << right.message;
    EXPECT_TRUE(verdict(right, "exact").passed);
    const CaseResult wrong = run(weight_tie_case(type), Rounding::weights_half_up, arch);
    EXPECT_EQ(wrong.outcome, Outcome::failed);
    EXPECT_FALSE(verdict(wrong, "exact").passed);
}

std::string type_and_arch(const testing::TestParamInfo<TypeOnArch>& test) {
    return std::string(to_string(test.param.first)) + "_" + test.param.second;
}

// bf16 has no tie among the weights.
const auto narrow_weights =
    testing::Values(TypeOnArch{DataType::fp16, "gfx950"}, TypeOnArch{DataType::fp8, "gfx950"},
                    TypeOnArch{DataType::bf8, "gfx950"}, TypeOnArch{DataType::fp8bf16, "gfx950"},
                    TypeOnArch{DataType::fp8, "gfx942"}, TypeOnArch{DataType::bf8, "gfx942"},
                    TypeOnArch{DataType::fp8bf16, "gfx942"});
INSTANTIATE_TEST_SUITE_P(NarrowTypes, OutputTies, narrow_weights, type_and_arch);
INSTANTIATE_TEST_SUITE_P(NarrowTypes, WeightTies, narrow_weights, type_and_arch);
INSTANTIATE_TEST_SUITE_P(Bfloat, OutputTies, testing::Values(TypeOnArch{DataType::bf16, "gfx950"}),
                         type_and_arch);

TEST(TieFills, OtherDataDoNotSeeRoundingHalfUp) {
    // This is why the fills exist.
    Case c = tie_case(DataType::bf16);
    c.fill = Fill::normal;
    EXPECT_EQ(run(c, Rounding::outputs_half_up).outcome, Outcome::passed);
    EXPECT_EQ(run(c, Rounding::weights_half_up).outcome, Outcome::passed);
}

TEST(TieFills, WithoutATieAreNotPassedOver) {
    Case c = tie_case(DataType::fp16);
    c.seqlen_k = {3};
    EXPECT_THAT(verdict(run(c, Rounding::even), "exact").detail, HasSubstr("no row is a tie"));
    c = tie_case(DataType::fp16);
    c.logits_soft_cap = 30.0;
    EXPECT_THAT(verdict(run(c, Rounding::even), "exact").detail, HasSubstr("soft-cap"));
    c = weight_tie_case(DataType::fp16);
    c.mask = MaskType::top_left;
    c.window_left = c.window_right = 0;
    EXPECT_THAT(verdict(run(c, Rounding::even), "exact").detail,
                HasSubstr("no row has a weight that is a tie"));
}

/// The verdict of `exact` on the host's outputs for `c`, judged as those of a kernel that declares `numerics`.
GateVerdict exact_of(const Case& c, const std::function<void(Numerics&)>& declare) {
    class Declaring final : public FittingHostKernel {
      public:
        explicit Declaring(const std::function<void(Numerics&)>& declare) : declare_(declare) {}
        StageKernel planned(const Problem& problem, const KernelConfig* main) const override {
            StageKernel kernel = FittingHostKernel::planned(problem, main);
            declare_(kernel.numerics);
            return kernel;
        }

      private:
        const std::function<void(Numerics&)>& declare_;
    };
    return verdict(run_case(c, Declaring(declare), {}).front(), "exact");
}

TEST(TieFills, OfKernelsForWhichTheyAreNoTiesAreNotPassedOver) {
    const Case weights = weight_tie_case(DataType::fp16);
    GateVerdict exact = exact_of(weights, [](Numerics& n) { n.normalised_p = true; });
    EXPECT_FALSE(exact.passed);
    EXPECT_THAT(exact.detail, HasSubstr("casts P after the division"));
    exact = exact_of(weights, [](Numerics& n) { n.f_p /= 2.0; });
    EXPECT_FALSE(exact.passed);
    EXPECT_THAT(exact.detail, HasSubstr("larger pre-scale"));
    exact = exact_of(tie_case(DataType::fp16), [](Numerics& n) { n.f_p /= 3.0; });
    EXPECT_FALSE(exact.passed);
    EXPECT_THAT(exact.detail, HasSubstr("pre-scale is no power of two"));
    // CDNA 2 flushes more than ties.
    EXPECT_TRUE(exact_of(weights, [](Numerics& n) { n.f_p = 0x1p-14; }).passed);
}

TEST(TieFills, HoldTies) {
    for (const auto& [type, flavour] :
         {std::pair{DataType::fp16, Fp8Flavour::ocp}, std::pair{DataType::bf16, Fp8Flavour::ocp},
          std::pair{DataType::fp8, Fp8Flavour::ocp}, std::pair{DataType::bf8, Fp8Flavour::ocp},
          std::pair{DataType::fp8bf16, Fp8Flavour::ocp}, std::pair{DataType::fp8, Fp8Flavour::fnuz},
          std::pair{DataType::bf8, Fp8Flavour::fnuz}}) {
        const ElementTypes types = element_types(type, flavour);
        int to_larger = 0, to_smaller = 0;
        for (std::int64_t c = 0; c < 200; ++c) {
            const Random random(3, 2);
            const double even = tied_value(random, 0, c, types.v, types.o),
                         odd = tied_value(random, 1, c, types.v, types.o);
            ASSERT_EQ(reference::round_to(types.v, even), even);
            ASSERT_EQ(reference::round_to(types.v, odd), odd);
            const double mean = (even + odd) / 2.0, rounded = reference::round_to(types.o, mean);
            ASSERT_EQ(std::abs(rounded - mean) * 2.0, reference::spacing(types.o, mean))
                << even << " " << odd;
            (std::abs(rounded) > std::abs(mean) ? to_larger : to_smaller)++;
        }
        EXPECT_GT(to_larger, 20);
        EXPECT_GT(to_smaller, 20);
    }
}

} // namespace
} // namespace fmha::harness::test
