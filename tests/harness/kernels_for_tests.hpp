#pragma once

#include "harness/run/kernel_source.hpp"

#include <functional>

/// Kernels of which a test knows what is wrong with them.
namespace fmha::harness::test {

/// One host kernel a problem, built for exactly that problem: whatever the signature asks for, with padding
/// everywhere.
class FittingHostKernel : public KernelSource {
  public:
    explicit FittingHostKernel(std::int16_t m0 = 64, std::int16_t n0 = 64) : m0_(m0), n0_(n0) {}
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override;
    std::vector<StageKernel> accepting(const Problem& problem, const KernelConfig* main) const override {
        return {planned(problem, main)};
    }

  private:
    std::int16_t m0_, n0_;
};

/// The same, with `spoil` called on the arguments after each launch: a kernel that writes something wrong.
class SpoiledKernel final : public FittingHostKernel {
  public:
    explicit SpoiledKernel(std::function<void(const FwdArgs&)> spoil) : spoil_(std::move(spoil)) {}
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override;

  private:
    std::function<void(const FwdArgs&)> spoil_;
};

/// The same, which is told something else than it is asked: `mislead` changes the arguments before each launch. A kernel that takes
/// a stride or a length for granted.
class MisledKernel final : public FittingHostKernel {
  public:
    explicit MisledKernel(std::function<void(FwdArgs&)> mislead) : mislead_(std::move(mislead)) {}
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override;

  private:
    std::function<void(FwdArgs&)> mislead_;
};

/// A catalogue without kernels, or one of which every kernel refuses for one reason.
class NoKernels final : public KernelSource {
  public:
    explicit NoKernels(std::optional<Reason> refusal = std::nullopt) : refusal_(refusal) {}
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override;
    std::vector<StageKernel> accepting(const Problem& problem, const KernelConfig* main) const override {
        return {planned(problem, main)};
    }

  private:
    std::optional<Reason> refusal_;
};

} // namespace fmha::harness::test
