#pragma once

#include "dispatcher/types/tensor_view.hpp"
#include "harness/cases/case.hpp"

#include <cstdint>
#include <vector>

namespace fmha::harness {

/// Where one element of a page lies in a layout with rows and columns.
struct PageCell {
    std::int64_t row = 0, col = 0;
};
/// Of channel `channel` of slot `slot`, in K or, `is_value`, in V. Pages of vectors (B-3) are rows of one vector each: of K
/// hdim_q / v · page_size of them, of V page_size / v · hdim_v, with v elements in 16 bytes.
PageCell page_cell(const Case& c, ElementType type, bool is_value, std::int64_t slot, std::int64_t channel);

/// Where the keys of a case's entries lie in its cache: slots or pages in an order that the seed decides, and a few that no
/// entry has. A block table has them by entry and logical page, a list of pages by entry from its first page on.
class CachePlaces {
  public:
    explicit CachePlaces(const Case& c);

    std::int64_t slots() const {
        return static_cast<std::int64_t>(order_.size());
    }                                           ///< slots, or pages of the pool
    std::int64_t rows() const { return rows_; } ///< of a slot, or of a page
    /// Entries of a row of the block table, of which the last one is nobody's.
    std::int64_t table_stride() const { return stride_; }
    std::int64_t slot(std::int64_t b) const { return order_[static_cast<std::size_t>(b)]; }

    /// Position of key 0 of entry b among the slots of its logical pages: 0 without gaps; for b = batch where another one
    /// would begin (P-2).
    std::int64_t start(std::int64_t b) const { return starts_[static_cast<std::size_t>(b)]; }
    /// Logical pages [first, end) that hold `keys` keys of entry b.
    struct PageRange {
        std::int64_t first = 0, end = 0;
    };
    PageRange pages(std::int64_t b, std::int64_t keys) const;
    /// The physical page.
    std::int64_t page(std::int64_t b, std::int64_t logical) const;

    /// Batch index and row of the key at a position of an entry.
    struct Place {
        std::int64_t slot = 0, row = 0;
    };
    Place of_key(std::int64_t b, std::int64_t position) const;
    /// The entry whose numbers that key has: entry 0 where all entries have its page.
    std::int64_t owner(std::int64_t b, std::int64_t position) const {
        return position < shared_ * rows_ ? 0 : b;
    }

  private:
    std::int64_t rows_, entry_pages_, shared_, stride_ = 0;
    std::vector<std::int64_t> starts_;
    std::vector<std::int64_t> order_;
};

} // namespace fmha::harness
