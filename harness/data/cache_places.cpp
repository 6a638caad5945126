#include "harness/data/cache_places.hpp"

#include "harness/data/random.hpp"

#include <numeric>
#include <utility>

namespace fmha::harness {

CachePlaces::CachePlaces(const Case& c, std::int64_t room)
    : rows_(c.cache.page_size > 0 ? c.cache.page_size : room),
      entry_pages_(c.cache.page_size > 0 ? room / c.cache.page_size : 0) {
    constexpr std::int64_t nobodys = 2;
    const bool mixed = c.cache.page_size > 0 || c.cache.cache_batch_idx;
    const std::int64_t used = c.cache.page_size > 0 ? c.batch * entry_pages_ : c.batch;
    order_.resize(static_cast<std::size_t>(used + (mixed ? nobodys : 0)));
    std::iota(order_.begin(), order_.end(), 0);
    if (!mixed) return;
    const Random random(c.seed, 8);
    for (std::size_t n = order_.size() - 1; n > 0; --n)
        std::swap(order_[n],
                  order_[static_cast<std::size_t>(random.integer(n, 0, static_cast<std::int64_t>(n)))]);
}

} // namespace fmha::harness
