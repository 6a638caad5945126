#include "tests/reference/cache_problem.hpp"

#include "reference/views.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace fmha::reference::test {
namespace {

bool has_cache(QScale mode) {
    return mode == QScale::no_scale || mode == QScale::pertensor;
}

} // namespace

CacheProblem::CacheProblem(std::uint64_t seed, const CacheWish& wish)
    : engine_(seed), wish_(wish), base_(seed, wish.problem) {
    FwdArgs& base = base_.args();
    base.shape.min_seqlen_q = 0;
    const std::int64_t unit = 128 / element_bits(base.k.type);
    if (wish.vectorized) base.shape.hdim_q -= base.shape.hdim_q % unit;
    possible_ = has_cache(base.quant.qscale) && element_bits(base.k.type) >= 8 && base.shape.hdim_q > 0 &&
                (wish.kind != CacheKind::slots || base.shape.mode == Mode::batch);
    if (!possible_) return;
    args_ = attention_of(base);
    for (std::int64_t b = 0; b < base.shape.batch; ++b) keys_.push_back(entry_lengths(base, b).seqlen_k);
    args_.place.page_size = wish.kind == CacheKind::slots ? 0
                            : wish.vectorized             ? unit * between(1, 3)
                                                          : between(1, 40);
    if (wish.vectorized) args_.place.layout = KvLayout::vectorized;
    draw_places();
    args_.k = pool(base.k, base.shape.hdim_q, true);
    args_.v = pool(base.v, base.shape.hdim_v, false);
}

std::int64_t CacheProblem::between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
}

void CacheProblem::draw_places() {
    KvPlace& place = args_.place;
    const std::int64_t batch = args_.shape.batch, most = *std::ranges::max_element(keys_);
    args_.lengths.cu_seqlen_k = nullptr;
    seqlen_k_.assign(keys_.begin(), keys_.end());
    args_.lengths.seqlen_k = seqlen_k_.data();
    first_slot_.assign(static_cast<std::size_t>(batch), 0);
    page_rows_ = wish_.kind == CacheKind::slots ? most + between(0, 5) : place.page_size;
    std::vector<std::int64_t> count;
    for (std::int64_t b = 0; b < batch; ++b) {
        auto& first = first_slot_[static_cast<std::size_t>(b)];
        if (wish_.kind == CacheKind::gappy_table) first = between(0, 2 * page_rows_);
        const std::int64_t end = first + keys_[static_cast<std::size_t>(b)];
        count.push_back(wish_.kind == CacheKind::slots ? 1 : (end + page_rows_ - 1) / page_rows_);
    }
    pages_ = std::accumulate(count.begin(), count.end(), std::int64_t{0}) + between(1, 3);
    place.page_count = pages_;
    std::vector<std::int32_t> order(static_cast<std::size_t>(pages_));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, engine_);
    for (const std::int64_t n : count) {
        page_of_.emplace_back(order.end() - n, order.end());
        order.resize(order.size() - static_cast<std::size_t>(n));
    }
    if (wish_.kind == CacheKind::slots) {
        for (const auto& pages : page_of_) slots_.push_back(pages.front());
        place.cache_batch_idx = slots_.data();
        return;
    }
    if (wish_.kind == CacheKind::page_list) {
        place.lookup = KvLookup::sglang_1d;
        args_.lengths.seqlen_k = args_.lengths.seqstart_k = nullptr;
        indptr_ = {0};
        for (std::size_t b = 0; b < keys_.size(); ++b) {
            indices_.insert(indices_.end(), page_of_[b].begin(), page_of_[b].end());
            indptr_.push_back(static_cast<std::int32_t>(indices_.size()));
            last_.push_back(static_cast<std::int32_t>(
                keys_[b] - (static_cast<std::int64_t>(page_of_[b].size()) - 1) * page_rows_));
        }
        place.kv_indptr = indptr_.data();
        place.kv_page_indices = indices_.data();
        place.kv_last_page_lens = place.page_size == 1 ? nullptr : last_.data();
        return;
    }
    place.is_gappy = wish_.kind == CacheKind::gappy_table;
    place.block_table_stride = *std::ranges::max_element(count) + between(0, 3);
    table_.assign(static_cast<std::size_t>(batch * place.block_table_stride), -1);
    for (std::size_t b = 0; b < page_of_.size(); ++b) {
        // Pages before the first key are not read either (P-5).
        const auto unused = static_cast<std::size_t>(first_slot_[b] / page_rows_);
        for (std::size_t n = unused; n < page_of_[b].size(); ++n)
            table_[b * static_cast<std::size_t>(place.block_table_stride) + n] = page_of_[b][n];
    }
    place.block_table = table_.data();
    if (!place.is_gappy) return;
    seqstart_k_.assign(first_slot_.begin(), first_slot_.end());
    seqstart_k_.push_back(0);
    args_.lengths.seqstart_k = seqstart_k_.data();
}

/// The keys or values of `from` in the cache.
TensorView CacheProblem::pool(const TensorView& from, std::int64_t cols, bool keys) {
    const std::int64_t heads = args_.shape.nhead_k, rows = page_rows_;
    const std::int64_t v = wish_.vectorized ? 128 / element_bits(from.type) : 1;
    const std::int64_t line = wish_.vectorized ? cols : cols + between(0, 3);
    const bool heads_inside = !wish_.vectorized && between(0, 1) == 1;
    const bool by_column = !wish_.vectorized && !keys && between(0, 1) == 1;
    TensorView view;
    view.type = from.type;
    view.head_stride = heads_inside ? (by_column ? rows : line) : rows * line;
    view.batch_stride = heads * rows * line + between(0, 5);
    view.row_stride = by_column ? 1 : heads_inside ? heads * line : line;
    view.col_stride = !by_column ? 1 : heads_inside ? heads * rows : rows;
    const auto size = static_cast<std::size_t>(element_bits(view.type) / 8);
    auto& memory =
        bytes_.emplace_back(static_cast<std::size_t>(pages_ * view.batch_stride + 8) * size, std::byte{0xFF});
    view.data = memory.data();
    for (std::size_t b = 0; b < keys_.size(); ++b) {
        const auto entry = static_cast<std::int64_t>(b);
        const std::int64_t packed = args_.shape.mode == Mode::group ? base_.args().lengths.seqstart_k[b] : 0;
        for (std::int64_t j = 0; j < keys_[b]; ++j) {
            const std::int64_t position = first_slot_[b] + j;
            const std::int64_t page = page_of_[b][static_cast<std::size_t>(position / rows)];
            const std::int64_t t = position % rows;
            for (std::int64_t h = 0; h < heads; ++h)
                for (std::int64_t c = 0; c < cols; ++c) {
                    const std::uint32_t code = stored_code(from, entry, h, packed + j, c);
                    std::int64_t element = view.offset(page, h, t, c);
                    if (wish_
                            .vectorized) // [pages, heads, cols / v, rows, v] and [pages, heads, rows / v, cols, v]
                        element = page * view.batch_stride + h * view.head_stride +
                                  (keys ? (c / v * rows + t) * v + c % v : (t / v * cols + c) * v + t % v);
                    std::memcpy(memory.data() + static_cast<std::size_t>(element) * size, &code, size);
                }
        }
    }
    return view;
}

std::string CacheProblem::text() const {
    return base_.text() + " cache " + std::to_string(static_cast<int>(wish_.kind)) + " pages of " +
           std::to_string(args_.place.page_size) + (wish_.vectorized ? " vectorized" : "");
}

} // namespace fmha::reference::test
