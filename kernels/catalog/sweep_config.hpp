#pragma once

#include "kernels/catalog/profile.hpp"

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Requests in the form of upstream's sweep configuration files, for the rule sets `claim`, `stored`,
/// `sweep` and `house` (README of this folder).
namespace fmha::catalog {

/// The requests that the sets `claim`, `stored` and `sweep` know, in the order in which a whole architecture
/// is enumerated. Each has one to three kernel families.
enum class SweepVariant : std::uint8_t { fwd, splitkv, pagedkv, appendkv, batch_prefill, bwd };

inline constexpr std::array sweep_variants{SweepVariant::fwd,           SweepVariant::splitkv,
                                           SweepVariant::pagedkv,       SweepVariant::appendkv,
                                           SweepVariant::batch_prefill, SweepVariant::bwd};

/// Bit of a mask allow-list that stands for `bottom_right`, which no MaskClass spells.
inline constexpr std::uint32_t bottom_right_bit = 1U << 3;

/// An allow-list over an enumeration or over {false, true}: bit per value. Absent = no restriction.
using AllowBits = std::optional<std::uint32_t>;

/// The restrictions of a sweep configuration. Masks have the bits of MaskClass and `bottom_right_bit`.
struct AllowLists {
    std::optional<std::vector<std::string>> data_types; ///< names, also of types without kernels
    AllowBits modes, masks, biases, pipelines, lse, dropout, logits, sink, paged_kv;
    std::optional<std::vector<std::int32_t>> block_per_cu; ///< without repetitions
    std::vector<std::array<std::int64_t, 2>> head_dims;    ///< (hdim_q, hdim_v) to keep; empty = all
};

/// A sweep configuration.
struct SweepConfig {
    SweepVariant variant = SweepVariant::fwd;
    AllowLists allow;
    std::string source; ///< file name, for messages
};

/// Which rules a configuration is for: they differ in the keys that something reads.
enum class SweepUse : std::uint8_t { hand_kept, sweep, exhaustive };

/// The use of a configuration by a rule set.
constexpr SweepUse sweep_use(RuleSet rules, bool exhaustive) {
    if (rules != RuleSet::sweep) return SweepUse::hand_kept;
    return exhaustive ? SweepUse::exhaustive : SweepUse::sweep;
}

/// Reads a configuration. `fallback` is the variant of a file that names none, which only `sweep` accepts.
/// Throws InputError that names file, key, value and the allowed values; a key that nothing reads for this
/// variant and use is an error too.
SweepConfig read_sweep_config(const std::filesystem::path& file, SweepUse use,
                              SweepVariant fallback = SweepVariant::fwd);
/// The same from text; `source` stands for the file in messages.
SweepConfig parse_sweep_config(std::string_view text, const std::string& source, SweepUse use,
                               SweepVariant fallback = SweepVariant::fwd);

} // namespace fmha::catalog

namespace fmha {

template <>
struct EnumTable<catalog::SweepVariant> {
    using enum catalog::SweepVariant;
    static constexpr std::array<EnumName<catalog::SweepVariant>, 6> names{{{fwd, "fwd"},
                                                                           {splitkv, "splitkv"},
                                                                           {pagedkv, "pagedkv"},
                                                                           {appendkv, "appendkv"},
                                                                           {batch_prefill, "batch_prefill"},
                                                                           {bwd, "bwd"}}};
    static constexpr auto& aliases = no_aliases<catalog::SweepVariant>;
};

} // namespace fmha
