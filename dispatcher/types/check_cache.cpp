#include "dispatcher/types/check_cache.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <string>

namespace fmha {
namespace {

[[noreturn]] void reject(const char* rule, const char* field, std::int64_t value,
                         const std::string& sentence) {
    throw ProblemError(rule, field, std::to_string(value), sentence);
}

[[noreturn]] void miss(const char* rule, const char* field, const std::string& sentence) {
    throw ProblemError(rule, field, "absent", sentence);
}

void check_page(const char* rule, const char* field, std::int64_t b, std::int64_t at, std::int64_t page,
                const KvPlace& place) {
    if (page < 0 || page >= place.page_count)
        reject(rule, field, page,
               fmt::format("{} of entry {} has page {} at place {}; the pool has {} pages", field, b, page,
                           at, place.page_count));
}

void check_list(const Shape& shape, const KvPlace& place) {
    if (place.kv_indptr == nullptr) miss("B-4", "kv_indptr", "a list of pages needs kv_indptr");
    if (place.kv_page_indices == nullptr)
        miss("B-4", "kv_page_indices", "a list of pages needs kv_page_indices");
    if (place.page_size != 1 && place.kv_last_page_lens == nullptr)
        miss("B-4", "kv_last_page_lens",
             fmt::format("pages of {} keys need kv_last_page_lens", place.page_size));
    for (std::int64_t b = 0; b < shape.batch; ++b) {
        const std::int64_t begin = place.kv_indptr[b], end = place.kv_indptr[b + 1];
        if (begin < 0 || end < begin)
            reject(
                "B-4", "kv_indptr", end,
                fmt::format("kv_indptr goes from {} to {} at entry {}; it may not decrease", begin, end, b));
        if (end > begin && place.kv_last_page_lens != nullptr) {
            const std::int64_t last = place.kv_last_page_lens[b];
            if (last < 1 || last > place.page_size)
                reject("B-4", "kv_last_page_lens", last,
                       fmt::format("kv_last_page_lens of entry {} is {}; allowed are 1 to {}", b, last,
                                   place.page_size));
        }
        for (std::int64_t n = begin; n < end; ++n)
            check_page("B-4", "kv_page_indices", b, n, place.kv_page_indices[n], place);
    }
}

std::int64_t keys_of(const Shape& shape, const LengthArrays& lengths, std::int64_t b) {
    if (lengths.seqlen_k != nullptr) return lengths.seqlen_k[b];
    if (shape.mode == Mode::group && lengths.seqstart_k != nullptr)
        return std::int64_t{lengths.seqstart_k[b + 1]} - lengths.seqstart_k[b];
    return shape.seqlen_k;
}

void check_table_row(const KvPlace& place, std::int64_t b, std::int64_t first, std::int64_t keys) {
    const std::int64_t room = place.block_table_stride * place.page_size;
    if (first < 0 || first + keys > room)
        reject("P-3", "seqlen_k", keys,
               fmt::format("entry {} has {} keys from slot {} on; a row of its block_table has room for {}",
                           b, keys, first, room));
    for (std::int64_t n = first / place.page_size; n * place.page_size < first + keys; ++n)
        check_page("P-2", "block_table", b, n, place.block_table[b * place.block_table_stride + n], place);
}

} // namespace

void check_cache(const Shape& shape, const LengthArrays& lengths, const KvPlace& place) {
    const bool paged = place.page_size > 0;
    if (paged && (place.lookup == KvLookup::sglang_1d || place.kv_indptr != nullptr)) {
        check_list(shape, place);
        return;
    }
    if (paged && place.block_table == nullptr) miss("P-2", "block_table", "pages need a block_table");
    if (place.is_gappy && lengths.seqlen_k == nullptr)
        miss("P-3", "seqlen_k", "is_gappy needs the array seqlen_k");
    if (place.is_gappy && lengths.seqstart_k == nullptr)
        miss("P-3", "seqstart_k", "is_gappy needs the array seqstart_k");
    for (std::int64_t b = 0; b < shape.batch; ++b) {
        const std::int64_t keys = keys_of(shape, lengths, b);
        if (keys < 0)
            reject("P-3", "seqlen_k", keys,
                   fmt::format("seqlen_k of entry {} is {}; a length is 0 or more", b, keys));
        if (paged && keys > 0) check_table_row(place, b, place.is_gappy ? lengths.seqstart_k[b] : 0, keys);
        if (!paged && place.cache_batch_idx != nullptr && place.cache_batch_idx[b] < 0)
            reject("P-6", "cache_batch_idx", place.cache_batch_idx[b],
                   fmt::format("cache_batch_idx of entry {} is {}; a slot is 0 or more", b,
                               place.cache_batch_idx[b]));
    }
}

} // namespace fmha
