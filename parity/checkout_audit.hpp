#pragma once

#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"
#include "parity/report.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace fmha::parity {

/// Which of a checkout's lists to compare with ours. Empty lists mean: all six APIs, every architecture that
/// has the rule set `ck`, profile ck_default, simplified masks.
struct CheckoutScope {
    std::filesystem::path root; ///< of a Composable Kernel checkout, or the folder that holds generate.py
    std::vector<ApiFamily> apis;
    std::vector<ArchName> archs;
    std::vector<catalog::Profile> profiles; ///< each needs upstream's number
    std::vector<catalog::MaskVocabulary> masks;
    std::string python = "python3";
    std::chrono::seconds time_per_list{600};
};

/// The options that a checkout's generator understands.
struct Generator {
    std::filesystem::path script;
    bool has_targets = true; ///< older ones write one list for all architectures, without suffix in the names
    bool has_mask = true;
};

/// Finds `generate.py` and asks it for its options. Throws InputError when there is none or when it does not
/// even print its help; the message has its standard error.
Generator find_generator(const CheckoutScope& scope);

/// Runs the checkout's generator for every combination, in parallel, and compares its names with ours. A
/// generator that fails is a failure with its whole stderr.
AuditReport audit_checkout(const arch::ArchSet& archs, const CheckoutScope& scope,
                           const OnCheck& on_check = {});

} // namespace fmha::parity
