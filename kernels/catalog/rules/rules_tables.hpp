#pragma once

#include "kernels/catalog/catalog.hpp"
#include "kernels/catalog/rules/backward.hpp"

#include <map>

namespace fmha::catalog::audit {

/// Which of the two audited states of the hand-kept tables.
enum class RulesFlavour : std::uint8_t { claim, stored };

/// A tile of a table and where it stands.
struct ListedTile {
    Tile tile;
    std::string source;
};

/// The tiles of one head dimension, in list order.
struct HeadTiles {
    HeadDims head;
    std::vector<ListedTile> tiles;
};

/// Data type name → head dimensions in ascending order.
using TileTable = std::map<std::string, std::vector<HeadTiles>, std::less<>>;

/// Data type name → head dimensions in file order.
using HeadList = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

/// Everything that `claim` or `stored` says about one architecture.
struct RulesTables {
    ArchName arch;                       ///< as requested, also when another architecture's tiles stand in
    std::vector<std::string> data_types; ///< sorted
    TileTable forward, splitkv, pagedkv, batch_prefill;
    HeadList combine, appendkv;
    std::string variants_source; ///< place of the two lists above, for explanations
    BackwardTables backward;
    std::array<std::optional<std::vector<std::string>>, sweep_variants.size()> default_data_types;
    std::vector<Mode> prefill_modes;
    bool has_trload = false;  ///< trload and v3 kernels, and the rules that come with them
    RuleBits forward_rules{}; ///< the rules among RULES-* that apply

    bool applies(AuditRule rule) const { return (forward_rules & rule_bit(rule)) != 0; }
};

/// Reads the part `rule_sets.claim` or `rule_sets.stored` of an architecture. An architecture without a file
/// takes the forward tiles of the first one whose first five characters start its name and the data types of
/// gfx950; it stays itself wherever a rule looks at the name.
RulesTables read_rules_tables(const arch::ArchSet& archs, RulesFlavour flavour, std::string_view arch_name);

/// Reads an array of {data_types, head_dims}.
HeadList read_head_list(const TableNode& node);

/// The forward tiles of a data type: its own, else those of fp16, else those of bf16. Null when none.
const std::vector<HeadTiles>* forward_tiles(const RulesTables& tables, std::string_view data_type);

} // namespace fmha::catalog::audit
