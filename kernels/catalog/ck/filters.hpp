#pragma once

#include "kernels/catalog/catalog.hpp"

namespace fmha::catalog::ck {

/// The glob patterns of a request.
class Filters {
  public:
    explicit Filters(const Request& request);

    /// The glob of the kernel's family. For backward, `candidate` is a trait and all three of its names must
    /// match.
    bool glob_keeps(const KernelConfig& candidate) const;

  private:
    bool matches(std::string_view pattern, const KernelConfig& config) const;

    MaskVocabulary masks_;
    std::array<std::string, 9> patterns_; ///< by kernel family; unused when `any_` is clear
    std::array<bool, 9> any_{};           ///< by kernel family: a pattern is to be matched
    mutable std::string scratch_;
};

} // namespace fmha::catalog::ck
