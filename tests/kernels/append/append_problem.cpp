#include "append_problem.hpp"

#include "reference/append.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/kernels/normal_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace fmha::test {
namespace {

constexpr std::int64_t guard = 1024; // elements before and behind a tensor

std::uint32_t code_at(const TensorView& view, std::int64_t element) {
    std::uint32_t code = 0;
    const std::int64_t size = element_bytes(view.type);
    std::memcpy(&code, static_cast<const std::byte*>(view.data) + element * size,
                static_cast<std::size_t>(size));
    return code;
}

} // namespace

std::string AppendSpec::text() const {
    std::string text = "batch " + std::to_string(batch) + " heads " + std::to_string(heads_q) + "/" +
                       std::to_string(heads_k) + " hdim " + std::to_string(hdim_q) + "/" +
                       std::to_string(hdim_v) + " rotary " + std::to_string(rotary_dim) + " queries " +
                       std::to_string(queries) + " added " + std::to_string(added) + " page " +
                       std::to_string(page_size) + " gap " + std::to_string(gap) + (slots ? " slots" : "") +
                       (has_mask ? " mask" : "") + (rows_outermost ? " rows outermost" : "") + " cached";
    for (const std::int32_t n : cached) text += ' ' + std::to_string(n);
    return text + " seed " + std::to_string(seed);
}

std::string AppendVerdict::text() const {
    return std::to_string(wrong_copies) + " wrong copies, " + std::to_string(wrong_rotated) +
           " wrong rotated channels, the rest is " + (rest_untouched ? "untouched " : "not as it was ") +
           worst;
}

AppendProblem::AppendProblem(const KernelConfig& kernel, const AppendSpec& spec)
    : spec_(spec), engine_(spec.seed) {
    const Signature& s = kernel.signature;
    Shape& shape = args_.shape;
    shape.batch = spec.batch;
    shape.nhead_q = spec.heads_q;
    shape.nhead_k = spec.heads_k;
    shape.seqlen_q = spec.queries;
    shape.hdim_q = spec.hdim_q > 0 ? spec.hdim_q : s.hdim_q;
    shape.hdim_v = spec.hdim_v > 0 ? spec.hdim_v : s.hdim_v;
    args_.seqlen_knew = spec.added;
    args_.has_mask = spec.has_mask;
    for (std::int64_t b = 0; b < spec.batch; ++b)
        cached_.push_back(spec.cached[static_cast<std::size_t>(b) % spec.cached.size()]);
    args_.lengths.seqlen_k = cached_.data();
    if (!s.use_paged_kv) spec_.page_size = 0;
    place_keys(*std::ranges::max_element(cached_) + spec.added);

    const ElementType type = element_types(s.data_type, fp8_flavour(kernel.arch)).k;
    const bool rotates = s.rope != Rope::none;
    if (rotates) make_tables(type);
    args_.rope.type = s.rope;
    const std::int64_t numbers = rotates ? args_.rope.rotary_dim : 0;
    k_ = memory(type, cache_slots_, spec.heads_k, slot_rows_, shape.hdim_q);
    v_ = memory(type, cache_slots_, spec.heads_k, slot_rows_, shape.hdim_v);
    k_new_ = memory(type, spec.batch, spec.heads_k, spec.added, shape.hdim_q);
    fill(k_new_, spec.batch, spec.heads_k, spec.added, shape.hdim_q, numbers);
    v_new_ = memory(type, spec.batch, spec.heads_k, spec.added, shape.hdim_v);
    fill(v_new_, spec.batch, spec.heads_k, spec.added, shape.hdim_v, 0);
    args_.k = k_.view;
    args_.v = v_.view;
    args_.k_new = k_new_.view;
    args_.v_new = v_new_.view;
    if (spec.queries > 0) {
        q_ = memory(type, spec.batch, spec.heads_q, spec.queries, shape.hdim_q);
        fill(q_, spec.batch, spec.heads_q, spec.queries, shape.hdim_q, numbers);
        args_.q = q_.view;
    }
    before_ = outputs();
}

void AppendProblem::place_keys(std::int64_t keys) {
    KvPlace& place = args_.place;
    if (spec_.page_size == 0) {
        slot_rows_ = args_.shape.seqlen_k = keys;
        cache_slots_ = spec_.batch;
        if (!spec_.slots) return;
        cache_slots_ += 2;
        slots_.resize(static_cast<std::size_t>(cache_slots_));
        std::iota(slots_.rbegin(), slots_.rend(), 0);
        place.cache_batch_idx = slots_.data();
        return;
    }
    const std::int64_t pages = (keys + spec_.page_size - 1) / spec_.page_size;
    place.page_size = slot_rows_ = spec_.page_size;
    place.page_count = cache_slots_ = spec_.batch * pages + 2;
    place.block_table_stride = pages + 1;
    std::vector<std::int32_t> free(static_cast<std::size_t>(cache_slots_));
    std::iota(free.begin(), free.end(), 0);
    std::ranges::shuffle(free, engine_);
    // Pages that no key needs are none.
    block_table_.assign(static_cast<std::size_t>(spec_.batch * place.block_table_stride), -5);
    for (std::int64_t b = 0; b < spec_.batch; ++b)
        for (std::int64_t p = 0; p < pages; ++p) {
            block_table_[static_cast<std::size_t>(b * place.block_table_stride + p)] = free.back();
            free.pop_back();
        }
    place.block_table = block_table_.data();
}

void AppendProblem::make_tables(ElementType type) {
    args_.rope.rotary_dim = spec_.rotary_dim > 0 ? spec_.rotary_dim : args_.shape.hdim_q / 16 * 16;
    const std::int64_t pairs = args_.rope.rotary_dim / 2,
                       positions = *std::ranges::max_element(cached_) + std::max(spec_.added, spec_.queries);
    for (Memory* const table : {&cos_, &sin_}) {
        *table = memory(type, 1, 1, positions, pairs);
        fill(*table, 1, 1, positions, pairs, pairs);
    }
    args_.rope.cos = cos_.view;
    args_.rope.sin = sin_.view;
}

AppendProblem::Memory AppendProblem::memory(ElementType type, std::int64_t batch, std::int64_t heads,
                                            std::int64_t rows, std::int64_t cols) {
    Memory out;
    out.view.type = type;
    const std::int64_t line = cols + spec_.gap;
    out.view.row_stride = spec_.rows_outermost ? heads * line : line;
    out.view.head_stride = spec_.rows_outermost ? line : rows * line;
    out.view.batch_stride = heads * rows * line;
    out.bytes.resize(static_cast<std::size_t>(element_bytes(type, batch * heads * rows * line + 2 * guard)));
    for (std::size_t at = 0; at < out.bytes.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t bits = engine_();
        std::memcpy(out.bytes.data() + at, &bits, std::min(sizeof bits, out.bytes.size() - at));
    }
    out.view.data = out.bytes.data() + element_bytes(type, guard);
    return out;
}

void AppendProblem::fill(Memory& memory, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                         std::int64_t cols, std::int64_t numbers) {
    const TensorView& view = memory.view;
    const auto size = static_cast<std::size_t>(element_bytes(view.type));
    const auto put = [&](std::int64_t element, std::uint32_t code) {
        std::memcpy(static_cast<std::byte*>(view.data) + static_cast<std::size_t>(element) * size, &code,
                    size);
    };
    NormalNumbers normal;
    for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t h = 0; h < heads; ++h)
            for (std::int64_t r = 0; r < rows; ++r)
                for (std::int64_t c = 0; c < std::min(numbers, cols); ++c)
                    put(view.offset(b, h, r, c), reference::encode(view.type, normal(engine_)));
}

std::vector<std::byte> AppendProblem::outputs() const {
    std::vector<std::byte> all = k_.bytes;
    all.insert(all.end(), v_.bytes.begin(), v_.bytes.end());
    all.insert(all.end(), q_.bytes.begin(), q_.bytes.end());
    return all;
}

AppendVerdict AppendProblem::judge() const {
    const std::size_t v_at = k_.bytes.size(), q_at = v_at + v_.bytes.size();
    // The reference reads Q as it was.
    std::vector<std::byte> queries(before_.begin() + static_cast<std::ptrdiff_t>(q_at), before_.end());
    AppendKvArgs original = args_;
    if (original.q.present()) original.q.data = queries.data() + element_bytes(args_.q.type, guard);
    const reference::AppendedRows expected = reference::append(original);

    AppendVerdict verdict;
    std::vector<std::byte> now = outputs(), then = before_;
    for (const reference::AppendedRow& row : expected.rows) {
        const bool query = row.target == reference::AppendTarget::q,
                   key = row.target == reference::AppendTarget::k;
        const TensorView& view = query ? args_.q : key ? args_.k : args_.v;
        const std::size_t base = query ? q_at : key ? 0 : v_at;
        for (std::int64_t c = 0; c < row.cols; ++c) {
            const std::int64_t element = view.offset(row.slot, row.h, row.row, c);
            const std::uint32_t got = code_at(view, element), want = expected.code_of(row, c);
            const bool rotated = c < row.rotated;
            const bool right = rotated ? reference::values_apart(view.type, got, want) <= 1 : got == want;
            if (!right) {
                ++(rotated ? verdict.wrong_rotated : verdict.wrong_copies);
                verdict.worst = (query ? "Q["
                                 : key ? "K["
                                       : "V[") +
                                std::to_string(row.slot) + "," + std::to_string(row.h) + "," +
                                std::to_string(row.row) + "," + std::to_string(c) + "] is " +
                                std::to_string(got) + ", expected " + std::to_string(want);
            }
            const auto at = static_cast<std::ptrdiff_t>(
                base + static_cast<std::size_t>(element_bytes(view.type, guard + element)));
            std::fill_n(now.begin() + at, element_bytes(view.type), std::byte{0});
            std::fill_n(then.begin() + at, element_bytes(view.type), std::byte{0});
        }
    }
    verdict.rest_untouched = now == then;
    return verdict;
}

} // namespace fmha::test
