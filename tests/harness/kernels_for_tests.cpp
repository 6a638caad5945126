#include "tests/harness/kernels_for_tests.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/run/declared_numerics.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"

namespace fmha::harness::test {
namespace {

class Spoiled final : public KernelInstance {
  public:
    Spoiled(std::shared_ptr<const KernelInstance> inner, std::function<void(const FwdArgs&)> spoil)
        : inner_(std::move(inner)), spoil_(std::move(spoil)) {}
    const KernelConfig& config() const override { return inner_->config(); }
    std::string name() const override { return "spoiled." + inner_->name(); }
    void launch(const Invocation& invocation, Stream stream) const override {
        inner_->launch(invocation, stream);
        spoil_(std::get<FwdArgs>(invocation));
    }

  private:
    std::shared_ptr<const KernelInstance> inner_;
    std::function<void(const FwdArgs&)> spoil_;
};

} // namespace

Candidate FittingHostKernel::planned(const Problem& problem) const {
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
    return {"fitting", host_target::make_instance(config),
            in_reference_terms(host_target::numerics_of(config))};
}

Candidate SpoiledKernel::planned(const Problem& problem) const {
    Candidate candidate = FittingHostKernel::planned(problem);
    candidate.name = "spoiled";
    candidate.instance = std::make_shared<Spoiled>(candidate.instance, spoil_);
    return candidate;
}

Candidate NoKernels::planned(const Problem& problem) const {
    throw NoKernelFound("no kernel takes " + problem.to_string() + ": the catalogue is empty");
}

} // namespace fmha::harness::test
