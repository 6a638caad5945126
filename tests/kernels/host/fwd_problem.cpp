#include "fwd_problem.hpp"

#include "kernels/programs/formats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace fmha::host_target::test {
namespace {

std::int64_t blocks_of(std::int64_t n, std::int64_t block) {
    return (n + block - 1) / block;
}

void put(std::uint8_t* base, ElementType type, std::int64_t at, std::uint32_t code) {
    switch (element_bits(type)) {
    case 32:
        std::memcpy(base + 4 * at, &code, 4);
        return;
    case 16: {
        const auto half = static_cast<std::uint16_t>(code);
        std::memcpy(base + 2 * at, &half, 2);
        return;
    }
    case 4: {
        const auto shift = static_cast<unsigned>(at % 2 * 4);
        base[at / 2] = static_cast<std::uint8_t>((base[at / 2] & ~(0xFU << shift)) | (code << shift));
        return;
    }
    default:
        base[at] = static_cast<std::uint8_t>(code);
    }
}

double get(const std::uint8_t* base, ElementType type, std::int64_t at) {
    if (type == ElementType::fp32) {
        float x = 0;
        std::memcpy(&x, base + 4 * at, 4);
        return x;
    }
    std::uint32_t code = base[at];
    if (element_bits(type) == 16) {
        std::uint16_t half = 0;
        std::memcpy(&half, base + 2 * at, 2);
        code = half;
    }
    return kernels::decode(code, kernels::format_of(type));
}

std::uint32_t nan_code(ElementType type) {
    return type == ElementType::fp4 ? 7U : kernels::encode(std::numeric_limits<float>::quiet_NaN(), type);
}

constexpr std::uint8_t poison = 0xA5;

} // namespace

FwdProblem::FwdProblem(const Shape& shape, std::uint64_t seed)
    : shape_(shape), types_(element_types(shape.data_type, fp8_flavour(shape.arch))) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    const Shape& s = shape_;
    const std::int64_t batch = s.batch;
    const auto length = [](const std::vector<std::int64_t>& lengths, std::int64_t b) {
        return lengths[static_cast<std::size_t>(b) % lengths.size()];
    };
    seqstart_q_ = {0};
    seqstart_k_ = {0};
    blocks_q_ = {0};
    blocks_k_ = {0};
    std::int64_t longest_q = 0, longest_k = 0;
    const std::int64_t scale_block = s.qscale == QScale::mx ? 32 : 128;
    for (std::int64_t b = 0; b < batch; ++b) {
        const std::int64_t q = length(s.seqlen_q, b), k = length(s.seqlen_k, b);
        seqlen_q_.push_back(static_cast<std::int32_t>(q));
        seqlen_k_.push_back(static_cast<std::int32_t>(k));
        seqstart_q_.push_back(static_cast<std::int32_t>(seqstart_q_.back() + q + s.extra));
        seqstart_k_.push_back(static_cast<std::int32_t>(seqstart_k_.back() + k + s.extra));
        blocks_q_.push_back(static_cast<std::int32_t>(blocks_q_.back() + blocks_of(q + s.extra, 128)));
        blocks_k_.push_back(
            static_cast<std::int32_t>(blocks_k_.back() + blocks_of(k + s.extra, scale_block)));
        longest_q = std::max(longest_q, q);
        longest_k = std::max(longest_k, k);
    }

    args_.shape.mode = s.group ? Mode::group : Mode::batch;
    args_.shape.batch = batch;
    args_.shape.nhead_q = s.nhead_q;
    args_.shape.nhead_k = s.nhead_k;
    args_.shape.seqlen_q = longest_q + s.extra;
    args_.shape.seqlen_k = longest_k + s.extra;
    args_.shape.max_seqlen_q = std::max<std::int64_t>(1, longest_q);
    args_.shape.min_seqlen_q = s.min_seqlen_q;
    args_.shape.hdim_q = s.hdim_q;
    args_.shape.hdim_v = s.hdim_v;
    args_.mask = s.mask;
    args_.score.bias_type = s.bias;
    args_.score.scale_s = 1.0F / std::sqrt(static_cast<float>(s.hdim_q));
    args_.score.logits_soft_cap = s.soft_cap;
    args_.dropout.p_drop = s.p_drop;
    args_.dropout.seed = 12345;
    args_.dropout.offset = 678;
    args_.quant.qscale = s.qscale;
    if (s.group) {
        args_.lengths.seqstart_q = seqstart_q_.data();
        args_.lengths.seqstart_k = seqstart_k_.data();
    }
    const bool ragged = s.extra > 0 || s.seqlen_q.size() > 1 || s.seqlen_k.size() > 1;
    if (ragged && (!s.group || s.extra > 0)) {
        args_.lengths.seqlen_q = seqlen_q_.data();
        args_.lengths.seqlen_k = seqlen_k_.data();
    }

    // Physical extents of a tensor: one entry per batch, or everything packed behind one another.
    const std::int64_t entries = s.group ? 1 : batch;
    const std::int64_t rows_q = s.group ? seqstart_q_.back() : args_.shape.seqlen_q;
    const std::int64_t rows_k = s.group ? seqstart_k_.back() : args_.shape.seqlen_k;
    const auto fill = [&](const TensorView& view, std::int64_t heads, bool keys, std::int64_t cols,
                          auto value) {
        for (std::int64_t b = 0; b < batch; ++b)
            for (std::int64_t h = 0; h < heads; ++h)
                for (std::int64_t r = 0; r < length(keys ? s.seqlen_k : s.seqlen_q, b); ++r)
                    for (std::int64_t c = 0; c < cols; ++c) {
                        const std::int64_t row =
                            r +
                            (s.group ? (keys ? seqstart_k_ : seqstart_q_)[static_cast<std::size_t>(b)] : 0);
                        put(static_cast<std::uint8_t*>(view.data), view.type, view.offset(b, h, row, c),
                            kernels::encode(value(), view.type));
                    }
    };
    const auto gauss = [&] { return normal(random); };
    args_.q = make(types_.q, entries, s.nhead_q, rows_q, s.hdim_q, false, nullptr);
    args_.k = make(types_.k, entries, s.nhead_k, rows_k, s.hdim_q, false, nullptr);
    args_.v = make(types_.v, entries, s.nhead_k, rows_k, s.hdim_v, s.v_layout == VLayout::column, nullptr);
    fill(args_.q, s.nhead_q, false, s.hdim_q, gauss);
    fill(args_.k, s.nhead_k, true, s.hdim_q, gauss);
    fill(args_.v, s.nhead_k, true, s.hdim_v,
         [&] { return s.positive_values ? std::abs(normal(random)) : normal(random); });

    if (s.bias == BiasType::elementwise) {
        args_.bias = make(types_.bias, entries, s.nhead_q, rows_q, longest_k, false, nullptr);
        const float never =
            types_.bias == ElementType::bf8_fnuz ? -8.0F : -std::numeric_limits<float>::infinity();
        fill(args_.bias, s.nhead_q, false, longest_k, [&] {
            return random() % 16 == 0 && types_.bias != ElementType::bf8_ocp ? never : normal(random);
        });
    }
    if (s.bias == BiasType::alibi) {
        for (std::int64_t n = 0; n < batch * s.nhead_q; ++n)
            slopes_.push_back(0.02F + 0.01F * static_cast<float>(n));
        args_.score.alibi_slopes = slopes_.data();
        args_.score.alibi_stride = s.nhead_q;
    }
    if (s.sink_logit) {
        for (std::int64_t h = 0; h < s.nhead_q; ++h)
            sinks_.push_back(h == 1 ? -std::numeric_limits<float>::infinity() : normal(random));
        args_.score.sink_logit = sinks_.data();
    }
    if (s.qscale == QScale::pertensor || s.qscale == QScale::blockscale) {
        const bool whole = s.qscale == QScale::pertensor;
        const auto scales = [&](std::int64_t heads, std::int64_t blocks) {
            TensorView view = make(ElementType::fp32, entries, heads, blocks, 1, false, nullptr);
            if (whole) view.batch_stride = view.head_stride = view.row_stride = 0;
            for (std::int64_t b = 0; b < entries; ++b)
                for (std::int64_t h = 0; h < heads; ++h)
                    for (std::int64_t r = 0; r < blocks; ++r)
                        static_cast<float*>(view.data)[view.offset(b, h, r, 0)] =
                            0.5F + 0.25F * static_cast<float>(random() % 5);
            return view;
        };
        const std::int64_t q_blocks = s.group ? blocks_q_.back() : blocks_of(rows_q, 128);
        const std::int64_t k_blocks = s.group ? blocks_k_.back() : blocks_of(rows_k, 128);
        args_.quant.q_descale = scales(s.nhead_q, whole ? 1 : q_blocks);
        args_.quant.k_descale = scales(s.nhead_k, whole ? 1 : k_blocks);
        args_.quant.v_descale = scales(s.nhead_k, whole ? 1 : k_blocks);
    }
    if (s.qscale == QScale::mx) {
        const auto scales = [&](std::int64_t heads, std::int64_t rows, std::int64_t cols) {
            const TensorView view = make(ElementType::e8m0, entries, heads, rows, cols, false, nullptr);
            auto* codes = static_cast<std::uint8_t*>(view.data);
            for (std::int64_t b = 0; b < entries; ++b)
                for (std::int64_t h = 0; h < heads; ++h)
                    for (std::int64_t r = 0; r < rows; ++r)
                        for (std::int64_t c = 0; c < cols; ++c)
                            codes[view.offset(b, h, r, c)] = static_cast<std::uint8_t>(126 + random() % 3);
            return view;
        };
        args_.quant.q_descale = scales(s.nhead_q, rows_q, blocks_of(s.hdim_q, 32));
        args_.quant.k_descale = scales(s.nhead_k, rows_k, blocks_of(s.hdim_q, 32));
        args_.quant.v_descale =
            scales(s.nhead_k, s.group ? blocks_k_.back() : blocks_of(rows_k, 32), s.hdim_v);
    }
    if (s.group && s.qscale != QScale::no_scale) {
        args_.quant.block_scale_seqstart_q = blocks_q_.data();
        args_.quant.block_scale_seqstart_k = blocks_k_.data();
    }

    std::vector<std::uint8_t>* storage = nullptr;
    args_.o = make(types_.o, entries, s.nhead_q, rows_q, s.hdim_v, false, &storage);
    o_ = std::move(*storage);
    args_.o.data = o_.data();
    args_.lse = make(ElementType::fp32, entries, s.nhead_q, rows_q, 1, false, &storage);
    lse_ = std::move(*storage);
    args_.lse.data = lse_.data();
    if (s.p_drop > 0.0F) {
        args_.randval = make(ElementType::uint8, entries, s.nhead_q, rows_q, longest_k, false, &storage);
        randval_ = std::move(*storage);
        args_.randval.data = randval_.data();
    }
    poison_outputs();
}

TensorView FwdProblem::make(ElementType type, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                            std::int64_t cols, bool column_major, std::vector<std::uint8_t>** storage) {
    TensorView view;
    view.type = type;
    const std::int64_t line = (column_major ? rows : cols) + shape_.padding;
    const std::int64_t padded = line + line % 2; // packed fp4 needs even lines
    const std::int64_t lines = (column_major ? cols : rows) + 1;
    view.row_stride = column_major ? 1 : padded;
    view.col_stride = column_major ? padded : 1;
    view.head_stride = lines * padded;
    view.batch_stride = shape_.group ? 0 : heads * view.head_stride;
    const std::int64_t count = batch * heads * view.head_stride;
    auto& bytes = inputs_.emplace_back(static_cast<std::size_t>(element_bytes(type, count)));
    view.data = bytes.data();
    for (std::int64_t at = 0; at < count; ++at) put(bytes.data(), type, at, nan_code(type));
    if (storage != nullptr) *storage = &bytes;
    return view;
}

KernelConfig FwdProblem::config(Tile tile) const {
    KernelConfig config;
    config.arch = std::string_view(shape_.arch);
    Signature& s = config.signature;
    s.data_type = shape_.data_type;
    s.mode = args_.shape.mode;
    s.v_layout = shape_.v_layout;
    s.has_logits_soft_cap = shape_.soft_cap > 0.0F;
    s.mask = shape_.mask.type == MaskType::no_mask                                  ? MaskClass::none
             : shape_.mask.type != MaskType::window_generic && shape_.mask.left < 0 ? MaskClass::causal
                                                                                    : MaskClass::generic;
    s.bias = shape_.bias;
    s.has_lse = true;
    s.has_dropout = shape_.p_drop > 0.0F;
    s.is_store_randval = s.has_dropout;
    s.qscale = shape_.qscale;
    s.skip_min_seqlen_q = shape_.min_seqlen_q > 0;
    s.has_sink = shape_.mask.sink > 0;
    s.has_sink_logit = shape_.sink_logit;
    s.hdim_q = tile.k0max;
    s.hdim_v = std::max<std::int64_t>(tile.n1, shape_.hdim_v);
    config.algorithm.tile = tile;
    config.algorithm.pad = {true, true, 1, 1};
    return config;
}

std::int64_t FwdProblem::start(const std::vector<std::int32_t>& starts, std::int64_t b) const {
    return shape_.group ? starts[static_cast<std::size_t>(b)] : 0;
}

double FwdProblem::o(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) const {
    return get(o_.data(), types_.o, args_.o.offset(b, h, start(seqstart_q_, b) + i, c));
}
double FwdProblem::lse(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return get(lse_.data(), ElementType::fp32, args_.lse.offset(b, h, start(seqstart_q_, b) + i, 0));
}
std::uint8_t FwdProblem::random_byte(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return randval_[static_cast<std::size_t>(args_.randval.offset(b, h, start(seqstart_q_, b) + i, j))];
}

std::vector<std::uint8_t> FwdProblem::output_bytes() const {
    std::vector<std::uint8_t> all = o_;
    all.insert(all.end(), lse_.begin(), lse_.end());
    all.insert(all.end(), randval_.begin(), randval_.end());
    return all;
}

void FwdProblem::poison_outputs() {
    for (auto* bytes : {&o_, &lse_, &randval_}) std::fill(bytes->begin(), bytes->end(), poison);
}

bool FwdProblem::only_logical_elements_written() const {
    const auto untouched = [&](std::vector<std::uint8_t> bytes, const TensorView& view, bool keys,
                               std::int64_t cols) {
        for (std::int64_t b = 0; b < shape_.batch; ++b)
            for (std::int64_t h = 0; h < shape_.nhead_q; ++h)
                for (std::int64_t i = 0; i < seqlen_q_[static_cast<std::size_t>(b)]; ++i)
                    for (std::int64_t c = 0; c < (keys ? seqlen_k_[static_cast<std::size_t>(b)] : cols);
                         ++c) {
                        const auto size = element_bytes(view.type);
                        const auto at = view.offset(b, h, start(seqstart_q_, b) + i, c) * size;
                        std::fill_n(bytes.begin() + at, size, poison);
                    }
        return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == poison; });
    };
    return untouched(o_, args_.o, false, shape_.hdim_v) && untouched(lse_, args_.lse, false, 1) &&
           (!args_.randval.present() || untouched(randval_, args_.randval, true, 0));
}

} // namespace fmha::host_target::test
