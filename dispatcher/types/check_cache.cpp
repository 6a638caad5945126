#include "dispatcher/types/check_cache.hpp"

#include "dispatcher/types/check_lengths.hpp"
#include "dispatcher/types/check_values.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace fmha {
namespace {

[[noreturn]] void miss(const char* rule, const char* field, const std::string& sentence) {
    throw ProblemError(rule, field, "absent", sentence);
}

void check_page(const char* rule, const char* field, std::int64_t b, std::int64_t at, std::int64_t page,
                const KvPlace& place) {
    if (page < 0 || page >= place.page_count)
        throw ProblemError(rule, field, page,
                           fmt::format("{} of entry {} has page {} at place {}; the pool has {} pages", field,
                                       b, page, at, place.page_count));
}

/// Those of the keys in the first `slots` slots of a page (Q-3, 15.5).
void check_page_descales(const QuantArgs& quant, std::int64_t heads, std::int64_t page, std::int64_t slots) {
    const bool by_token = quant.qscale == QScale::per_token_head;
    if (!by_token && quant.qscale != QScale::kv_blockscale) return;
    for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t t = 0; quant.k_descale.present() && t < (by_token ? slots : 1); ++t)
            check_descale("k_descale", quant.k_descale, quant.k_descale.offset(page, h, t, 0));
        if (!by_token && quant.v_descale.present())
            check_descale("v_descale", quant.v_descale, quant.v_descale.offset(page, h, 0, 0));
    }
}

/// The others: of whole tensors, of query rows and of the heads of V.
void check_other_descales(const QuantArgs& quant, const Shape& shape, const LengthArrays& lengths) {
    const auto check = [](const char* name, const TensorView& view, std::int64_t heads, std::int64_t first,
                          std::int64_t rows) {
        for (std::int64_t h = 0; view.present() && h < heads; ++h)
            for (std::int64_t i = first; i < first + rows; ++i)
                check_descale(name, view, view.offset(0, h, i, 0));
    };
    if (quant.qscale == QScale::no_scale) return;
    if (quant.qscale == QScale::per_token_head) {
        for (std::int64_t b = 0; b < shape.batch; ++b)
            check("q_descale", quant.q_descale, shape.nhead_q, lengths.seqstart_q[b],
                  query_length(shape, lengths, b));
        check("v_descale", quant.v_descale, shape.nhead_k, 0, 1);
        return;
    }
    check("q_descale", quant.q_descale, 1, 0, 1);
    if (quant.qscale != QScale::pertensor) return;
    check("k_descale", quant.k_descale, 1, 0, 1);
    check("v_descale", quant.v_descale, 1, 0, 1);
}

/// Kernels take a list of pages for one wherever there is one.
void check_no_list(const KvPlace& place) {
    for (const auto& [field, array] :
         {std::pair{"kv_indptr", place.kv_indptr}, std::pair{"kv_page_indices", place.kv_page_indices},
          std::pair{"kv_last_page_lens", place.kv_last_page_lens}})
        if (array != nullptr)
            throw ProblemError(
                "B-4", field, "present",
                fmt::format("{} belongs to the look-up sglang_1d of batch_prefill and must be NULL", field));
}

void check_list(const Shape& shape, const KvPlace& place, const QuantArgs& quant) {
    if (place.kv_indptr == nullptr) miss("B-4", "kv_indptr", "a list of pages needs kv_indptr");
    if (place.kv_page_indices == nullptr)
        miss("B-4", "kv_page_indices", "a list of pages needs kv_page_indices");
    if (place.page_size != 1 && place.kv_last_page_lens == nullptr)
        miss("B-4", "kv_last_page_lens",
             fmt::format("pages of {} keys need kv_last_page_lens", place.page_size));
    for (std::int64_t b = 0; b < shape.batch; ++b) {
        const std::int64_t begin = place.kv_indptr[b], end = place.kv_indptr[b + 1];
        if (begin < 0 || end < begin)
            throw ProblemError(
                "B-4", "kv_indptr", end,
                fmt::format("kv_indptr goes from {} to {} at entry {}; it may not decrease", begin, end, b));
        if (end > begin && place.kv_last_page_lens != nullptr) {
            const std::int64_t last = place.kv_last_page_lens[b];
            if (last < 1 || last > place.page_size)
                throw ProblemError("B-4", "kv_last_page_lens", last,
                                   fmt::format("kv_last_page_lens of entry {} is {}; allowed are 1 to {}", b,
                                               last, place.page_size));
        }
        for (std::int64_t n = begin; n < end; ++n) {
            const std::int64_t page = place.kv_page_indices[n];
            check_page("B-4", "kv_page_indices", b, n, page, place);
            const bool short_page = n + 1 == end && place.kv_last_page_lens != nullptr;
            check_page_descales(quant, shape.nhead_k, page,
                                short_page ? place.kv_last_page_lens[b] : place.page_size);
        }
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
    const bool packed = shape.mode == Mode::group && lengths.seqstart_k != nullptr;
    if (!packed) checked_slot(place, b);
    const std::int64_t room = packed ? packed_length(lengths.seqstart_k, "seqstart_k", b) : shape.seqlen_k;
    if (keys.count > room)
        throw ProblemError(
            "P-3", keys.field, keys.count,
            fmt::format("entry {} has {} keys; its part of the cache has room for {}", b, keys.count, room));
}

void check_table_row(const Shape& shape, const KvPlace& place, const QuantArgs& quant, std::int64_t b,
                     std::int64_t first, const Keys& keys) {
    if (place.block_table == nullptr) miss("P-2", "block_table", "pages need a block_table");
    const std::int64_t room = place.block_table_stride * place.page_size;
    if (first < 0 || first + keys.count > room)
        throw ProblemError(
            "P-3", keys.field, keys.count,
            fmt::format("entry {} has {} keys from slot {} on; a row of its block_table has room for {}", b,
                        keys.count, first, room));
    const std::int64_t end = first + keys.count;
    for (std::int64_t n = first / place.page_size; n * place.page_size < end; ++n) {
        const std::int64_t page = checked_page(place, b, n);
        check_page_descales(quant, shape.nhead_k, page, std::min(place.page_size, end - n * place.page_size));
    }
}

} // namespace

void check_page_numbers(const KvPlace& place) {
    constexpr std::int64_t most_keys = std::int64_t{1} << 30, most_pages = std::int64_t{1} << 31;
    if (place.page_size < 0 || place.page_size > most_keys)
        throw ProblemError(
            "P-2", "page_size", place.page_size,
            fmt::format("place.page_size is {}; allowed: 0 (not paged) to 2^30 keys", place.page_size));
    if (place.block_table_stride < 0 || place.block_table_stride > most_pages)
        throw ProblemError("P-2", "block_table_stride", place.block_table_stride,
                           fmt::format("place.block_table_stride is {}; allowed: 0 to 2^31 pages",
                                       place.block_table_stride));
}

std::int64_t checked_page(const KvPlace& place, std::int64_t b, std::int64_t logical) {
    const std::int64_t page = place.block_table[b * place.block_table_stride + logical];
    check_page("P-2", "block_table", b, logical, page, place);
    return page;
}

std::int64_t checked_slot(const KvPlace& place, std::int64_t b) {
    const bool looked_up = place.cache_batch_idx != nullptr;
    const std::int64_t slot = looked_up ? place.cache_batch_idx[b] : b, slots = place.page_count;
    if (slot < 0)
        throw ProblemError("P-6", "cache_batch_idx", slot,
                           fmt::format("cache_batch_idx of entry {} is {}; a slot is 0 or more", b, slot));
    if (slots != 0 && slot >= slots)
        throw ProblemError(
            "P-6", looked_up ? "cache_batch_idx" : "page_count", looked_up ? slot : slots,
            fmt::format("entry {} has slot {} of the cache, which has {} slots", b, slot, slots));
    return slot;
}

std::int64_t known_slots(const Shape& shape, const KvPlace& place) {
    if (place.page_size > 0 || place.cache_batch_idx != nullptr)
        return std::max<std::int64_t>(1, place.page_count);
    return shape.mode == Mode::group ? 1 : shape.batch;
}

void check_cache(const Shape& shape, const LengthArrays& lengths, const KvPlace& place,
                 const QuantArgs& quant) {
    check_page_numbers(place);
    const bool paged = place.page_size > 0;
    check_other_descales(quant, shape, lengths);
    if (paged && place.lookup == KvLookup::sglang_1d) return check_list(shape, place, quant);
    check_no_list(place);
    if (place.is_gappy && lengths.seqlen_k == nullptr)
        miss("P-3", "seqlen_k", "is_gappy needs the array seqlen_k");
    if (place.is_gappy && lengths.seqstart_k == nullptr)
        miss("P-3", "seqstart_k", "is_gappy needs the array seqstart_k");
    for (std::int64_t b = 0; b < shape.batch; ++b) {
        const Keys keys = keys_of(shape, lengths, b);
        if (keys.count < 0)
            throw ProblemError(
                "P-3", keys.field, keys.count,
                fmt::format("{} of entry {} is {}; a length is 0 or more", keys.field, b, keys.count));
        if (!paged)
            check_slot(shape, lengths, place, b, keys);
        else if (keys.count > 0)
            check_table_row(shape, place, quant, b, place.is_gappy ? lengths.seqstart_k[b] : 0, keys);
    }
}

} // namespace fmha
