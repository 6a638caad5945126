#pragma once

#include "dispatcher/dispatcher.hpp"
#include "dispatcher/registry/registry.hpp"
#include "harness/cases/case.hpp"
#include "harness/run/targets.hpp"
#include "kernels/catalog/catalog.hpp"

#include <span>

namespace fmha::harness {

/// The kernels of a catalogue through the dispatcher: the plan for a problem, or all that accept it.
class CatalogueKernels final : public KernelSource {
  public:
    /// `namer` gives kernels the names under which reports show them, `devices` decide the number of splits (S-6).
    /// `types` has a bit for every DataType that the architecture's hardware has, `families` one for every KernelFamily that
    /// its list has.
    CatalogueKernels(const std::vector<KernelConfig>& configs, KernelNamer namer, std::vector<Device> devices,
                     std::shared_ptr<const Target> target, std::uint32_t types, std::uint32_t families);

    StageKernel planned(const Problem& problem, const KernelConfig* main) const override;
    std::vector<StageKernel> accepting(const Problem& problem, const KernelConfig* main) const override;
    bool has_type(DataType type) const override { return (types_ >> static_cast<unsigned>(type) & 1U) != 0; }
    bool has_family(KernelFamily family) const override {
        return (families_ >> static_cast<unsigned>(family) & 1U) != 0;
    }
    std::size_t size() const { return registry_.size(); }

  private:
    StageKernel stage_kernel(const KernelEntry& entry) const;
    StageQuery query_of(const Problem& resolved, const KernelConfig* main) const;
    /// Why no kernel takes the stage: the nearest ones and the features that each lacks.
    ProblemRefused refusal(const Problem& problem) const;

    Registry registry_;
    Dispatcher dispatcher_;
    std::shared_ptr<const Target> target_;
    std::uint32_t types_, families_;
};

/// The kernel families of all stages that `cases` may need; those of forward when there are no cases.
catalog::FamilySet kernel_families_of(std::span<const Case> cases);

/// The house catalogue of `families` for the target's architecture, executed on that target; `where` is an expression
/// over the catalogue that kernels must satisfy, empty for all. Throws InputError for an unknown architecture, a bad
/// expression or one that leaves no kernel.
std::unique_ptr<KernelSource>
house_kernels(const std::shared_ptr<const Target>& target, const std::string& where = {},
              catalog::FamilySet families = catalog::FamilySet::of(KernelFamily::fwd));

/// The same of other kernels for that architecture, under the names that `namer` gives them.
std::unique_ptr<KernelSource> listed_kernels(const std::shared_ptr<const Target>& target,
                                             const std::vector<KernelConfig>& kernels, KernelNamer namer);

} // namespace fmha::harness
