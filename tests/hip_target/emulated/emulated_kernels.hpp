#pragma once

#include "harness/cases/case.hpp"
#include "harness/results/result.hpp"
#include "harness/run/kernel_source.hpp"
#include "kernels/targets/hip/instruction_names.hpp"

#include <functional>
#include <string>
#include <vector>

/// Kernels of the emulated target for tests that are about an instruction or a fault, not about planning.
namespace fmha::hip_target::test {

/// A configuration that the tests name.
struct NamedKernel {
    std::string name;
    KernelConfig config;
};

/// One configuration for every (matrix unit, instruction) that both products can use: the smallest one of the house
/// catalogue, or one made up for the instructions that no house kernel uses throughout.
std::vector<NamedKernel> kernel_of_every_instruction();

/// What the catalogue calls `config`.
std::string house_name(const KernelConfig& config);

/// The house kernel of `arch` with the smallest tiles for which `wanted` holds; the test fails when there is none.
KernelConfig smallest_house_kernel(const std::string& arch,
                                   const std::function<bool(const KernelConfig&)>& wanted);

/// Launches something in place of a kernel.
using Launcher = std::function<void(const KernelConfig&, const FwdArgs&)>;

/// The algorithm of one configuration with whatever signature a problem asks for, and with padding everywhere.
class FittingKernel final : public harness::KernelSource {
  public:
    explicit FittingKernel(const KernelConfig& model);
    FittingKernel(const KernelConfig& model, Launcher launcher)
        : model_(model), launcher_(std::move(launcher)) {}

    harness::StageKernel planned(const Problem& problem, const KernelConfig* main) const override;
    std::vector<harness::StageKernel> accepting(const Problem& problem,
                                                const KernelConfig* main) const override {
        return {planned(problem, main)};
    }

  private:
    KernelConfig model_;
    Launcher launcher_;
};

/// Exactly one configuration, whatever the problem asks for.
class ExactKernel final : public harness::KernelSource {
  public:
    explicit ExactKernel(const KernelConfig& config);
    ExactKernel(const KernelConfig& config, Launcher launcher)
        : config_(config), launcher_(std::move(launcher)) {}
    harness::StageKernel planned(const Problem& problem, const KernelConfig* main) const override;
    std::vector<harness::StageKernel> accepting(const Problem& problem,
                                                const KernelConfig* main) const override {
        return {planned(problem, main)};
    }

  private:
    KernelConfig config_;
    Launcher launcher_;
};

/// A small problem of the operand type that `kernel` multiplies, without any feature.
harness::Case plain_case(const KernelConfig& kernel);

/// The result of running `c` on the algorithm of `kernel`.
harness::CaseResult result_of(const harness::Case& c, const KernelConfig& kernel,
                              const harness::KernelSource& source);

} // namespace fmha::hip_target::test
