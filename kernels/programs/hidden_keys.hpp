#pragma once

#include "kernels/programs/decisions.hpp"
#include "kernels/programs/head_rows.hpp"
#include "kernels/programs/mask.hpp"

#include <cstdint>

namespace fmha::kernels {

/// What a mask and the end of the keys hide in a tile of scores (F-5).
struct HiddenKeys {
    TileMask seen;
    MaskClass kernel = MaskClass::none;
    HeadRows heads;

    /// The score of the tile's element (row, column), −∞ where the row does not see the key.
    FMHA_DEVICE constexpr float operator()(float score, std::int32_t row, std::int32_t column) const {
        return seen.sees(heads.row(row), column, kernel) ? score : never;
    }
    FMHA_DEVICE constexpr TileMask::Columns columns_of(std::int32_t row) const {
        return seen.of_row(heads.row(row), kernel);
    }
};

} // namespace fmha::kernels
