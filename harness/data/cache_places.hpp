#pragma once

#include "harness/cases/case.hpp"

#include <cstdint>
#include <vector>

namespace fmha::harness {

/// Where the keys of a case's entries lie in its cache: slots or pages in an order that the seed decides, and a few that no
/// entry has.
class CachePlaces {
  public:
    /// `room`: keys of an entry, whole pages of them where there are pages.
    CachePlaces(const Case& c, std::int64_t room);

    std::int64_t slots() const {
        return static_cast<std::int64_t>(order_.size());
    }                                                         ///< slots, or pages of the pool
    std::int64_t rows() const { return rows_; }               ///< of a slot, or of a page
    std::int64_t entry_pages() const { return entry_pages_; } ///< 0 without pages
    /// Entries of a row of the block table, of which the last one is nobody's.
    std::int64_t table_stride() const { return entry_pages_ + 1; }
    std::int64_t slot(std::int64_t b) const { return order_[static_cast<std::size_t>(b)]; }
    std::int64_t page(std::int64_t b, std::int64_t logical) const {
        return order_[static_cast<std::size_t>(b * entry_pages_ + logical)];
    }

    /// Batch index and row of the key at a position of an entry.
    struct Place {
        std::int64_t slot = 0, row = 0;
    };
    Place of_key(std::int64_t b, std::int64_t position) const {
        if (entry_pages_ == 0) return {slot(b), position};
        return {page(b, position / rows_), position % rows_};
    }

  private:
    std::int64_t rows_, entry_pages_;
    std::vector<std::int64_t> order_;
};

} // namespace fmha::harness
