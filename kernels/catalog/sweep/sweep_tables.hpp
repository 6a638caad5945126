#pragma once

#include "kernels/catalog/rules/rules_tables.hpp"

namespace fmha::catalog::audit {

/// Everything that `sweep` says about one architecture.
struct SweepTables {
    struct Block {
        std::array<std::int16_t, 3> block{}; ///< m0, n0, k0
        std::int64_t hdim_q = 0;
        std::int16_t k1 = 0;
    };
    using WarpTile = std::array<std::int16_t, 3>;

    ArchName arch;
    std::vector<std::string> data_types; ///< sorted; may name types that have no kernels
    std::int64_t lds_banks = 32;
    std::int64_t async_copy_bytes = 4; ///< that one lane copies to LDS at once
    RuleBits rules{};                  ///< the rules among SWEEP-MFMA, -ASYNC-DMA and -GFX950 that apply
    bool has_trload = false;           ///< forward products include qr_async_trload and its v3

    std::map<std::string, std::vector<HeadDims>, std::less<>> heads; ///< file order
    std::map<std::string, std::vector<WarpTile>, std::less<>> warp_tiles;
    std::vector<WarpTile> other_warp_tiles;
    std::map<std::string, std::int64_t, std::less<>> element_bytes;
    std::int64_t other_element_bytes = 2;
    std::vector<std::int64_t> m0, n0, k0;
    std::map<std::int64_t, std::int64_t> k0max;
    std::int64_t lds_qr = 0, lds_qs = 0, lds_other = 0, lds_async = 0; ///< bytes
    std::vector<Block> k1, batch_prefill_k1;
    HeadList combine;
    BackwardTables backward;
    std::string source; ///< the shared table's place, for explanations

    bool applies(AuditRule rule) const { return (rules & rule_bit(rule)) != 0; }
    std::span<const WarpTile> warps(DataType type) const;
    std::int64_t bytes(DataType type) const;
    std::int16_t padded_head(std::int64_t hdim_q) const;
};

/// Reads `rule_sets.sweep`. An architecture without one takes the data types of gfx950 and, where upstream
/// looks at the name, the same as other names that start with gfx9, or that do not.
SweepTables read_sweep_tables(const arch::ArchSet& archs, std::string_view arch_name);

/// Whether upstream counts the type among the 8-bit ones when it chooses k1.
bool is_fp8_like(DataType type);

} // namespace fmha::catalog::audit
