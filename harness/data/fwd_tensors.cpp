#include "harness/data/fwd_tensors.hpp"

#include "dispatcher/types/error.hpp"
#include "reference/numerics/formats.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <span>

namespace fmha::harness {
namespace {

void append_slopes_of_power_of_two(std::int64_t heads, std::int64_t step, std::int64_t limit,
                                   std::vector<float>& into) {
    for (std::int64_t m = 0; m < heads && static_cast<std::int64_t>(into.size()) < limit; m += step)
        into.push_back(
            static_cast<float>(std::exp2(-8.0 * static_cast<double>(m + 1) / static_cast<double>(heads))));
}

std::uint32_t encode(ElementType type, double value) {
    return reference::encode(type, value);
}

constexpr std::int64_t blocks(std::int64_t length, std::int64_t size) {
    return (length + size - 1) / size;
}

void encode_row(GuardedTensor& tensor, std::int64_t b, std::int64_t h, std::int64_t row,
                std::span<const double> values) {
    std::int64_t column = 0;
    for (const double value : values)
        tensor.set_code(b, h, row, column++, encode(tensor.layout().type, value));
}

} // namespace

std::vector<float> default_alibi_slopes(std::int64_t heads) {
    std::vector<float> slopes;
    std::int64_t power = 1;
    while (power * 2 <= heads) power *= 2;
    append_slopes_of_power_of_two(power, 1, heads, slopes);
    append_slopes_of_power_of_two(power * 2, 2, heads, slopes);
    return slopes;
}

FwdTensors::FwdTensors(const FwdCase& c, Fp8Flavour flavour)
    : case_(&c), layout_(lay_out(c, flavour)), fill_(c, layout_.types.q, layout_.types.v), q_(layout_.q),
      k_(layout_.k), v_(layout_.v), o_(layout_.o) {
    const auto allocate = [](GuardedTensor& tensor, const std::optional<TensorLayout>& layout) {
        if (layout) tensor = GuardedTensor(*layout);
    };
    allocate(lse_, layout_.lse);
    allocate(bias_, layout_.bias);
    allocate(randval_, layout_.randval);
    allocate(q_descale_, layout_.q_descale);
    allocate(k_descale_, layout_.k_descale);
    allocate(v_descale_, layout_.v_descale);
    fill_arrays();
    refill(Poison::nan);
}

std::array<FwdTensors::NamedTensor, 10> FwdTensors::tensors() {
    return {{{"q", &q_},
             {"k", &k_},
             {"v", &v_},
             {"o", &o_},
             {"lse", &lse_},
             {"bias", &bias_},
             {"randval", &randval_},
             {"q_descale", &q_descale_},
             {"k_descale", &k_descale_},
             {"v_descale", &v_descale_}}};
}

GuardedTensor& FwdTensors::tensor(const std::string& name) {
    for (const NamedTensor& named : tensors())
        if (named.name == name) return *named.tensor;
    throw Error("there is no tensor " + name);
}

std::vector<MemoryBlock> FwdTensors::memory() {
    std::vector<MemoryBlock> blocks;
    for (const NamedTensor& named : tensors())
        if (named.tensor->present()) blocks.push_back({named.name, named.tensor->memory()});
    const auto add = [&](std::string_view name, auto& array) {
        if (array.empty()) return;
        auto* bytes = reinterpret_cast<unsigned char*>(array.data());
        blocks.push_back({name, {{bytes, array.size() * sizeof(array[0])}}, false});
    };
    add("seqstart_q", seqstart_q_);
    add("seqstart_k", seqstart_k_);
    add("seqlen_q", seqlen_q_);
    add("seqlen_k", seqlen_k_);
    add("cu_seqlen_q", cu_seqlen_q_);
    add("cu_seqlen_k", cu_seqlen_k_);
    add("block_scale_seqstart_q", block_start_q_);
    add("block_scale_seqstart_k", block_start_k_);
    add("alibi_slopes", alibi_slopes_);
    add("sink_logit", sink_logits_);
    return blocks;
}

void FwdTensors::refill(Poison poison) {
    for (const NamedTensor& named : tensors())
        if (named.tensor->present()) named.tensor->poison(poison);
    fill_descales();
    fill_inputs();
}

void FwdTensors::fill_descales() {
    const FwdCase& c = *case_;
    const bool group = c.mode == Mode::group;
    const auto real = [&](GuardedTensor& tensor, int stream, std::int64_t b, std::int64_t h,
                          std::int64_t local, std::int64_t stored) {
        tensor.set_code(b, h, stored, 0, encode(ElementType::fp32, fill_.descale(stream, b, h, local)));
    };
    if (c.qscale == QScale::pertensor) {
        real(q_descale_, 0, 0, 0, 0, 0);
        real(k_descale_, 1, 0, 0, 0, 0);
        real(v_descale_, 2, 0, 0, 0, 0);
        return;
    }
    for (std::int64_t b = 0; b < c.batch; ++b) {
        const Entry& entry = layout_.entries[static_cast<std::size_t>(b)];
        if (c.qscale == QScale::blockscale) {
            const std::int64_t first_q = group ? entry.block_start_q : 0,
                               first_k = group ? entry.block_start_k : 0;
            for (std::int64_t h = 0; h < c.nhead_q; ++h)
                for (std::int64_t n = 0; n < blocks(entry.seqlen_q, c.block_scale_q); ++n)
                    real(q_descale_, 0, b, h, n, first_q + n);
            for (std::int64_t h = 0; h < c.nhead_k; ++h)
                for (std::int64_t n = 0; n < blocks(entry.seqlen_k, c.block_scale_k); ++n) {
                    real(k_descale_, 1, b, h, n, first_k + n);
                    real(v_descale_, 2, b, h, n, first_k + n);
                }
        }
        if (c.qscale == QScale::mx) {
            for (std::int64_t h = 0; h < c.nhead_q; ++h)
                for (std::int64_t i = 0; i < entry.seqlen_q; ++i)
                    for (std::int64_t g = 0; g < blocks(c.hdim_q, 32); ++g)
                        q_descale_.set_code(b, h, entry.start_q + i, g, fill_.mx_scale(0, b, h, i, g));
            for (std::int64_t h = 0; h < c.nhead_k; ++h) {
                for (std::int64_t j = 0; j < entry.seqlen_k; ++j)
                    for (std::int64_t g = 0; g < blocks(c.hdim_q, 32); ++g)
                        k_descale_.set_code(b, h, entry.start_k + j, g, fill_.mx_scale(1, b, h, j, g));
                for (std::int64_t n = 0; n < blocks(entry.seqlen_k, 32); ++n)
                    for (std::int64_t d = 0; d < c.hdim_v; ++d)
                        v_descale_.set_code(b, h, (group ? entry.block_start_k : 0) + n, d,
                                            fill_.mx_scale(2, b, h, d, n));
            }
        }
    }
}

void FwdTensors::fill_inputs() {
    const FwdCase& c = *case_;
    std::vector<double> qk(static_cast<std::size_t>(c.hdim_q)), v(static_cast<std::size_t>(c.hdim_v));
    // Stored value = real value / descale, on the grid of the type.
    const auto divide = [&](int stream, std::int64_t b, std::int64_t h, std::int64_t position,
                            std::span<double> row) {
        if (c.qscale == QScale::no_scale) return;
        const std::int64_t block = stream == 0 ? c.block_scale_q : c.block_scale_k;
        for (std::size_t column = 0; column < row.size(); ++column) {
            double descale = 1.0;
            if (c.qscale == QScale::pertensor)
                descale = fill_.descale(stream, 0, 0, 0);
            else if (c.qscale == QScale::blockscale)
                descale = fill_.descale(stream, b, h, position / block);
            else if (c.qscale == QScale::mx && stream == 2)
                descale = reference::decode(
                    ElementType::e8m0,
                    fill_.mx_scale(2, b, h, static_cast<std::int64_t>(column), position / 32));
            else if (c.qscale == QScale::mx)
                descale = reference::decode(
                    ElementType::e8m0,
                    fill_.mx_scale(stream, b, h, position, static_cast<std::int64_t>(column) / 32));
            row[column] /= descale;
        }
    };
    for (std::int64_t b = 0; b < c.batch; ++b) {
        const Entry& entry = layout_.entries[static_cast<std::size_t>(b)];
        for (std::int64_t h = 0; h < c.nhead_q; ++h)
            for (std::int64_t i = 0; i < entry.seqlen_q; ++i) {
                fill_.q_row(b, h, i, qk);
                divide(0, b, h, i, qk);
                encode_row(q_, b, h, entry.start_q + i, qk);
            }
        for (std::int64_t h = 0; h < c.nhead_k; ++h)
            for (std::int64_t j = 0; j < entry.seqlen_k; ++j) {
                fill_.k_row(b, h, j, entry.seqlen_k, qk);
                divide(1, b, h, j, qk);
                encode_row(k_, b, h, entry.start_k + j, qk);
                fill_.v_row(b, h, j, v);
                divide(2, b, h, j, v);
                encode_row(v_, b, h, entry.start_k + j, v);
            }
        if (!bias_.present()) continue;
        // A bias that all entries share serves the longest of them; a packed one has rows of its own for each
        // entry.
        const bool shared = c.mode == Mode::batch && layout_.bias_batch == 1;
        if (shared && b > 0) continue;
        const std::int64_t rows = shared ? layout_.max_seqlen_q : entry.seqlen_q;
        const std::int64_t keys = shared ? layout_.max_seqlen_k : entry.seqlen_k;
        for (std::int64_t h = 0; h < layout_.bias_heads; ++h)
            for (std::int64_t i = 0; i < rows; ++i)
                for (std::int64_t j = 0; j < keys; ++j)
                    bias_.set_code(b, h, entry.start_q + i, j,
                                   encode(layout_.types.bias, fill_.bias(b, h, i, j)));
    }
}

void FwdTensors::fill_arrays() {
    const FwdCase& c = *case_;
    const auto i32 = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
    const bool group = c.mode == Mode::group;
    if (group) seqstart_q_ = seqstart_k_ = {0};
    if (c.length_form_q == LengthForm::cu_seqlen || c.length_form_q == LengthForm::both) cu_seqlen_q_ = {0};
    if (c.length_form_k == LengthForm::cu_seqlen || c.length_form_k == LengthForm::both) cu_seqlen_k_ = {0};
    for (const Entry& entry : layout_.entries) {
        if (group) {
            seqstart_q_.push_back(i32(entry.start_q + entry.physical_q));
            seqstart_k_.push_back(i32(entry.start_k + entry.physical_k));
            block_start_q_.push_back(i32(entry.block_start_q));
            block_start_k_.push_back(i32(entry.block_start_k));
        }
        if (c.length_form_q == LengthForm::seqlen || c.length_form_q == LengthForm::both)
            seqlen_q_.push_back(i32(entry.seqlen_q));
        if (c.length_form_k == LengthForm::seqlen || c.length_form_k == LengthForm::both)
            seqlen_k_.push_back(i32(entry.seqlen_k));
        if (!cu_seqlen_q_.empty()) cu_seqlen_q_.push_back(cu_seqlen_q_.back() + i32(entry.seqlen_q));
        if (!cu_seqlen_k_.empty()) cu_seqlen_k_.push_back(cu_seqlen_k_.back() + i32(entry.seqlen_k));
    }
    if (c.bias == BiasType::alibi) {
        const std::vector<float> slopes = default_alibi_slopes(c.nhead_q);
        for (std::int64_t b = 0; b < (c.bias_rank >= 1 ? c.batch : 1); ++b)
            for (const float slope : slopes)
                alibi_slopes_.push_back(slope * (1.0F + static_cast<float>(b) / 8.0F));
    }
    if (c.sink_logits != SinkLogits::none)
        for (std::int64_t h = 0; h < c.nhead_q; ++h) sink_logits_.push_back(fill_.sink_logit(h));
}

FwdArgs FwdTensors::args() const {
    const FwdCase& c = *case_;
    const auto view = [](const GuardedTensor& tensor) {
        return tensor.present() ? tensor.view() : TensorView{};
    };
    const auto pointer = [](const auto& array) { return array.empty() ? nullptr : array.data(); };
    FwdArgs args;
    args.shape.mode = c.mode;
    args.shape.batch = c.batch;
    args.shape.nhead_q = c.nhead_q;
    args.shape.nhead_k = c.nhead_k;
    args.shape.seqlen_q = layout_.entries.front().physical_q;
    args.shape.seqlen_k = layout_.entries.front().physical_k;
    args.shape.max_seqlen_q = layout_.max_seqlen_q;
    args.shape.min_seqlen_q = c.min_seqlen_q;
    args.shape.hdim_q = c.hdim_q;
    args.shape.hdim_v = c.hdim_v;
    args.q = view(q_);
    args.k = view(k_);
    args.v = view(v_);
    args.o = view(o_);
    args.lse = view(lse_);
    args.bias = view(bias_);
    args.randval = view(randval_);
    args.lengths = {pointer(seqstart_q_), pointer(seqstart_k_),  pointer(seqlen_q_),
                    pointer(seqlen_k_),   pointer(cu_seqlen_q_), pointer(cu_seqlen_k_)};
    args.mask = {c.mask, c.window_left, c.window_right, c.sink_size};
    args.score.bias_type = c.bias;
    args.score.alibi_slopes = pointer(alibi_slopes_);
    args.score.alibi_stride = c.bias == BiasType::alibi && c.bias_rank >= 1 ? c.nhead_q : 0;
    args.score.scale_s = resolved_scale(c);
    args.score.scale_o = static_cast<float>(c.scale_o);
    args.score.logits_soft_cap = static_cast<float>(c.logits_soft_cap);
    args.score.sink_logit = pointer(sink_logits_);
    args.dropout.p_drop = static_cast<float>(c.p_drop);
    args.dropout.seed = c.dropout_seed;
    args.dropout.offset = c.dropout_offset;
    args.quant.qscale = c.qscale;
    args.quant.q_descale = view(q_descale_);
    args.quant.k_descale = view(k_descale_);
    args.quant.v_descale = view(v_descale_);
    args.quant.block_scale_size_q = c.block_scale_q;
    args.quant.block_scale_size_k = c.block_scale_k;
    args.quant.block_scale_seqstart_q = pointer(block_start_q_);
    args.quant.block_scale_seqstart_k = pointer(block_start_k_);
    return args;
}

std::uint64_t FwdTensors::input_checksum() const {
    std::uint64_t sum = 0;
    for (const GuardedTensor* tensor : {&q_, &k_, &v_, &bias_, &q_descale_, &k_descale_, &v_descale_})
        if (tensor->present()) sum = sum * 0x100000001B3ULL + tensor->checksum();
    return sum;
}

std::optional<std::string> FwdTensors::stray_write() {
    const FwdCase& c = *case_;
    for (std::int64_t b = 0; b < c.batch; ++b) {
        const Entry& entry = layout_.entries[static_cast<std::size_t>(b)];
        if (entry.skipped) continue;
        for (std::int64_t h = 0; h < c.nhead_q; ++h)
            for (std::int64_t i = 0; i < entry.seqlen_q; ++i) {
                const std::int64_t row = entry.start_q + i;
                for (std::int64_t d = 0; d < c.hdim_v; ++d) o_.set_code(b, h, row, d, o_.poison_code());
                if (lse_.present()) lse_.set_code(b, h, row, 0, lse_.poison_code());
                if (!randval_.present()) continue;
                for (std::int64_t j = 0; j < entry.seqlen_k; ++j)
                    randval_.set_code(b, h, row, j, randval_.poison_code());
            }
    }
    const std::array<std::pair<const char*, const GuardedTensor*>, 3> outputs{
        {{"o", &o_}, {"lse", &lse_}, {"randval", &randval_}}};
    for (const auto& [name, tensor] : outputs) {
        if (!tensor->present()) continue;
        if (const auto stray = tensor->first_stray())
            return fmt::format("{}: element {} ({})", name, stray->element, stray->where);
    }
    return std::nullopt;
}

} // namespace fmha::harness
