#pragma once

#include "kernels/catalog/rules/selection.hpp"
#include "kernels/catalog/rules/table_reader.hpp"

#include <string>
#include <vector>

namespace fmha::catalog::audit {

/// A head dimension pair.
struct HeadDims {
    std::int64_t q = 0, v = 0;
    friend bool operator==(const HeadDims&, const HeadDims&) = default;
    friend auto operator<=>(const HeadDims&, const HeadDims&) = default;
};

/// The backward tables, which `claim`, `stored` and `sweep` share.
struct BackwardTables {
    struct MainTile {
        HeadDims head;
        Tile tile;
        std::string source;
    };
    struct ExtraTile {
        HeadDims head;
        Tile tile;
        Tag tag;
        bool batch_only = false;
        std::string source;
    };
    struct ConvertDq {
        std::int64_t hdim = 0;
        int tile_groups = 1;
        std::string source;
    };
    struct WaveWarp {
        std::array<std::int16_t, 3> block{};
        bool trload = false;
        GemmTriples wave;
        std::int16_t warp_k1 = 16;
    };

    std::vector<MainTile> main_tiles;   ///< ascending head dimensions
    std::vector<ExtraTile> extra_tiles; ///< file order
    std::vector<std::int64_t> dot_do_o; ///< head dimensions
    std::string dot_do_o_source;
    std::vector<ConvertDq> convert_dq;
    BackwardFeatureAxes main_axes, extra_axes, small_axes;
    std::vector<WaveWarp> wave_warp;
};

/// Reads the table; entries that would give two kernels one name are an InputError.
BackwardTables read_backward_tables(const TableNode& table);

/// Appends rows of an array of wave and warp entries.
void append_wave_warp(const TableNode& rows, BackwardTables& tables);

/// Waves and warp tiles of a backward block tile: the row with the same size and trload, else the first row
/// with the same size, else four waves along n.
void set_backward_waves(const BackwardTables& tables, Algorithm& algorithm);

/// The table entry behind a backward kernel.
std::string backward_source(const BackwardTables& tables, const KernelConfig& config);

/// All backward kernels of one data type: dot_do_o, dq_dk_dv (main tiles, then extra tiles), convert_dq.
/// `allow_on_extra`: the mask and bias lists also restrict the extra tiles. `base` is the default record.
void enumerate_backward(const BackwardTables& tables, const Selection& selection, bool allow_on_extra,
                        const KernelConfig& base, RuleBits failed, const CandidateSink& sink);

} // namespace fmha::catalog::audit
