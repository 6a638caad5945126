#include "dispatcher/types/check_cache.hpp"

#include "dispatcher/types/check_lengths.hpp"
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

/// The keys of one entry, and which argument says how many.
struct Keys {
    const char* field;
    std::int64_t count;
};

Keys keys_of(const Shape& shape, const LengthArrays& lengths, std::int64_t b) {
    const auto between = [b](const std::int32_t* offsets) {
        return std::int64_t{offsets[b + 1]} - offsets[b];
    };
    if (lengths.seqlen_k != nullptr) return {"seqlen_k", lengths.seqlen_k[b]};
    if (lengths.cu_seqlen_k != nullptr) return {"cu_seqlen_k", between(lengths.cu_seqlen_k)};
    if (shape.mode == Mode::group && lengths.seqstart_k != nullptr)
        return {"seqstart_k", between(lengths.seqstart_k)};
    return {"seqlen_k", shape.seqlen_k};
}

/// Keys that follow each other in a slot, or among those of a packed batch.
void check_slot(const Shape& shape, const LengthArrays& lengths, const KvPlace& place, std::int64_t b,
                const Keys& keys) {
    if (place.cache_batch_idx != nullptr && place.cache_batch_idx[b] < 0)
        reject("P-6", "cache_batch_idx", place.cache_batch_idx[b],
               fmt::format("cache_batch_idx of entry {} is {}; a slot is 0 or more", b,
                           place.cache_batch_idx[b]));
    const bool packed = shape.mode == Mode::group && lengths.seqstart_k != nullptr;
    const std::int64_t room = packed ? packed_length(lengths.seqstart_k, "seqstart_k", b) : shape.seqlen_k;
    if (keys.count > room)
        reject(
            "P-3", keys.field, keys.count,
            fmt::format("entry {} has {} keys; its part of the cache has room for {}", b, keys.count, room));
}

void check_table_row(const KvPlace& place, std::int64_t b, std::int64_t first, const Keys& keys) {
    const std::int64_t room = place.block_table_stride * place.page_size;
    if (first < 0 || first + keys.count > room)
        reject("P-3", keys.field, keys.count,
               fmt::format("entry {} has {} keys from slot {} on; a row of its block_table has room for {}",
                           b, keys.count, first, room));
    for (std::int64_t n = first / place.page_size; n * place.page_size < first + keys.count; ++n)
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
        const Keys keys = keys_of(shape, lengths, b);
        if (keys.count < 0)
            reject("P-3", keys.field, keys.count,
                   fmt::format("{} of entry {} is {}; a length is 0 or more", keys.field, b, keys.count));
        if (!paged)
            check_slot(shape, lengths, place, b, keys);
        else if (keys.count > 0)
            check_table_row(place, b, place.is_gappy ? lengths.seqstart_k[b] : 0, keys);
    }
}

} // namespace fmha
