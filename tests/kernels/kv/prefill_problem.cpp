#include "tests/kernels/kv/prefill_problem.hpp"

#include "reference/attention.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace fmha::test {
namespace {

using host_target::test::Shape;

/// A NaN of every type, chosen by `order`.
std::byte poison_of_pool(std::uint64_t order) {
    return order % 2 == 0 ? std::byte{0x7F} : std::byte{0xFF};
}

Shape in_a_group(Shape shape) {
    shape.group = true;
    return shape;
}

} // namespace

std::string PoolSpec::text() const {
    return std::string(to_string(layout)) + " " + std::string(to_string(lookup)) + ", pages of " +
           std::to_string(page_size) + ", " + std::string(to_string(qscale)) + ", order " +
           std::to_string(order);
}

PrefillProblem::PrefillProblem(const Shape& shape, const PoolSpec& spec)
    : fwd_(in_a_group(shape)), spec_(spec) {
    const FwdArgs& fwd = fwd_.args();
    for (std::int64_t b = 0; b < shape.batch; ++b)
        keys_.push_back(shape.seqlen_k[static_cast<std::size_t>(b) % shape.seqlen_k.size()]);
    args_.shape = fwd.shape;
    args_.q = fwd.q;
    args_.o = fwd.o;
    args_.lse = fwd.lse;
    args_.bias = fwd.bias;
    args_.mask = fwd.mask;
    args_.score = fwd.score;
    args_.quant = fwd.quant;
    args_.quant.block_scale_seqstart_q = args_.quant.block_scale_seqstart_k = nullptr;
    args_.lengths.seqstart_q = fwd.lengths.seqstart_q;
    place_entries();
    args_.k = pool(fwd.k, false, k_);
    args_.v = pool(fwd.v, true, v_);
    if (spec_.qscale != QScale::no_scale) make_scales();
}

void PrefillProblem::place_entries() {
    const auto batch = keys_.size();
    const auto size = spec_.page_size;
    std::vector<std::int64_t> count;
    for (const std::int64_t n : keys_) count.push_back((n + size - 1) / size);
    pages_ = std::accumulate(count.begin(), count.end(), std::int64_t{2});
    std::vector<std::int32_t> order(static_cast<std::size_t>(pages_));
    std::iota(order.begin(), order.end(), 0);
    std::mt19937_64 engine(spec_.order);
    std::ranges::shuffle(order, engine);
    for (const std::int64_t n : count) {
        page_of_.emplace_back(order.end() - n, order.end());
        order.resize(order.size() - static_cast<std::size_t>(n));
    }
    if (spec_.share_first_page)
        for (auto& pages : page_of_)
            if (!pages.empty() && !page_of_.front().empty()) pages.front() = page_of_.front().front();
    const std::int32_t nowhere = spec_.order % 2 == 0 ? -1 : 1 << 30;
    KvPlace& place = args_.place;
    place.page_size = size;
    place.page_count = pages_;
    place.layout = spec_.layout;
    place.lookup = spec_.lookup;
    if (spec_.lookup == KvLookup::vllm_2d) {
        seqlen_k_.assign(keys_.begin(), keys_.end());
        args_.lengths.seqlen_k = seqlen_k_.data();
        place.block_table_stride = *std::ranges::max_element(count) + 1;
        const auto stride = static_cast<std::size_t>(place.block_table_stride);
        table_.assign(batch * stride, nowhere);
        for (std::size_t b = 0; b < batch; ++b)
            std::ranges::copy(page_of_[b], table_.begin() + static_cast<std::ptrdiff_t>(b * stride));
        place.block_table = table_.data();
        return;
    }
    // Entries need not follow one another without a gap in front of the first.
    indices_.assign(3, nowhere);
    indptr_ = {3};
    for (std::size_t b = 0; b < batch; ++b) {
        indices_.insert(indices_.end(), page_of_[b].begin(), page_of_[b].end());
        indptr_.push_back(static_cast<std::int32_t>(indices_.size()));
        last_.push_back(
            static_cast<std::int32_t>(keys_[b] == 0 ? nowhere : keys_[b] - (count[b] - 1) * size));
    }
    indices_.push_back(nowhere);
    place.kv_indptr = indptr_.data();
    place.kv_page_indices = indices_.data();
    if (size > 1 || spec_.order % 2 == 0) place.kv_last_page_lens = last_.data();
}

TensorView PrefillProblem::pool(const TensorView& from, bool is_value, Bytes& memory) const {
    const std::int64_t heads = args_.shape.nhead_k, size = spec_.page_size;
    const std::int64_t cols = is_value ? args_.shape.hdim_v : args_.shape.hdim_q;
    const std::int64_t v = 128 / element_bits(from.type), line = cols + v;
    const bool linear = spec_.layout == KvLayout::linear;
    TensorView view;
    view.type = from.type;
    view.row_stride = linear ? heads * line : 7777; // which the vectorised layout does not read
    view.col_stride = linear ? 1 : 5555;
    view.head_stride = linear ? line : size * cols + 2 * v;
    view.batch_stride = linear ? size * heads * line + 8 * v : heads * view.head_stride + v;
    memory.assign(static_cast<std::size_t>(element_bytes(view.type, pages_ * view.batch_stride + 64 * line)),
                  poison_of_pool(spec_.order));
    view.data = memory.data();
    const auto bytes = static_cast<std::size_t>(element_bytes(view.type));
    for (std::size_t b = 0; b < keys_.size(); ++b)
        for (std::int64_t j = 0; j < keys_[b]; ++j) {
            const std::int64_t page = page_of_[b][static_cast<std::size_t>(j / size)], t = j % size;
            // A shared page has the keys of the first entry, in all of them.
            const std::size_t owner = spec_.share_first_page && j < size ? 0 : b;
            const std::int64_t row = fwd_.args().lengths.seqstart_k[b] + j;
            for (std::int64_t h = 0; h < heads; ++h)
                for (std::int64_t c = 0; c < cols; ++c) {
                    const std::int64_t in_page = linear      ? t * view.row_stride + c
                                                 : !is_value ? c / v * size * v + t * v + c % v
                                                             : t / v * cols * v + c * v + t % v;
                    std::byte* at = memory.data() + static_cast<std::size_t>(page * view.batch_stride +
                                                                             h * view.head_stride + in_page) *
                                                        bytes;
                    std::byte* own = static_cast<std::byte*>(from.data) +
                                     static_cast<std::size_t>(from.offset(0, h, row, c)) * bytes;
                    if (owner != b && j < keys_[0])
                        std::memcpy(own, at, bytes);
                    else
                        std::memcpy(at, own, bytes);
                }
        }
    return view;
}

void PrefillProblem::make_scales() {
    std::mt19937_64 engine(spec_.order + 1);
    const auto next = [&] { return 0.5F + 0.25F * static_cast<float>(engine() % 7); };
    const auto fill = [&](std::vector<float>& memory, std::int64_t count) {
        memory.resize(static_cast<std::size_t>(count));
        std::ranges::generate(memory, next);
        return TensorView{memory.data(), ElementType::fp32, 0, 0, 0, 0};
    };
    QuantArgs& quant = args_.quant;
    quant.qscale = spec_.qscale;
    const std::int64_t heads = args_.shape.nhead_k, size = spec_.page_size;
    if (spec_.qscale == QScale::kv_blockscale) {
        quant.q_descale = fill(q_scales_, 1);
        for (auto [view, memory] :
             {std::pair{&quant.k_descale, &k_scales_}, {&quant.v_descale, &v_scales_}}) {
            *view = fill(*memory, pages_ * (heads + 1));
            view->batch_stride = heads + 1;
            view->head_stride = 1;
        }
        return;
    }
    const std::int64_t rows = fwd_.args().lengths.seqstart_q[args_.shape.batch];
    quant.q_descale = fill(q_scales_, rows * args_.shape.nhead_q);
    quant.q_descale.head_stride = 1;
    quant.q_descale.row_stride = args_.shape.nhead_q;
    quant.k_descale = fill(k_scales_, pages_ * size * heads);
    quant.k_descale.batch_stride = size * heads;
    quant.k_descale.row_stride = heads;
    quant.k_descale.head_stride = 1;
    quant.v_descale = fill(v_scales_, heads);
    quant.v_descale.head_stride = 1;
}

KernelConfig PrefillProblem::config(Tile tile) const {
    KernelConfig config = fwd_.config(tile);
    Signature& s = config.signature;
    s.family = KernelFamily::batch_prefill;
    s.use_paged_kv = true;
    s.page_size = static_cast<std::int32_t>(spec_.page_size);
    s.kv_layout = spec_.layout;
    s.kv_lookup = spec_.lookup;
    s.qscale = args_.quant.qscale;
    s.skip_min_seqlen_q = false;
    config.algorithm.pipeline = Pipeline::qr_async;
    return config;
}

host_target::test::Distance PrefillProblem::judge(const Numerics& numerics) const {
    if (!expected_ || expected_->numerics != numerics) expected_ = expected(numerics);
    return host_target::test::judge(fwd_, *expected_);
}

reference::ForwardRows PrefillProblem::expected(const Numerics& numerics) const {
    constexpr auto oracle = reference::Oracle::row_by_row;
    reference::ForwardOptions options;
    options.numerics = numerics;
    if (spec_.qscale == QScale::no_scale)
        return reference::forward(fwd_.args(), reference::all_rows(fwd_.args()), options, oracle);
    const auto args = reference::attention_of(args_);
    return reference::attention(args, reference::all_rows(args), options, oracle);
}

PrefillSpec prefill_spec_for(const KernelConfig& kernel, std::size_t turn) {
    const Signature& s = kernel.signature;
    PrefillSpec spec;
    Shape& shape = spec.shape;
    const bool page_scales = s.qscale == QScale::kv_blockscale || s.qscale == QScale::per_token_head;
    const std::int64_t vector = 128 / element_bits(element_types(s.data_type, Fp8Flavour::ocp).k);
    shape.data_type = s.data_type;
    shape.arch = std::string(kernel.arch.view());
    shape.group = true;
    shape.batch = 2;
    shape.nhead_q = turn % 2 == 0 ? 4 : 2;
    shape.nhead_k = 2;
    shape.hdim_q = s.hdim_q - (turn % 2 == 0 ? 0 : vector);
    // Tensor maps take lines of whole units of 16 bytes.
    const std::int64_t narrower = kernel.algorithm.pipeline == Pipeline::ws ? vector : 8;
    shape.hdim_v = s.hdim_v - (turn % 3 == 0 ? 0 : narrower);
    shape.padding = narrower;
    shape.seqlen_q = {static_cast<std::int64_t>(turn % 5 == 0 ? 1 : 5 + turn % 9), turn % 3 == 0 ? 0 : 3};
    shape.seqlen_k = {129 + static_cast<std::int64_t>(turn * 7 % 150), turn % 4 == 0 ? 0 : 200};
    shape.bias = s.bias;
    shape.soft_cap = s.has_logits_soft_cap ? 2.0F : 0.0F;
    shape.sink_logit = s.has_sink_logit;
    shape.qscale = page_scales ? QScale::no_scale : s.qscale;
    const bool at_end = turn % 3 != 0;
    if (s.mask == MaskClass::causal)
        shape.mask = {at_end ? MaskType::bottom_right : MaskType::top_left, -1, 0, 0};
    if (s.mask == MaskClass::generic)
        shape.mask = {at_end ? MaskType::bottom_right : MaskType::top_left,
                      static_cast<std::int64_t>(20 + turn % 90), static_cast<std::int64_t>(turn % 4), 0};
    if (s.has_sink && s.mask == MaskClass::generic) shape.mask.sink = 1 + static_cast<std::int64_t>(turn % 5);
    spec.pool = {s.kv_layout, s.kv_lookup, s.page_size, page_scales ? s.qscale : QScale::no_scale,
                 false,       1 + turn};
    return spec;
}

} // namespace fmha::test
