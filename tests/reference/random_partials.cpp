#include "tests/reference/random_partials.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace fmha::reference::test {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float never = -std::numeric_limits<float>::infinity();

} // namespace

RandomPartials::RandomPartials(std::uint64_t seed, PartialsWish wish) : engine_(seed), wish_(wish) {
    draw_extents();
    args_.partials.o_acc = view(o_acc_, args_.shape.hdim_v);
    args_.partials.lse_acc = view(lse_acc_, 1);
    for (std::int64_t b = 0; b < (args_.shape.mode == Mode::group ? 1 : args_.shape.batch); ++b)
        for (std::int64_t h = 0; h < args_.shape.nhead_q; ++h)
            for (std::int64_t row = 0; row < rows_; ++row) fill_row(b, h, row);
    if (!wish_.sinks && chance(0.6)) return;
    for (std::int64_t h = 0; h < args_.shape.nhead_q; ++h)
        sinks_.push_back(h > 0 && chance(0.2) ? never : static_cast<float>(normal() * 3.0));
    args_.score.sink_logit = sinks_.data();
}

std::int64_t RandomPartials::between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
}

bool RandomPartials::chance(double probability) {
    return std::bernoulli_distribution(probability)(engine_);
}

double RandomPartials::normal() {
    return std::normal_distribution<double>()(engine_);
}

void RandomPartials::draw_extents() {
    Shape& shape = args_.shape;
    shape.mode = wish_.group || chance(0.4) ? Mode::group : Mode::batch;
    shape.batch = between(wish_.group ? 2 : 1, 3);
    shape.nhead_q = between(wish_.several_heads || wish_.sinks ? 2 : 1, 4);
    shape.nhead_k = 1;
    shape.hdim_q = shape.hdim_v = between(1, 20);
    shape.seqlen_q = between(1, 9);
    args_.score.scale_o = chance(0.3) ? 2.5F : 1.0F;
    constexpr std::array<std::int64_t, 7> usual{1, 2, 3, 5, 8, 33, 128};
    args_.partials.num_splits = usual[static_cast<std::size_t>(between(0, usual.size() - 1))];
    spread_ = wish_.far ? Spread::far : wish_.wide ? Spread::wide : static_cast<Spread>(between(0, 3));
    empty_ = wish_.empty_splits || chance(0.5) ? 0.4 : 0.0;
    rows_ = shape.seqlen_q;
    if (shape.mode == Mode::batch) return;
    starts_.push_back(0);
    for (std::int64_t b = 0; b < shape.batch; ++b)
        starts_.push_back(starts_.back() + static_cast<std::int32_t>(between(b == 0 ? 1 : 0, 6)));
    rows_ = starts_.back();
    args_.lengths.seqstart_q = starts_.data();
}

TensorView RandomPartials::view(std::vector<float>& memory, std::int64_t cols) {
    const Shape& shape = args_.shape;
    const std::int64_t heads = shape.nhead_q * args_.partials.num_splits, gap = between(0, 3);
    TensorView out;
    out.type = ElementType::fp32;
    out.row_stride = cols + gap;
    out.head_stride = rows_ * out.row_stride + gap;
    if (chance(0.3)) { // rows outermost
        out.head_stride = cols + gap;
        out.row_stride = heads * out.head_stride + gap;
    }
    const std::int64_t entry = std::max(heads * out.head_stride, rows_ * out.row_stride) + gap;
    const bool packed = shape.mode == Mode::group;
    out.batch_stride = packed ? 0 : entry;
    memory.assign(static_cast<std::size_t>(entry * (packed ? 1 : shape.batch)), nan);
    out.data = memory.data();
    return out;
}

void RandomPartials::fill_row(std::int64_t b, std::int64_t h, std::int64_t row) {
    const Partials& p = args_.partials;
    const double anchor = spread_ == Spread::far ? (chance(0.5) ? 1500.0 : -1500.0) : 0.0;
    const double width = spread_ == Spread::wide ? 400.0 : spread_ == Spread::equal ? 0.0 : 2.0;
    const bool nothing = empty_ > 0.0 && chance(0.2);
    for (std::int64_t s = 0; s < p.num_splits; ++s) {
        const std::int64_t head = h * p.num_splits + s;
        const bool empty = nothing || chance(empty_);
        lse_acc_[static_cast<std::size_t>(p.lse_acc.offset(b, head, row, 0))] =
            empty ? never : static_cast<float>(anchor + width * normal());
        for (std::int64_t c = 0; c < args_.shape.hdim_v && !empty; ++c)
            o_acc_[static_cast<std::size_t>(p.o_acc.offset(b, head, row, c))] = static_cast<float>(normal());
    }
}

std::string RandomPartials::text() const {
    return std::string(to_string(args_.shape.mode)) + " heads " + std::to_string(args_.shape.nhead_q) +
           " rows " + std::to_string(rows_) + " hdim " + std::to_string(args_.shape.hdim_v) + " splits " +
           std::to_string(args_.partials.num_splits) + " spread " +
           std::to_string(static_cast<int>(spread_)) + (empty_ > 0.0 ? " empty splits" : "") +
           (args_.score.sink_logit != nullptr ? " sinks" : "");
}

} // namespace fmha::reference::test
