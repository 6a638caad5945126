#pragma once

#include "kernels/catalog/catalog.hpp"

/// The functions that a rule set supplies to the catalogue. Each rule set lives in its own folder and offers one of these;
/// catalog.cpp lists them.
namespace fmha::catalog {

struct RuleSetOps {
    RuleSet rules;
    void (*enumerate)(const arch::ArchSet& archs, const Request& request, Sink sink);
    void (*append_name)(const Naming& naming, const KernelConfig& config, std::string& out);
    /// Null: the catalogue answers from the enumerated list alone.
    Why (*why)(const arch::ArchSet& archs, const Request& request, std::string_view name);
    std::vector<RuleRow> (*rules_of)();
};

} // namespace fmha::catalog
