#pragma once

#include "dispatcher/registry/registry.hpp"

#include <string>
#include <utility>
#include <vector>

namespace fmha {

/// The names of a registry's kernels at one moment, for heuristics that speak of names.
class KernelNames {
  public:
    explicit KernelNames(const Registry& registry);

    /// Identifiers of the kernels whose name is `name` or matches it as a glob, in the registry's order; empty when none does.
    std::vector<std::string> identifiers(const std::string& name) const;

  private:
    std::vector<std::pair<std::string, std::string>> names_; ///< with identifiers
};

} // namespace fmha
