#include "reference/numerics/places.hpp"

#include <algorithm>

namespace fmha::reference {

Entry entry_in_cache(const AttentionArgs& args, std::int64_t b) {
    Entry entry = entry_of(args, b);
    const KvPlace& place = args.place;
    if (place.is_gappy) entry.start_k = args.lengths.seqstart_k[b];
    if (place.kv_indptr == nullptr) return entry;
    const std::int64_t pages = std::int64_t{place.kv_indptr[b + 1]} - place.kv_indptr[b];
    const std::int64_t last = place.kv_last_page_lens != nullptr ? place.kv_last_page_lens[b] : 1;
    entry.seqlen_k = pages == 0 ? 0 : (pages - 1) * place.page_size + last;
    return entry;
}

KeyPlace key_place(const AttentionArgs& args, const Entry& entry, std::int64_t b, std::int64_t j) {
    const KvPlace& place = args.place;
    if (place.page_size == 0)
        return {place.cache_batch_idx != nullptr ? place.cache_batch_idx[b] : b, entry.start_k + j};
    if (place.kv_indptr != nullptr) {
        const std::int64_t page = place.kv_indptr[b] + j / place.page_size;
        return {place.kv_page_indices[page], j % place.page_size};
    }
    const std::int64_t t = place.is_gappy ? j + entry.start_k : j;
    return {place.block_table[b * place.block_table_stride + t / place.page_size], t % place.page_size};
}

std::int64_t key_element(const AttentionArgs& args, KvSide side, const KeyPlace& place, std::int64_t hk,
                         std::int64_t c) {
    const TensorView& view = side == KvSide::key ? args.k : args.v;
    if (args.place.layout != KvLayout::vectorized) return view.offset(place.page, hk, place.slot, c);
    const std::int64_t v = 128 / element_bits(view.type), t = place.slot;
    const std::int64_t inside = side == KvSide::key ? c / v * args.place.page_size * v + t * v + c % v
                                                    : t / v * args.shape.hdim_v * v + c * v + t % v;
    return place.page * view.batch_stride + hk * view.head_stride + inside;
}

bool in_split(std::int64_t n, std::int64_t s, std::int64_t seqlen_k, std::int64_t j) {
    const std::int64_t width = std::max<std::int64_t>(1, (seqlen_k + n - 1) / n);
    return j >= s * width && j < (s + 1) * width;
}

} // namespace fmha::reference
