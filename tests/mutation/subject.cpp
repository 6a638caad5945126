#include "tests/mutation/subject.hpp"

#include "tests/mutation/mutants.hpp"

#include <utility>

namespace fmha::harness::test {
namespace {

class MutatedTarget final : public Target {
  public:
    explicit MutatedTarget(std::shared_ptr<const Target> original) : original_(std::move(original)) {}
    std::string_view name() const override { return "mutated"; }
    const std::string& arch() const override { return original_->arch(); }
    std::optional<std::string> cannot_execute(const KernelConfig& config) const override {
        return original_->cannot_execute(config);
    }
    StageKernel make(const KernelConfig& config) const override {
        StageKernel kernel = original_->make(config);
        kernel.instance = fmha::test::mutated_kernel(config);
        return kernel;
    }

  private:
    std::shared_ptr<const Target> original_;
};

} // namespace

std::shared_ptr<const Target> mutated_target(std::shared_ptr<const Target> original) {
    return std::make_shared<MutatedTarget>(std::move(original));
}

} // namespace fmha::harness::test
