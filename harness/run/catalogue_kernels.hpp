#pragma once

#include "dispatcher/dispatcher.hpp"
#include "dispatcher/registry/registry.hpp"
#include "harness/run/targets.hpp"

namespace fmha::harness {

/// The kernels of a catalogue through the dispatcher: the plan for a problem, or all that accept it.
class CatalogueKernels final : public KernelSource {
  public:
    /// `namer` gives kernels the names under which reports show them.
    /// `types` has a bit for every DataType that the architecture's hardware has.
    CatalogueKernels(const std::vector<KernelConfig>& configs, KernelNamer namer,
                     std::shared_ptr<const Target> target, std::uint32_t types);

    Candidate planned(const Problem& problem) const override;
    std::vector<Candidate> accepting(const Problem& problem) const override;
    bool has_type(DataType type) const override { return (types_ >> static_cast<unsigned>(type) & 1U) != 0; }
    std::size_t size() const { return registry_.size(); }

  private:
    Candidate candidate(const KernelEntry& entry) const;
    /// Why no kernel takes `problem`: the nearest ones and what each lacks.
    ProblemRefused refusal(const Problem& problem) const;

    Registry registry_;
    Dispatcher dispatcher_;
    std::shared_ptr<const Target> target_;
    std::uint32_t types_;
};

/// The house catalogue of forward for the target's architecture, executed on that target; `where` is an expression
/// over the catalogue that kernels must satisfy, empty for all. Throws InputError for an unknown architecture, a bad
/// expression or one that leaves no kernel.
std::unique_ptr<KernelSource> house_kernels(const std::shared_ptr<const Target>& target,
                                            const std::string& where = {});

} // namespace fmha::harness
