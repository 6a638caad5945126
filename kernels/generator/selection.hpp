#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/rule.hpp"
#include "kernels/arch/arch.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

/// Which kernels are generated: those of rule set `house`, or records of another list that keep the validation rules.
namespace fmha::generator {

struct NamedKernel {
    std::string name; ///< of the catalogue
    KernelConfig config;
    friend bool operator==(const NamedKernel&, const NamedKernel&) = default;
};

/// A kernel that is asked for and not generated, with the reason in one sentence.
struct DeclinedKernel {
    NamedKernel kernel;
    std::string reason;
};

/// The kernels of a list that become sources, and the others. Together they are the list.
struct Selection {
    std::vector<NamedKernel> kernels;
    std::vector<DeclinedKernel> declined;
};

/// The kernel's name in the catalogue.
NamedKernel named(const KernelConfig& config);

/// Why `config` must not exist: the first validation rule (VR-…) that it breaks on its architecture, or the rule of the
/// catalogue (HW, H…, R…) that keeps it out of the list of its architecture. Throws InputError for an architecture that
/// has no file.
std::optional<RuleFinding> forbidden(const arch::ArchSet& archs, const KernelConfig& config);

/// Why the HIP target does not execute `config`, one sentence.
std::optional<std::string> declined(const KernelConfig& config);

/// Splits a list. Its order stays.
Selection select(std::span<const KernelConfig> configs);

/// The same for a list whose records may break validation rules: those that do are declined with the rule, and so is a record
/// that differs from an earlier one in nothing by which kernels are named. Throws InputError for an architecture that has no file.
Selection select_valid(const arch::ArchSet& archs, std::span<const KernelConfig> configs);

} // namespace fmha::generator
