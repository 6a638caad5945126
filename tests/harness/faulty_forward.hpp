#pragma once

#include "kernels/targets/host/faults/fault.hpp"
#include "tests/harness/kernels_for_tests.hpp"

#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace fmha::harness::test {

/// Forward's host kernel with a known mistake.
class FaultyForward final : public FittingHostKernel {
  public:
    explicit FaultyForward(host_target::Fault fault) : fault_(fault) {}
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override {
        StageKernel candidate = FittingHostKernel::planned(problem, main);
        candidate.instance = std::make_shared<Instance>(candidate.instance, fault_);
        return candidate;
    }

  private:
    class Instance final : public KernelInstance {
      public:
        Instance(std::shared_ptr<const KernelInstance> correct, host_target::Fault fault)
            : correct_(std::move(correct)), fault_(fault) {}
        const KernelConfig& config() const override { return correct_->config(); }
        std::string name() const override { return correct_->name(); }
        void launch(const Invocation& invocation, Stream) const override {
            host_target::run_fwd_with_fault(config(), std::get<FwdArgs>(invocation), fault_, {.threads = 1});
        }

      private:
        std::shared_ptr<const KernelInstance> correct_;
        host_target::Fault fault_;
    };

    host_target::Fault fault_;
};

} // namespace fmha::harness::test
