#include "tests/harness/kernels_for_tests.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"

namespace fmha::harness::test {
namespace {

/// A kernel with something done to its arguments before, or to its results after each launch.
class Altered final : public KernelInstance {
  public:
    Altered(std::shared_ptr<const KernelInstance> inner, std::function<void(FwdArgs&)> before,
            std::function<void(const FwdArgs&)> after)
        : inner_(std::move(inner)), before_(std::move(before)), after_(std::move(after)) {}
    const KernelConfig& config() const override { return inner_->config(); }
    std::string name() const override { return "altered." + inner_->name(); }
    void launch(const Invocation& invocation, Stream stream) const override {
        FwdArgs args = std::get<FwdArgs>(invocation);
        if (before_) before_(args);
        inner_->launch(args, stream);
        if (after_) after_(args);
    }

  private:
    std::shared_ptr<const KernelInstance> inner_;
    std::function<void(FwdArgs&)> before_;
    std::function<void(const FwdArgs&)> after_;
};

} // namespace

StageKernel FittingHostKernel::planned(const Problem& problem, const KernelConfig*) const {
    KernelConfig config;
    config.arch = problem.arch;
    config.signature = problem.signature;
    Algorithm& algorithm = config.algorithm;
    const auto hdim_q = static_cast<std::int16_t>((problem.signature.hdim_q + 31) / 32 * 32);
    algorithm.tile = {.m0 = m0_,
                      .n0 = n0_,
                      .k0 = 32,
                      .n1 = static_cast<std::int16_t>(problem.signature.hdim_v),
                      .k1 = 32,
                      .k0max = hdim_q};
    algorithm.pad = {.s = true, .sk = true, .d = 1, .dv = 1};
    return {"fitting", host_target::make_instance(config), host_target::numerics_of(config)};
}

StageKernel SpoiledKernel::planned(const Problem& problem, const KernelConfig* main) const {
    StageKernel candidate = FittingHostKernel::planned(problem, main);
    candidate.name = "spoiled";
    candidate.instance = std::make_shared<Altered>(candidate.instance, nullptr, spoil_);
    return candidate;
}

StageKernel MisledKernel::planned(const Problem& problem, const KernelConfig* main) const {
    StageKernel candidate = FittingHostKernel::planned(problem, main);
    candidate.name = "misled";
    candidate.instance = std::make_shared<Altered>(candidate.instance, mislead_, nullptr);
    return candidate;
}

StageKernel NoKernels::planned(const Problem& problem, const KernelConfig*) const {
    std::optional<Refusal> nearest;
    if (refusal_) nearest.emplace().reason = *refusal_;
    throw ProblemRefused(std::move(nearest),
                         "no kernel takes " + problem.to_string() + ": the catalogue is empty");
}

} // namespace fmha::harness::test
