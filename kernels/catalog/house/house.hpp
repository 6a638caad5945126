#pragma once

#include "kernels/catalog/rule_set.hpp"
#include "kernels/catalog/tables/tables.hpp"

/// Rule set `house`: the working list. Upstream's tiles and pipelines plus extensions (HX-…), every record
/// valid.
namespace fmha::catalog::house {

const RuleSetOps& ops();

void enumerate(const arch::ArchSet& archs, const Request& request, Sink sink);
void append_name(const Naming& naming, const KernelConfig& config, std::string& out);
/// What a name begins with: the family, the architecture, the data type, the mode and the head dimensions.
void append_start(const ArchName& arch, const Signature& signature, std::string& out);
Why why(const arch::ArchSet& archs, const Request& request, std::string_view name);
std::vector<RuleRow> rule_rows();

/// The rules that house tables may name: those of `ck` and the house's own (H…).
std::span<const tables::Rule> all_rules();

/// True when the chip has the kernel's data type, its pipeline and, where it uses them, transposing loads
/// (rule HW).
bool hardware_has(const arch::Hardware& hardware, const KernelConfig& config);
inline constexpr std::string_view hardware_rule =
    "the architecture has the data type, the pipeline and transposing loads if the kernel uses them";

/// The parts of a record that follow from a table row: capabilities that cost nothing (HX-01, HX-02, HX-07),
/// alignments, and the architecture that it is built for.
KernelConfig finished(const KernelConfig& candidate, const ArchName& arch);

/// True when the profile keeps this kernel. The working list is one list: `ck_default`, `ck_extended`, `all`
/// and unlisted numbers keep all of it, fp32 included; surplus capabilities (sinks, skipping) never drop a
/// kernel.
bool keeps(const Profile& profile, const KernelConfig& config);

/// The family tables of one architecture; empty families are absent from its file.
struct FamilyTables {
    KernelFamily family;
    tables::ForwardGroup group;
};
std::vector<FamilyTables> forward_tables(const arch::ArchSet& archs, const ArchName& target,
                                         FamilySet families);
std::optional<tables::BackwardGroup> backward_tables(const arch::ArchSet& archs, const ArchName& target);

} // namespace fmha::catalog::house
