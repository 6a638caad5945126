#pragma once

#include "kernels/programs/head_rows.hpp"

#include <cstdint>
#include <utility>

/// Mistakes in whose rows are in a tile that several heads share.
namespace fmha::test {

enum class RowMistake : std::uint8_t {
    none,
    masked_by_tile, ///< masks and sink logits count rows of the tile
    stored_as_rows, ///< rows of all heads go below each other to the first one
    stored_to_one,  ///< rows of all heads go to those of the first one
};

/// A block context of any target that makes one.
template <class Context>
class MistakenRows : public Context {
  public:
    template <class... OfContext>
    explicit MistakenRows(RowMistake mistake, OfContext&&... of_context)
        : Context(std::forward<OfContext>(of_context)...), mistake_(mistake) {}

    kernels::HeadRows scored_rows(const kernels::HeadRows& heads) const {
        return mistake_ == RowMistake::masked_by_tile ? kernels::HeadRows{} : heads;
    }
    kernels::HeadRows stored_rows(const kernels::HeadRows& heads) const {
        constexpr int all_bits = 31;
        if (mistake_ == RowMistake::stored_as_rows) return {};
        return mistake_ == RowMistake::stored_to_one ? kernels::HeadRows{heads.mask, all_bits} : heads;
    }

  private:
    RowMistake mistake_;
};

} // namespace fmha::test
