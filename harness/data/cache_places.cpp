#include "harness/data/cache_places.hpp"

#include "dispatcher/types/element.hpp"
#include "harness/cases/cache_case.hpp"
#include "harness/data/random.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fmha::harness {
namespace {

enum Stream : std::uint64_t { stream_order = 8, stream_gaps = 11 };

std::int64_t keys_of(const Case& c, std::int64_t b) {
    return c.seqlen_k[c.seqlen_k.size() == 1 ? 0 : static_cast<std::size_t>(b)];
}

/// Entries begin behind one another, with gaps of less than a page.
std::vector<std::int64_t> starts_of(const Case& c) {
    std::vector<std::int64_t> starts(static_cast<std::size_t>(c.batch) + 1, 0);
    if (!c.cache.gappy) return starts;
    const Random gaps(c.seed, stream_gaps);
    for (std::int64_t b = 0; b < c.batch; ++b)
        starts[static_cast<std::size_t>(b) + 1] =
            starts[static_cast<std::size_t>(b)] + keys_of(c, b) +
            gaps.integer(static_cast<std::uint64_t>(b), 1, c.cache.page_size - 1);
    return starts;
}

} // namespace

PageCell page_cell(const Case& c, ElementType type, bool is_value, std::int64_t slot, std::int64_t channel) {
    if (!is_vectorized(c)) return {slot, channel};
    const std::int64_t v = 128 / element_bits(type);
    if (is_value) return {slot / v * c.hdim_v + channel, slot % v};
    return {channel / v * c.cache.page_size + slot, channel % v};
}

CachePlaces::CachePlaces(const Case& c)
    : rows_(is_paged(c) ? c.cache.page_size : room_of(c)),
      // An entry that begins within a page may need one more.
      entry_pages_(is_paged(c) ? room_of(c) / c.cache.page_size + (c.cache.gappy ? 1 : 0) : 0),
      shared_(c.cache.shared_pages), starts_(starts_of(c)) {
    for (std::int64_t b = 0; b < c.batch && is_paged(c); ++b)
        stride_ = std::max(stride_, start(b) / rows_ + entry_pages_ + 1);
    const bool mixed = is_paged(c) || c.cache.cache_batch_idx;
    const std::int64_t used = is_paged(c) ? c.batch * entry_pages_ : c.batch;
    order_.resize(static_cast<std::size_t>(used + (mixed ? nobodys_pages : 0)));
    std::iota(order_.begin(), order_.end(), 0);
    if (!mixed) return;
    const Random seeded(c.seed, stream_order);
    const Random random =
        c.cache.page_order == 0 ? seeded : seeded.row(static_cast<std::uint64_t>(c.cache.page_order), 0);
    for (std::size_t n = order_.size() - 1; n > 0; --n)
        std::swap(order_[n],
                  order_[static_cast<std::size_t>(random.integer(n, 0, static_cast<std::int64_t>(n)))]);
}

CachePlaces::PageRange CachePlaces::pages(std::int64_t b, std::int64_t keys) const {
    if (keys <= 0 || entry_pages_ == 0) return {};
    return {start(b) / rows_, (start(b) + keys + rows_ - 1) / rows_};
}

std::int64_t CachePlaces::page(std::int64_t b, std::int64_t logical) const {
    const std::int64_t n = logical - start(b) / rows_, entry = n < shared_ ? 0 : b;
    return order_[static_cast<std::size_t>(entry * entry_pages_ + n)];
}

CachePlaces::Place CachePlaces::of_key(std::int64_t b, std::int64_t position) const {
    if (entry_pages_ == 0) return {slot(b), position};
    const std::int64_t t = start(b) + position;
    return {page(b, t / rows_), t % rows_};
}

} // namespace fmha::harness
