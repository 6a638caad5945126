#include "tests/kernels/kv/cached_problem.hpp"

#include "reference/attention.hpp"
#include "reference/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

namespace fmha::test {
namespace {

using host_target::test::Shape;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr float pattern = -12345.75F;

/// A NaN of every type, chosen by `order`.
std::byte poison(std::uint64_t order) {
    return order % 2 == 0 ? std::byte{0x7F} : std::byte{0xFF};
}

} // namespace

std::string CacheSpec::text() const {
    static constexpr const char* names[] = {"contiguous", "slots", "pages", "gappy pages"};
    return std::string(names[static_cast<std::size_t>(cache)]) + " of " + std::to_string(page_size) + ", " +
           std::to_string(splits) + " splits, order " + std::to_string(order);
}

CachedProblem::CachedProblem(const Shape& shape, const CacheSpec& spec) : fwd_(shape), spec_(spec) {
    const FwdArgs& fwd = fwd_.args();
    for (std::int64_t b = 0; b < shape.batch; ++b)
        keys_.push_back(shape.seqlen_k[static_cast<std::size_t>(b) % shape.seqlen_k.size()]);
    const auto common = [&](auto& args) {
        args.shape = fwd.shape;
        args.q = fwd.q;
        args.o = fwd.o;
        args.lse = fwd.lse;
        args.bias = fwd.bias;
        args.mask = fwd.mask;
        args.score = fwd.score;
        args.quant = fwd.quant;
        args.lengths = fwd.lengths;
        args.lengths.seqlen_q = nullptr;
    };
    common(paged_);
    place_entries();
    if (spec_.cache == Cache::contiguous) {
        paged_.k = fwd.k;
        paged_.v = fwd.v;
    } else {
        paged_.k = pool(fwd.k, shape.hdim_q, false, k_);
        paged_.v = pool(fwd.v, shape.hdim_v, shape.v_layout == VLayout::column, v_);
    }
    common(split_);
    split_.lengths = paged_.lengths;
    split_.place = paged_.place;
    split_.k = paged_.k;
    split_.v = paged_.v;
    make_partials();
}

void CachedProblem::place_entries() {
    std::mt19937_64 engine(spec_.order);
    const std::size_t batch = keys_.size();
    KvPlace& place = paged_.place;
    if (spec_.cache == Cache::contiguous) return;
    const bool paged = spec_.cache != Cache::slots;
    page_rows_ = paged ? spec_.page_size : *std::ranges::max_element(keys_) + 3;
    first_slot_.assign(batch, 0);
    std::vector<std::int64_t> count(batch, 1);
    for (std::size_t b = 0; b < batch && paged; ++b) {
        if (spec_.cache == Cache::gappy_pages)
            first_slot_[b] = b % 2 == 0 ? 37 + 64 * static_cast<std::int64_t>(b) : page_rows_ + 5;
        count[b] = (first_slot_[b] + keys_[b] + page_rows_ - 1) / page_rows_;
    }
    pages_ = std::accumulate(count.begin(), count.end(), std::int64_t{2});
    place.page_count = pages_;
    std::vector<std::int32_t> order(static_cast<std::size_t>(pages_));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, engine);
    for (const std::int64_t n : count) {
        page_of_.emplace_back(order.end() - n, order.end());
        order.resize(order.size() - static_cast<std::size_t>(n));
    }
    seqlen_k_.assign(keys_.begin(), keys_.end());
    if (!paged) {
        for (const auto& pages : page_of_) slots_.push_back(pages.front());
        place.cache_batch_idx = slots_.data();
        return;
    }
    paged_.lengths.seqlen_k = seqlen_k_.data();
    place.page_size = spec_.page_size;
    place.block_table_stride = *std::ranges::max_element(count) + 1;
    const auto stride = static_cast<std::size_t>(place.block_table_stride);
    table_.assign(batch * stride, spec_.order % 2 == 0 ? -1 : 1 << 30);
    for (std::size_t b = 0; b < batch; ++b)
        for (auto n = static_cast<std::size_t>(first_slot_[b] / page_rows_); n < page_of_[b].size(); ++n)
            table_[b * stride + n] = page_of_[b][n];
    place.block_table = table_.data();
    if (spec_.cache != Cache::gappy_pages) return;
    place.is_gappy = true;
    seqstart_k_.assign(first_slot_.begin(), first_slot_.end());
    seqstart_k_.push_back(0);
    paged_.lengths.seqstart_k = seqstart_k_.data();
}

TensorView CachedProblem::pool(const TensorView& from, std::int64_t cols, bool by_column,
                               Bytes& memory) const {
    const std::int64_t heads = paged_.shape.nhead_k, rows = page_rows_,
                       line = (by_column ? rows : cols) + fwd_.shape().padding;
    const bool heads_inside = spec_.order % 3 == 0;
    TensorView view;
    view.type = from.type;
    const std::int64_t lines = by_column ? cols : rows;
    view.head_stride = heads_inside ? line : lines * line;
    const std::int64_t next_line = heads_inside ? heads * line : line;
    view.row_stride = by_column ? 1 : next_line;
    view.col_stride = by_column ? next_line : 1;
    view.batch_stride = heads * lines * line;
    memory.assign(static_cast<std::size_t>(element_bytes(view.type, pages_ * view.batch_stride)),
                  poison(spec_.order));
    view.data = memory.data();
    const auto size = static_cast<std::size_t>(element_bytes(view.type));
    for (std::size_t b = 0; b < keys_.size(); ++b)
        for (std::int64_t j = 0; j < keys_[b]; ++j) {
            const std::int64_t t = first_slot_[b] + j;
            const std::int64_t page = page_of_[b][static_cast<std::size_t>(t / rows)];
            const bool packed = fwd_.args().shape.mode == Mode::group;
            const std::int64_t row = j + (packed ? fwd_.args().lengths.seqstart_k[b] : 0);
            for (std::int64_t h = 0; h < heads; ++h)
                for (std::int64_t c = 0; c < cols; ++c)
                    std::memcpy(
                        memory.data() + static_cast<std::size_t>(view.offset(page, h, t % rows, c)) * size,
                        static_cast<const std::byte*>(from.data) +
                            static_cast<std::size_t>(from.offset(static_cast<std::int64_t>(b), h, row, c)) *
                                size,
                        size);
        }
    return view;
}

void CachedProblem::make_partials() {
    const Shape& shape = fwd_.shape();
    const bool packed = paged_.shape.mode == Mode::group;
    const std::int64_t rows = packed ? paged_.lengths.seqstart_q[shape.batch] : paged_.shape.seqlen_q;
    const std::int64_t heads = shape.nhead_q * spec_.splits, entries = packed ? 1 : shape.batch;
    const std::int64_t line = shape.hdim_v + 4;
    o_acc_.resize(static_cast<std::size_t>(entries * heads * (rows + 1) * line));
    lse_acc_.resize(static_cast<std::size_t>(entries * heads * (rows + 1)));
    Partials& p = split_.partials;
    p.num_splits = spec_.splits;
    p.o_acc = {
        o_acc_.data(), ElementType::fp32, packed ? 0 : heads * (rows + 1) * line, (rows + 1) * line, line, 1};
    p.lse_acc = {lse_acc_.data(), ElementType::fp32, packed ? 0 : heads * (rows + 1), rows + 1, 1, 1};
    poison_outputs();
}

void CachedProblem::poison_outputs() {
    fwd_.poison_outputs();
    std::ranges::fill(o_acc_, pattern);
    std::ranges::fill(lse_acc_, pattern);
}

std::vector<std::uint8_t> CachedProblem::outputs() const {
    std::vector<std::uint8_t> all = fwd_.output_bytes();
    for (const auto* partials : {&o_acc_, &lse_acc_}) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(partials->data());
        all.insert(all.end(), bytes, bytes + partials->size() * sizeof(float));
    }
    return all;
}

KernelConfig CachedProblem::config(KernelFamily family, Tile tile) const {
    KernelConfig config = fwd_.config(tile);
    config.signature.family = family;
    config.signature.use_paged_kv = paged_.place.page_size > 0;
    if (config.signature.use_paged_kv)
        config.signature.page_size = static_cast<std::int32_t>(paged_.place.page_size);
    return config;
}

double CachedProblem::judge_partials(const Numerics& numerics, std::string& worst) const {
    reference::ForwardOptions options;
    options.numerics = numerics;
    options.threads = 1;
    std::vector<float> o_left = o_acc_, lse_left = lse_acc_;
    double largest = 0.0;
    const Partials& p = split_.partials;
    for (std::int64_t s = 0; s < spec_.splits; ++s) {
        const auto args = reference::attention_of(split_, s);
        const auto rows = reference::all_rows(args);
        const auto expected = reference::attention(args, rows, options);
        for (std::size_t n = 0; n < rows.size(); ++n) {
            const auto at = static_cast<std::int64_t>(n);
            const auto [b, h, i] = rows[n];
            const bool packed = split_.shape.mode == Mode::group;
            const std::int64_t row = i + (packed ? split_.lengths.seqstart_q[b] : 0);
            const std::int64_t head = h * spec_.splits + s;
            const reference::RowBound bound(expected, at);
            const auto note = [&](double got, double want, double limit, const char* what, std::int64_t c) {
                if (got == want) return;
                const double ratio = std::isnan(got - want) ? infinity : std::abs(got - want) / limit;
                if (ratio <= largest) return;
                largest = ratio;
                worst = std::string(what) + "[" + std::to_string(b) + "," + std::to_string(h) + "," +
                        std::to_string(s) + "," + std::to_string(i) + "," + std::to_string(c) +
                        "] = " + std::to_string(got) + ", expected " + std::to_string(want);
            };
            const auto lse_at = static_cast<std::size_t>(p.lse_acc.offset(b, head, row, 0));
            note(lse_acc_[lse_at], expected.lse(at), reference::lse_limit(expected, at), "lse_acc", -1);
            lse_left[lse_at] = pattern;
            for (std::int64_t c = 0; c < split_.shape.hdim_v; ++c) {
                const auto o_at = static_cast<std::size_t>(p.o_acc.offset(b, head, row, c));
                note(o_acc_[o_at], bound.expected(c), bound.limit(c), "o_acc", c);
                o_left[o_at] = pattern;
            }
        }
    }
    const auto untouched = [](float x) { return x == pattern; };
    if (!std::ranges::all_of(o_left, untouched) || !std::ranges::all_of(lse_left, untouched)) {
        worst = "something that is no partial result was written";
        return infinity;
    }
    return largest;
}

CachedSpec spec_for(const KernelConfig& kernel, std::size_t turn) {
    const Signature& s = kernel.signature;
    const Tile& tile = kernel.algorithm.tile;
    const Padding& pad = kernel.algorithm.pad;
    CachedSpec spec;
    Shape& shape = spec.shape;
    shape.data_type = s.data_type;
    shape.arch = std::string(kernel.arch.view());
    shape.group = s.mode == Mode::group;
    shape.batch = 2;
    shape.nhead_q = turn % 2 == 0 ? 4 : 2;
    shape.nhead_k = 2;
    shape.hdim_q = pad.d != 0 && s.hdim_q > 32 ? s.hdim_q - 8 : s.hdim_q;
    shape.hdim_v = pad.dv != 0 && s.hdim_v > 32 ? s.hdim_v - 8 : s.hdim_v;
    shape.v_layout = s.v_layout;
    shape.seqlen_q = {pad.s ? static_cast<std::int64_t>(turn % 5 == 0 ? 1 : 5 + turn % 9) : tile.m0};
    if (shape.group && pad.s) shape.seqlen_q.push_back(turn % 3 == 0 ? 0 : 3);
    const std::int64_t n0 = tile.n0;
    shape.seqlen_k = {pad.sk ? 129 + static_cast<std::int64_t>(turn * 7 % 150) : 2 * n0};
    if (shape.group) shape.seqlen_k.push_back(!pad.sk ? 3 * n0 : turn % 4 == 0 ? 0 : 200);
    shape.bias = s.bias;
    shape.soft_cap = s.has_logits_soft_cap ? 2.0F : 0.0F;
    shape.sink_logit = s.has_sink_logit || (s.family == KernelFamily::fwd_splitkv && turn % 2 == 1);
    shape.qscale = s.qscale;
    const bool at_end = turn % 3 != 0;
    if (s.mask == MaskClass::causal)
        shape.mask = {at_end ? MaskType::bottom_right : MaskType::top_left, -1, 0, 0};
    if (s.mask == MaskClass::generic)
        shape.mask = {at_end ? MaskType::bottom_right : MaskType::top_left,
                      static_cast<std::int64_t>(20 + turn % 90), static_cast<std::int64_t>(turn % 4), 0};
    if (s.has_sink && s.mask == MaskClass::generic) shape.mask.sink = 1 + static_cast<std::int64_t>(turn % 5);
    spec.cache.order = 1 + turn;
    spec.cache.page_size = turn % 4 == 1 ? 256 : 128;
    spec.cache.cache = s.use_paged_kv
                           ? (shape.group && pad.sk && turn % 2 == 0 ? Cache::gappy_pages : Cache::pages)
                       : !shape.group && turn % 2 == 0 ? Cache::slots
                                                       : Cache::contiguous;
    if (s.family == KernelFamily::fwd_splitkv)
        spec.cache.splits = std::vector<std::int64_t>{1, 2, 3, 5, 8}[turn % 5];
    return spec;
}

} // namespace fmha::test
