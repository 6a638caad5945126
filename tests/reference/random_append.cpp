#include "tests/reference/random_append.hpp"

#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

namespace fmha::reference::test {
namespace {

constexpr std::int64_t page_keys = 128;

} // namespace

RandomAppend::RandomAppend(std::uint64_t seed, AppendWish wish) : engine_(seed), wish_(wish) {
    draw_extents();
    draw_place();
    const Shape& shape = args_.shape;
    const bool rotates = args_.rope.type != Rope::none;
    constexpr std::array types{ElementType::fp16, ElementType::bf16, ElementType::fp8_ocp, ElementType::fp32};
    const ElementType type = types[static_cast<std::size_t>(between(0, rotates ? 1 : 3))];
    const std::int64_t numbers = rotates ? args_.rope.rotary_dim : 0;
    args_.k = view(type, slots_, shape.nhead_k, slot_rows_, shape.hdim_q);
    args_.v = view(type, slots_, shape.nhead_k, slot_rows_, shape.hdim_v);
    args_.k_new = view(type, shape.batch, shape.nhead_k, args_.seqlen_knew, shape.hdim_q);
    fill(args_.k_new, shape.batch, shape.nhead_k, args_.seqlen_knew, shape.hdim_q, numbers);
    args_.v_new = view(type, shape.batch, shape.nhead_k, args_.seqlen_knew, shape.hdim_v);
    fill(args_.v_new, shape.batch, shape.nhead_k, args_.seqlen_knew, shape.hdim_v, 0);
    if (wish_.queries || chance(0.7)) {
        args_.q = view(type, shape.batch, shape.nhead_q, shape.seqlen_q, shape.hdim_q);
        fill(args_.q, shape.batch, shape.nhead_q, shape.seqlen_q, shape.hdim_q, numbers);
    }
    if (!rotates) return;
    const std::int64_t positions =
                           *std::ranges::max_element(cached_) + std::max(args_.seqlen_knew, shape.seqlen_q),
                       pairs = args_.rope.rotary_dim / 2;
    for (TensorView* const table : {&args_.rope.cos, &args_.rope.sin}) {
        *table = view(type, 1, 1, positions, pairs);
        fill(*table, 1, 1, positions, pairs, pairs);
    }
}

std::int64_t RandomAppend::between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
}

bool RandomAppend::chance(double probability) {
    return std::bernoulli_distribution(probability)(engine_);
}

void RandomAppend::draw_extents() {
    Shape& shape = args_.shape;
    shape.batch = between(wish_.paged || wish_.slots ? 2 : 1, 3);
    shape.nhead_k = between(1, 2);
    shape.nhead_q = shape.nhead_k * between(1, 3);
    shape.seqlen_q = between(wish_.queries ? 2 : 1, 5);
    shape.hdim_v = 8 * between(1, 4);
    args_.seqlen_knew = between(wish_.keys ? 2 : 0, 9);
    args_.has_mask = wish_.mask || (!wish_.no_mask && chance(0.5));
    const bool rotates = wish_.rope || wish_.interleaved || wish_.half_rotated || wish_.tail || chance(0.6);
    args_.rope.rotary_dim = rotates ? 16 * between(1, 2) : 0;
    shape.hdim_q = std::max<std::int64_t>(8, args_.rope.rotary_dim) + 8 * between(wish_.tail ? 1 : 0, 3);
    if (rotates)
        args_.rope.type = wish_.interleaved || (!wish_.half_rotated && chance(0.5)) ? Rope::interleaved
                                                                                    : Rope::half_rotated;
}

void RandomAppend::draw_place() {
    const std::int64_t batch = args_.shape.batch, added = args_.seqlen_knew;
    KvPlace& place = args_.place;
    const bool paged = wish_.paged || (!wish_.slots && chance(0.4));
    for (std::int64_t b = 0; b < batch; ++b) {
        // Half of the entries end near the edge of a page.
        const std::int64_t edge = page_keys - added - 2 + between(0, 2 + added);
        cached_.push_back(static_cast<std::int32_t>(paged && chance(0.5) ? edge : between(0, 20)));
    }
    args_.lengths.seqlen_k = cached_.data();
    if (!paged) {
        slot_rows_ = *std::ranges::max_element(cached_) + added + between(0, 3);
        slots_ = batch;
        args_.shape.seqlen_k = slot_rows_;
        if (!wish_.slots && chance(0.5)) return;
        slots_ += between(1, 3);
        cache_batch_idx_.resize(static_cast<std::size_t>(slots_));
        std::iota(cache_batch_idx_.begin(), cache_batch_idx_.end(), 0);
        do std::ranges::shuffle(cache_batch_idx_, engine_);
        while (wish_.slots &&
               std::ranges::is_sorted(cache_batch_idx_.begin(), cache_batch_idx_.begin() + batch));
        place.cache_batch_idx = cache_batch_idx_.data();
        return;
    }
    const std::int64_t pages = 2;
    place.page_size = slot_rows_ = page_keys;
    place.block_table_stride = pages + between(0, 2);
    place.page_count = slots_ = batch * pages + between(0, 3);
    std::vector<std::int32_t> free(static_cast<std::size_t>(slots_));
    std::iota(free.begin(), free.end(), 0);
    std::ranges::shuffle(free, engine_);
    block_table_.assign(static_cast<std::size_t>(batch * place.block_table_stride), -7);
    for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t p = 0; p < pages; ++p) {
            block_table_[static_cast<std::size_t>(b * place.block_table_stride + p)] = free.back();
            free.pop_back();
        }
    place.block_table = block_table_.data();
}

TensorView RandomAppend::view(ElementType type, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                              std::int64_t cols) {
    TensorView out;
    out.type = type;
    const std::int64_t line = cols + 2 * between(0, 2);
    const bool rows_outermost = chance(0.5);
    out.row_stride = rows_outermost ? heads * line : line;
    out.head_stride = rows_outermost ? line : rows * line;
    out.batch_stride = heads * rows * line;
    memory_.emplace_back(static_cast<std::size_t>(element_bytes(type, batch * heads * rows * line + 1)),
                         std::byte{0xFF});
    out.data = memory_.back().data();
    return out;
}

void RandomAppend::fill(const TensorView& view, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                        std::int64_t cols, std::int64_t numbers) {
    const auto size = static_cast<std::size_t>(element_bytes(view.type));
    for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t h = 0; h < heads; ++h)
            for (std::int64_t r = 0; r < rows; ++r)
                for (std::int64_t c = 0; c < cols; ++c) {
                    const std::uint32_t bits = code(view.type, c < numbers);
                    std::memcpy(static_cast<std::byte*>(view.data) +
                                    static_cast<std::size_t>(view.offset(b, h, r, c)) * size,
                                &bits, size);
                }
}

std::uint32_t RandomAppend::code(ElementType type, bool number) {
    const auto any = static_cast<std::uint32_t>(engine_());
    if (!number) return any;
    if (chance(0.05)) return encode(type, chance(0.5) ? 0.0 : -0.0);
    const double mantissa = std::normal_distribution<double>()(engine_);
    const int exponent = chance(0.8) ? 0 : static_cast<int>(between(-20, 14));
    return encode(type, std::ldexp(mantissa, exponent));
}

std::string RandomAppend::text() const {
    const Shape& s = args_.shape;
    std::string text =
        "batch " + std::to_string(s.batch) + " heads " + std::to_string(s.nhead_q) + "/" +
        std::to_string(s.nhead_k) + " hdim " + std::to_string(s.hdim_q) + "/" + std::to_string(s.hdim_v) +
        " queries " + std::to_string(s.seqlen_q) + " new " + std::to_string(args_.seqlen_knew) + " rope " +
        std::string(to_string(args_.rope.type)) + " " + std::to_string(args_.rope.rotary_dim) + " page " +
        std::to_string(args_.place.page_size) + (args_.has_mask ? " mask" : "") + " cached";
    for (const std::int32_t n : cached_) text += ' ' + std::to_string(n);
    return text;
}

} // namespace fmha::reference::test
