// A kernel that multiplies in TF32 is right by its own declaration and by no stricter one.

#include "kernels/targets/hip/numerics.hpp"
#include "tests/harness/gate_support.hpp"

#include <bit>
#include <vector>

namespace fmha::harness::test {
namespace {

/// To `bits` significant bits, ties away from zero, as the conversion on the way to the matrix unit does.
float rounded(float value, int bits) {
    const int dropped = 24 - bits;
    const std::uint32_t code = std::bit_cast<std::uint32_t>(value) + (1U << (dropped - 1));
    return std::bit_cast<float>(code & ~((1U << dropped) - 1));
}

/// Rounds the elements of an fp32 tensor while it lives.
class RoundedTensor {
  public:
    RoundedTensor(const TensorView& view, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                  std::int64_t columns, int bits) {
        for (std::int64_t b = 0; b < batch; ++b)
            for (std::int64_t h = 0; h < heads; ++h)
                for (std::int64_t i = 0; i < rows; ++i)
                    for (std::int64_t c = 0; c < columns; ++c) {
                        float& element = static_cast<float*>(view.data)[view.offset(b, h, i, c)];
                        before_.push_back({&element, element});
                        element = rounded(element, bits);
                    }
    }
    RoundedTensor(const RoundedTensor&) = delete;
    RoundedTensor& operator=(const RoundedTensor&) = delete;
    ~RoundedTensor() {
        for (const auto& [element, value] : before_) *element = value;
    }

  private:
    std::vector<std::pair<float*, float>> before_;
};

class RoundingInstance final : public KernelInstance {
  public:
    RoundingInstance(std::shared_ptr<const KernelInstance> inner, int bits)
        : inner_(std::move(inner)), bits_(bits) {}
    const KernelConfig& config() const override { return inner_->config(); }
    std::string name() const override { return "rounding." + inner_->name(); }
    void launch(const Invocation& invocation, Stream stream) const override {
        const auto& a = std::get<FwdArgs>(invocation);
        const RoundedTensor q(a.q, a.shape.batch, a.shape.nhead_q, a.shape.seqlen_q, a.shape.hdim_q, bits_);
        const RoundedTensor k(a.k, a.shape.batch, a.shape.nhead_k, a.shape.seqlen_k, a.shape.hdim_q, bits_);
        const RoundedTensor v(a.v, a.shape.batch, a.shape.nhead_k, a.shape.seqlen_k, a.shape.hdim_v, bits_);
        inner_->launch(invocation, stream);
    }

  private:
    std::shared_ptr<const KernelInstance> inner_;
    int bits_;
};

/// A host kernel whose operands are rounded, with a declaration of the test's choice.
class RoundingKernel final : public FittingHostKernel {
  public:
    RoundingKernel(int bits, Numerics declared) : bits_(bits), declared_(declared) {}
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override {
        StageKernel candidate = FittingHostKernel::planned(problem, main);
        candidate.instance = std::make_shared<RoundingInstance>(candidate.instance, bits_);
        candidate.numerics = declared_;
        return candidate;
    }

  private:
    int bits_;
    Numerics declared_;
};

Numerics hopper_fp32() {
    KernelConfig config;
    config.arch = "sm_90";
    config.signature.data_type = DataType::fp32;
    return hip_target::numerics_of(config);
}

Case fp32_case() {
    Case c = small_case();
    c.data_type = DataType::fp32;
    c.mask = MaskType::top_left; // row 0 sees one key: its O is a row of V
    c.window_right = 0;
    return c;
}

CaseResult run(int bits, const Numerics& declared) {
    const auto results = run_case(fp32_case(), RoundingKernel(bits, declared), {});
    EXPECT_EQ(results.size(), 1U);
    return results.front();
}

TEST(Tf32, PassesItsOwnDeclaration) {
    const CaseResult result = run(11, hopper_fp32());
    EXPECT_EQ(result.outcome, Outcome::passed) << result.message;
    EXPECT_TRUE(verdict(result, "G5.3").passed);
}

TEST(Tf32, FailsTheDeclarationOfAnExactProduct) {
    Numerics exact = hopper_fp32();
    exact.u_m = exact.u_p = 0.0;
    const CaseResult result = run(11, exact);
    EXPECT_EQ(result.outcome, Outcome::failed);
    EXPECT_FALSE(verdict(result, "G2").passed);
    EXPECT_FALSE(verdict(result, "G5.3").passed);
}

TEST(Tf32, DoesNotCoverOperandsOfSixteenBits) {
    const CaseResult result = run(8, hopper_fp32());
    EXPECT_EQ(result.outcome, Outcome::failed);
    EXPECT_FALSE(verdict(result, "G5.3").passed);
}

} // namespace
} // namespace fmha::harness::test
