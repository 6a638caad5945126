#pragma once

#include "dispatcher/types/kernel_config.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fmha {

enum class Severity : std::uint8_t { error, warning };

/// A rule that a configuration breaks (dispatcher-api 10.2).
struct RuleFinding {
    std::string_view id; ///< "VR-07"
    Severity severity = Severity::error;
    std::string message; ///< one sentence with field, value and limit
};

struct ValidationRule {
    std::string_view id;
    std::string_view says; ///< the rule in one sentence, for listings
};

/// The hardware part of an architecture file, as far as rules need it. Owned by its loader.
struct HardwareLimits {
    ArchName arch;
    std::uint32_t data_types = 0; ///< bit per DataType
    std::uint32_t pipelines = 0;  ///< bit per Pipeline
    bool is_cdna = false;         ///< VR-08 applies to CDNA only
    std::int64_t lds_bytes = 0;
    std::int64_t compute_units = 0;

    bool has(DataType type) const { return (data_types >> static_cast<unsigned>(type) & 1U) != 0; }
    bool has(Pipeline pipeline) const { return (pipelines >> static_cast<unsigned>(pipeline) & 1U) != 0; }
};

/// VR-01 … VR-19 in order, for callers who list what is checked: ids of findings are theirs.
std::span<const ValidationRule> validation_rules();

/// Every rule that `config` breaks on `hardware`, in rule order. Empty = valid.
std::vector<RuleFinding> validate(const KernelConfig& config, const HardwareLimits& hardware);

/// True when no rule of severity error is broken; the fast form of `validate`, no allocation.
bool is_valid(const KernelConfig& config, const HardwareLimits& hardware);

} // namespace fmha
