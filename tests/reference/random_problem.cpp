#include "tests/reference/random_problem.hpp"

#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace fmha::reference::test {
namespace {

void store_code(const TensorView& view, std::int64_t element, std::uint32_t code) {
    auto* bytes = static_cast<unsigned char*>(view.data);
    const int bits = element_bits(view.type);
    if (bits == 4) {
        unsigned char& byte = bytes[element / 2];
        const std::uint32_t shift = element % 2 == 0 ? 0U : 4U;
        byte = static_cast<unsigned char>((byte & ~(0xFU << shift)) | (code << shift));
        return;
    }
    std::memcpy(bytes + element * (bits / 8), &code, static_cast<std::size_t>(bits / 8));
}

bool is_mx(DataType tag) {
    return tag == DataType::mxfp8 || tag == DataType::mxfp4;
}

/// Physical position → whether it is logical in entry b.
std::function<bool(std::int64_t, std::int64_t)> inside(const std::vector<std::int64_t>& logical,
                                                       const std::vector<std::int64_t>& physical, Mode mode) {
    return [&logical, &physical, mode](std::int64_t b, std::int64_t row) {
        if (mode == Mode::batch) return row < logical[static_cast<std::size_t>(b)];
        for (std::size_t entry = 0; entry < physical.size(); row -= physical[entry++])
            if (row < physical[entry]) return row < logical[entry];
        return false;
    };
}

std::vector<std::int32_t> starts_of(const std::vector<std::int64_t>& lengths) {
    std::vector<std::int32_t> starts{0};
    for (const std::int64_t length : lengths)
        starts.push_back(starts.back() + static_cast<std::int32_t>(length));
    return starts;
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
    return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

std::int64_t largest(const std::vector<std::int64_t>& values) {
    return *std::ranges::max_element(values);
}

} // namespace

RandomProblem::RandomProblem(std::uint64_t seed, Wish wish) : engine_(seed), wish_(wish) {
    draw_extents();
    draw_lengths();
    draw_tensors();
    draw_mask();
    draw_bias();
    draw_dropout_and_sinks();
    draw_scales();
}

std::int64_t RandomProblem::between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
}

bool RandomProblem::chance(double probability) {
    return std::bernoulli_distribution(probability)(engine_);
}

void RandomProblem::draw_extents() {
    const auto& tags = EnumTable<DataType>::names;
    tag_ = tags[static_cast<std::size_t>(between(0, std::int64_t{tags.size()} - 1))].value;
    if (wish_.differentiable) {
        constexpr std::array wide{DataType::fp32, DataType::fp16, DataType::bf16};
        tag_ = wide[static_cast<std::size_t>(between(0, 2))];
    }
    types_ = element_types(tag_, chance(0.5) ? Fp8Flavour::ocp : Fp8Flavour::fnuz);
    args_.shape.mode = chance(0.5) ? Mode::group : Mode::batch;
    args_.shape.batch = between(1, 3);
    args_.shape.nhead_k = between(1, 2);
    args_.shape.nhead_q = args_.shape.nhead_k * between(1, 3);
    args_.shape.hdim_q = between(1, 40);
    args_.shape.hdim_v = between(1, 24);
    args_.score.scale_s = static_cast<float>(between(1, 30)) / 40.0F;
    args_.score.scale_o = chance(0.2) && !wish_.differentiable ? 2.5F : 1.0F;
}

void RandomProblem::draw_lengths() {
    const bool ragged = chance(0.6);
    const std::int64_t most_q = wish_.long_sequences ? 200 : 70, most_k = wish_.long_sequences ? 1200 : 90;
    const auto draw_side = [&](std::vector<std::int64_t>& physical, std::vector<std::int64_t>& logical,
                               std::int64_t most) {
        const std::int64_t common = between(1, most);
        for (std::int64_t b = 0; b < args_.shape.batch; ++b) {
            physical.push_back(args_.shape.mode == Mode::group ? between(0, most) : common);
            logical.push_back(ragged ? between(0, physical.back()) : physical.back());
        }
    };
    draw_side(physical_q_, logical_q_, most_q);
    draw_side(physical_k_, logical_k_, most_k);
    args_.shape.seqlen_q = physical_q_.front();
    args_.shape.seqlen_k = physical_k_.front();
    args_.shape.max_seqlen_q = std::max<std::int64_t>(1, largest(logical_q_));
    LengthArrays& lengths = args_.lengths;
    if (args_.shape.mode == Mode::group) {
        lengths.seqstart_q = ints(starts_of(physical_q_));
        lengths.seqstart_k = ints(starts_of(physical_k_));
        if (chance(0.25) && !wish_.differentiable) args_.shape.min_seqlen_q = between(1, 30);
    }
    if (!ragged) return;
    const auto plain = [](const std::vector<std::int64_t>& values) {
        return std::vector<std::int32_t>(values.begin(), values.end());
    };
    if (chance(0.5))
        lengths.seqlen_q = ints(plain(logical_q_));
    else
        lengths.cu_seqlen_q = ints(starts_of(logical_q_));
    if (chance(0.5))
        lengths.seqlen_k = ints(plain(logical_k_));
    else
        lengths.cu_seqlen_k = ints(starts_of(logical_k_));
}

TensorView RandomProblem::tensor(ElementType type, const Extents& extents, bool column_major,
                                 const std::function<bool(std::int64_t, std::int64_t)>& is_logical,
                                 const std::function<double()>& value) {
    // From the fastest axis: channels then rows (or the reverse), and heads before or after the slower of the
    // two.
    const bool packed = args_.shape.mode == Mode::group;
    const std::int64_t padding = 2 * between(0, 3);
    const auto padded = [&](std::int64_t n) { return n + n % 2 + padding; };
    TensorView view;
    view.type = type;
    const bool head_inside = chance(0.5);
    const std::int64_t fast = padded(column_major ? extents.rows : extents.cols);
    const std::int64_t slow_extent = column_major ? extents.cols : extents.rows;
    const std::int64_t slow_stride = head_inside ? fast * extents.heads : fast;
    view.head_stride = head_inside ? fast : fast * slow_extent;
    view.row_stride = column_major ? 1 : slow_stride;
    view.col_stride = column_major ? slow_stride : 1;
    view.batch_stride = packed ? 0 : fast * extents.heads * slow_extent + padding;
    const std::int64_t elements =
        (fast * extents.heads * slow_extent + padding) * (packed ? 1 : extents.batch) + 2;
    view.data =
        bytes_.emplace_back(static_cast<std::size_t>(element_bytes(type, elements)), std::byte{0xFF}).data();
    for (std::int64_t b = 0; b < (packed ? 1 : extents.batch); ++b)
        for (std::int64_t h = 0; h < extents.heads; ++h)
            for (std::int64_t row = 0; row < extents.rows; ++row)
                for (std::int64_t col = 0; col < extents.cols; ++col)
                    if (is_logical(b, row))
                        store_code(view, view.offset(b, h, row, col), encode(type, value()));
    return view;
}

void RandomProblem::draw_tensors() {
    const bool packed = args_.shape.mode == Mode::group;
    const std::int64_t rows_q = packed ? sum(physical_q_) : args_.shape.seqlen_q;
    const std::int64_t rows_k = packed ? sum(physical_k_) : args_.shape.seqlen_k;
    const auto query = inside(logical_q_, physical_q_, args_.shape.mode),
               key = inside(logical_k_, physical_k_, args_.shape.mode);
    const auto normal = [this] { return std::normal_distribution<double>()(engine_); };
    const bool column_major = is_mx(tag_) || (chance(0.4) && !wish_.differentiable);
    args_.q = tensor(types_.q, {args_.shape.batch, args_.shape.nhead_q, rows_q, args_.shape.hdim_q}, false,
                     query, normal);
    args_.k = tensor(types_.k, {args_.shape.batch, args_.shape.nhead_k, rows_k, args_.shape.hdim_q}, false,
                     key, normal);
    args_.v = tensor(types_.v, {args_.shape.batch, args_.shape.nhead_k, rows_k, args_.shape.hdim_v},
                     column_major, key, normal);
}

void RandomProblem::draw_mask() {
    MaskArgs& mask = args_.mask;
    mask.type = static_cast<MaskType>(between(wish_.mask ? 1 : 0, 3));
    if (wish_.causal) {
        mask.type = chance(0.5) ? MaskType::top_left : MaskType::bottom_right;
        mask.right = 0;
        return;
    }
    const std::int64_t reach = wish_.long_sequences ? 700 : 40;
    if (mask.type == MaskType::window_generic) {
        mask.left = between(-20, reach);
        mask.right = between(-mask.left, reach);
        return;
    }
    mask.left = chance(0.4) ? -1 : between(0, reach);
    mask.right = chance(0.3) ? -1 : (chance(0.5) ? 0 : between(0, reach));
    if (mask.type != MaskType::no_mask && chance(0.4) && !wish_.differentiable) mask.sink = between(1, 12);
}

void RandomProblem::draw_bias() {
    if (wish_.alibi || (!wish_.elementwise && chance(0.25))) {
        args_.score.bias_type = BiasType::alibi;
        const std::int64_t entries = chance(0.5) ? 1 : args_.shape.batch;
        args_.score.alibi_stride = entries == 1 ? 0 : args_.shape.nhead_q;
        std::vector<float> slopes;
        for (std::int64_t n = 0; n < entries * args_.shape.nhead_q; ++n) {
            const auto slope = static_cast<float>(between(1, 64)) / 128.0F;
            slopes.push_back(n % 4 == 2 ? -slope : slope);
        }
        args_.score.alibi_slopes = floats(slopes);
    } else if (wish_.elementwise || chance(0.3)) {
        args_.score.bias_type = BiasType::elementwise;
        const bool packed = args_.shape.mode == Mode::group;
        const std::int64_t rank = between(0, 2);
        const Extents extents{rank == 2 ? args_.shape.batch : 1, rank >= 1 ? args_.shape.nhead_q : 1,
                              packed ? sum(physical_q_) : args_.shape.seqlen_q, largest(physical_k_)};
        const bool infinities = types_.bias == ElementType::fp32 || types_.bias == ElementType::fp16 ||
                                types_.bias == ElementType::bf16;
        args_.bias = tensor(
            types_.bias, extents, false, [](auto, auto) { return true; },
            [&] {
                if (infinities && chance(0.1)) return -std::numeric_limits<double>::infinity();
                return std::normal_distribution<double>()(engine_);
            });
        if (rank < 2) args_.bias.batch_stride = 0;
        if (rank < 1) args_.bias.head_stride = 0;
    } else if (chance(0.3) && !wish_.differentiable) {
        args_.score.logits_soft_cap = static_cast<float>(between(1, 12)) / 4.0F;
    }
}

void RandomProblem::draw_dropout_and_sinks() {
    if (wish_.dropout || chance(0.3)) {
        args_.dropout.p_drop = static_cast<float>(between(1, 9)) / 10.0F;
        args_.dropout.seed = engine_();
        args_.dropout.offset = chance(0.5) ? engine_() : std::numeric_limits<std::uint64_t>::max() - 10;
    }
    if (wish_.sink_logits || chance(0.3)) {
        std::vector<float> sinks;
        for (std::int64_t h = 0; h < args_.shape.nhead_q; ++h)
            sinks.push_back(h > 0 && chance(0.2) ? -std::numeric_limits<float>::infinity()
                                                 : static_cast<float>(between(-8, 8)) / 4.0F);
        args_.score.sink_logit = floats(sinks);
    }
}

void RandomProblem::draw_scales() {
    if (types_.q == ElementType::fp32 || types_.q == ElementType::fp16 || types_.q == ElementType::bf16)
        return;
    const bool packed = args_.shape.mode == Mode::group;
    const auto everywhere = [](auto, auto) { return true; };
    const auto factor = [this] { return static_cast<double>(between(1, 40)) / 16.0; };
    const auto blocks = [](std::int64_t n, std::int64_t size) { return (n + size - 1) / size; };
    /// Exclusive prefix sums of ⌈P/N⌉ for packed tensors.
    const auto block_starts = [&](const std::vector<std::int64_t>& physical, std::int64_t size) {
        std::vector<std::int64_t> counts;
        for (const std::int64_t length : physical) counts.push_back(blocks(length, size));
        return starts_of(counts);
    };
    if (is_mx(tag_)) {
        args_.quant.qscale = QScale::mx;
        const auto power = [this] { return std::ldexp(1.0, static_cast<int>(between(-2, 2))); };
        const std::int64_t rows_q = packed ? sum(physical_q_) : args_.shape.seqlen_q;
        const std::int64_t rows_k = packed ? sum(physical_k_) : args_.shape.seqlen_k;
        const auto starts = block_starts(physical_k_, 32);
        if (packed) args_.quant.block_scale_seqstart_k = ints(starts);
        const std::int64_t key_blocks = packed ? starts.back() : blocks(args_.shape.seqlen_k, 32);
        const std::int64_t channel_blocks = blocks(args_.shape.hdim_q, 32);
        const auto e8m0 = ElementType::e8m0;
        args_.quant.q_descale = tensor(e8m0, {args_.shape.batch, args_.shape.nhead_q, rows_q, channel_blocks},
                                       false, everywhere, power);
        args_.quant.k_descale = tensor(e8m0, {args_.shape.batch, args_.shape.nhead_k, rows_k, channel_blocks},
                                       false, everywhere, power);
        args_.quant.v_descale =
            tensor(e8m0, {args_.shape.batch, args_.shape.nhead_k, key_blocks, args_.shape.hdim_v},
                   chance(0.5), everywhere, power);
    } else if (chance(0.4)) {
        args_.quant.qscale = QScale::pertensor;
        for (TensorView* scale : {&args_.quant.q_descale, &args_.quant.k_descale, &args_.quant.v_descale}) {
            *scale = tensor(ElementType::fp32, {1, 1, 1, 1}, false, everywhere, factor);
            scale->batch_stride = scale->head_stride = scale->row_stride = scale->col_stride = 0;
        }
    } else if (chance(0.6)) {
        args_.quant.qscale = QScale::blockscale;
        args_.quant.block_scale_size_q = between(1, 48);
        args_.quant.block_scale_size_k = between(1, 48);
        const auto starts_q = block_starts(physical_q_, args_.quant.block_scale_size_q);
        const auto starts_k = block_starts(physical_k_, args_.quant.block_scale_size_k);
        if (packed) {
            args_.quant.block_scale_seqstart_q = ints(starts_q);
            args_.quant.block_scale_seqstart_k = ints(starts_k);
        }
        const std::int64_t rows_q =
            packed ? starts_q.back() : blocks(args_.shape.seqlen_q, args_.quant.block_scale_size_q);
        const std::int64_t rows_k =
            packed ? starts_k.back() : blocks(args_.shape.seqlen_k, args_.quant.block_scale_size_k);
        const auto fp32 = ElementType::fp32;
        args_.quant.q_descale =
            tensor(fp32, {args_.shape.batch, args_.shape.nhead_q, rows_q, 1}, false, everywhere, factor);
        args_.quant.k_descale =
            tensor(fp32, {args_.shape.batch, args_.shape.nhead_k, rows_k, 1}, false, everywhere, factor);
        args_.quant.v_descale =
            tensor(fp32, {args_.shape.batch, args_.shape.nhead_k, rows_k, 1}, false, everywhere, factor);
    }
}

const std::int32_t* RandomProblem::ints(std::vector<std::int32_t> values) {
    return ints_.emplace_back(std::move(values)).data();
}

const float* RandomProblem::floats(std::vector<float> values) {
    return floats_.emplace_back(std::move(values)).data();
}

std::string RandomProblem::text() const {
    std::string text = std::string(to_string(tag_)) + ' ' + std::string(to_string(args_.shape.mode)) +
                       " heads " + std::to_string(args_.shape.nhead_q) + '/' +
                       std::to_string(args_.shape.nhead_k) + " hdim " + std::to_string(args_.shape.hdim_q) +
                       '/' + std::to_string(args_.shape.hdim_v) + " lengths";
    for (std::size_t b = 0; b < logical_q_.size(); ++b)
        text += ' ' + std::to_string(logical_q_[b]) + 'x' + std::to_string(logical_k_[b]);
    const MaskArgs& mask = args_.mask;
    text += " mask " + std::string(to_string(mask.type)) + ' ' + std::to_string(mask.left) + ',' +
            std::to_string(mask.right) + ',' + std::to_string(mask.sink);
    text += " bias " + std::string(to_string(args_.score.bias_type)) + " cap " +
            std::to_string(args_.score.logits_soft_cap);
    text += " p_drop " + std::to_string(args_.dropout.p_drop) + " qscale " +
            std::string(to_string(args_.quant.qscale));
    return text + (args_.score.sink_logit != nullptr ? " sink logits" : "");
}

} // namespace fmha::reference::test
