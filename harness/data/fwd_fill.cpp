#include "harness/data/fwd_fill.hpp"

#include "harness/cases/value_order.hpp"
#include "harness/data/infinity.hpp"
#include "harness/data/tie_values.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fmha::harness {
namespace {

std::uint64_t u64(std::int64_t value) {
    return static_cast<std::uint64_t>(value);
}

bool is_edge(Fill fill) {
    return fill == Fill::edge_last || fill == Fill::edge_first;
}

/// Of the fills `rising` and `shifted`: sixteen, but never more than half, so that rows differ in the others.
std::size_t lifting_channels(std::size_t channels) {
    return std::clamp<std::size_t>(channels / 2, 1, 16);
}

/// Largest power of two of the fill H: near the top of narrow types, 2^40 where products would leave the
/// range that L-5 permits.
double huge_value(ElementType type) {
    switch (type) {
    case ElementType::fp32:
    case ElementType::bf16:
        return 0x1p40;
    case ElementType::fp16:
    case ElementType::bf8_ocp:
    case ElementType::bf8_fnuz:
        return 0x1p15;
    case ElementType::fp4:
        return 4.0;
    default:
        return 128.0;
    }
}

/// Of the fill `shifted`: what the lifting channels of Q hold, negated where scores rise with products, and those of K.
double shifting_value(ElementType type, std::size_t channels, double sigma) {
    constexpr double shift = 1e5;
    return std::min(std::sqrt(shift / (std::abs(sigma) * static_cast<double>(lifting_channels(channels)))),
                    huge_value(type));
}

/// Of the fill `heavy_tailed`: one row in sixteen.
double tail_factor(const Random& row) {
    constexpr std::uint64_t beyond_channels = std::uint64_t{1} << 32U;
    return (row.bits(beyond_channels) & 15U) == 0 ? 100.0 : 1.0;
}

/// Largest integer up to which every integer is on the type's grid.
std::int64_t largest_v_integer(ElementType type) {
    switch (type) {
    case ElementType::fp8_ocp:
    case ElementType::fp8_fnuz:
        return 15;
    case ElementType::bf8_ocp:
    case ElementType::bf8_fnuz:
        return 7;
    case ElementType::fp4:
        return 4;
    default:
        return 127;
    }
}

} // namespace

float resolved_scale(const Case& c) {
    return c.scale_s != 0.0 ? static_cast<float>(c.scale_s) : 1.0F / std::sqrt(static_cast<float>(c.hdim_q));
}

FwdFill::FwdFill(const Case& c, const ElementTypes& types)
    : case_(c), types_(types), q_(c.seed, 0), k_(c.seed, 1), v_(c.seed, 2), bias_(c.seed, 3),
      sink_(c.seed, 4), descale_(c.seed, 5), sigma_(static_cast<double>(resolved_scale(c))) {
    if (is_edge(c.fill)) edge_ = EdgeCode::make(types.q, c.qscale == QScale::mx, c.hdim_q, sigma_);
}

bool FwdFill::exact() const {
    switch (case_.fill) {
    case Fill::indexed:
    case Fill::zeros:
    case Fill::huge:
    case Fill::integers:
    case Fill::edge_last:
    case Fill::edge_first:
    case Fill::ties:
    case Fill::weight_ties:
    case Fill::shifted: // one addend for all scores, whatever the descales of their tokens and blocks
        return true;
    case Fill::normal:
    case Fill::sharp:
    case Fill::uniform:
    case Fill::rising:
    case Fill::heavy_tailed:
        return false;
    }
    return false;
}

Random FwdFill::of_query(const Random& stream, std::int64_t b, std::int64_t h, std::int64_t i) const {
    return stream.row(u64(plain_entry(case_, b)), u64(plain_head(case_, h, case_.nhead_q)), u64(i));
}

Random FwdFill::of_key(const Random& stream, std::int64_t b, std::int64_t hk, std::int64_t j) const {
    return stream.row(u64(plain_entry(case_, b)), u64(plain_head(case_, hk, case_.nhead_k)), u64(j));
}

Random FwdFill::of_descale(int stream, std::int64_t b, std::int64_t h) const {
    const bool of_tensor =
        case_.qscale == QScale::pertensor || (case_.qscale == QScale::kv_blockscale && stream == 0);
    const bool of_head = case_.qscale == QScale::per_token_head && stream == 2;
    if (!of_tensor) h = plain_head(case_, h, stream == 0 ? case_.nhead_q : case_.nhead_k);
    if (!of_tensor && !of_head) b = plain_entry(case_, b);
    return descale_.row(static_cast<std::uint64_t>(stream), u64(b), u64(h));
}

void FwdFill::normal_row(const Random& random, double factor, std::span<double> row) const {
    for (std::size_t c = 0; c < row.size(); ++c) row[c] = clear_of_subnormals(factor * random.normal(c));
}

void FwdFill::uniform_row(const Random& random, std::span<double> row) const {
    for (std::size_t c = 0; c < row.size(); ++c) row[c] = clear_of_subnormals(random.uniform(c));
}

void FwdFill::q_row(std::int64_t b, std::int64_t h, std::int64_t i, std::span<double> row) const {
    const Random random = of_query(q_, b, h, i);
    switch (case_.fill) {
    case Fill::normal:
        return normal_row(random, 1.0, row);
    case Fill::sharp:
        return normal_row(random, 3.0, row);
    case Fill::indexed:
        return normal_row(random, 0.125, row);
    case Fill::zeros:
    case Fill::ties:
        return std::fill(row.begin(), row.end(), 0.0);
    case Fill::huge:
        for (std::size_t c = 0; c < row.size(); ++c)
            row[c] = (random.bits(c / 2) & 1U) != 0 ? huge_value(types_.q) : -huge_value(types_.q);
        return;
    case Fill::uniform:
        return uniform_row(random, row);
    case Fill::integers:
        for (std::size_t c = 0; c < row.size(); ++c) row[c] = static_cast<double>(random.integer(c, -3, 3));
        return;
    case Fill::rising:
        normal_row(random, 1.0, row);
        std::fill_n(row.begin(), lifting_channels(row.size()), 2.0);
        return;
    case Fill::shifted: {
        normal_row(random, 1.0, row);
        const double value = shifting_value(types_.q, row.size(), sigma_);
        std::fill_n(row.begin(), lifting_channels(row.size()), sigma_ > 0.0 ? -value : value);
        return;
    }
    case Fill::heavy_tailed:
        return normal_row(random, tail_factor(random), row);
    case Fill::edge_last:
    case Fill::edge_first:
        std::fill(row.begin(), row.end(), 0.0);
        if (!edge_) return;
        for (const auto& digit : edge_->digits())
            std::fill_n(row.begin() + digit.first_channel, digit.channels,
                        case_.fill == Fill::edge_last ? digit.weight : -digit.weight);
        return;
    case Fill::weight_ties:
        for (std::size_t c = 0; c < row.size(); ++c)
            row[c] = weight_tie_query(tie_weight_exponent(types_.p), static_cast<std::int64_t>(c));
        return;
    }
}

void FwdFill::k_row(std::int64_t b, std::int64_t hk, std::int64_t j, std::int64_t seqlen_k,
                    std::span<double> row) const {
    const Random random = of_key(k_, b, hk, j);
    switch (case_.fill) {
    case Fill::normal:
    case Fill::heavy_tailed:
        return normal_row(random, 1.0, row);
    case Fill::sharp:
        return normal_row(random, 3.0, row);
    case Fill::indexed:
        return normal_row(random, 0.125, row);
    case Fill::zeros:
    case Fill::ties:
        return std::fill(row.begin(), row.end(), 0.0);
    case Fill::huge:
        // Neighbouring channels cancel exactly, in every order of summation: all partial sums are small
        // multiples of one power of two.
        for (std::size_t c = 0; c < row.size(); ++c) {
            const double sign = (random.bits(c / 2) & 1U) != 0 ? 1.0 : -1.0;
            row[c] = (c % 2 == 0 ? sign : -sign) * huge_value(types_.q);
        }
        return;
    case Fill::uniform:
        return uniform_row(random, row);
    case Fill::integers:
        for (std::size_t c = 0; c < row.size(); ++c) row[c] = static_cast<double>(random.integer(c, -3, 3));
        return;
    case Fill::rising: {
        normal_row(random, 1.0, row);
        // The channels in which Q is 2 lift the logit by 8 over the key range.
        const std::size_t channels = lifting_channels(row.size());
        const double position =
            static_cast<double>(j) / static_cast<double>(std::max<std::int64_t>(1, seqlen_k));
        std::fill_n(row.begin(), channels, 8.0 * position / (sigma_ * 2.0 * static_cast<double>(channels)));
        return;
    }
    case Fill::shifted:
        normal_row(random, 1.0, row);
        std::fill_n(row.begin(), lifting_channels(row.size()), shifting_value(types_.q, row.size(), sigma_));
        return;
    case Fill::edge_last:
    case Fill::edge_first: {
        std::fill(row.begin(), row.end(), 0.0);
        if (!edge_) return;
        const std::int64_t rank = edge_->rank(j, seqlen_k, case_.fill == Fill::edge_last);
        for (std::size_t p = 0; p < edge_->digits().size(); ++p) {
            const auto& digit = edge_->digits()[p];
            std::fill_n(row.begin() + digit.first_channel, digit.channels,
                        static_cast<double>(edge_->digit(rank, p)));
        }
        return;
    }
    case Fill::weight_ties:
        for (std::size_t c = 0; c < row.size(); ++c)
            row[c] = weight_tie_key(tie_weight_exponent(types_.p), j, static_cast<std::int64_t>(c));
        return;
    }
}

void FwdFill::v_row(std::int64_t b, std::int64_t hk, std::int64_t j, std::span<double> row) const {
    const Random random = of_key(v_, b, hk, j);
    switch (case_.fill) {
    case Fill::normal:
    case Fill::sharp:
    case Fill::huge:
    case Fill::rising:
    case Fill::shifted:
        return normal_row(random, 1.0, row);
    case Fill::heavy_tailed:
        return normal_row(random, tail_factor(random), row);
    case Fill::indexed:
    case Fill::zeros: {
        // fp4 spans fewer binades than the seven of the definition.
        const std::int64_t binades = types_.v == ElementType::fp4 ? 3 : 7;
        const double sign = (random.bits(0) & 1U) != 0 ? 1.0 : -1.0;
        for (std::size_t c = 0; c < row.size(); ++c)
            row[c] = std::ldexp(sign, static_cast<int>((j + static_cast<std::int64_t>(c)) % binades));
        return;
    }
    case Fill::uniform:
        return uniform_row(random, row);
    case Fill::integers:
        for (std::size_t c = 0; c < row.size(); ++c) row[c] = static_cast<double>(random.integer(c, -3, 3));
        return;
    case Fill::edge_last:
    case Fill::edge_first: {
        const std::int64_t most = largest_v_integer(types_.v);
        for (std::size_t c = 0; c < row.size(); ++c) {
            const double magnitude = static_cast<double>(random.integer(c, 1, most));
            row[c] = (random.bits(c) >> 63U) != 0 ? -magnitude : magnitude;
        }
        return;
    }
    case Fill::ties:
        for (std::size_t c = 0; c < row.size(); ++c)
            row[c] = tied_value(of_key(v_, b, hk, 0), j, static_cast<std::int64_t>(c), types_.v, types_.o);
        return;
    case Fill::weight_ties:
        for (std::size_t c = 0; c < row.size(); ++c)
            row[c] = weight_tie_value(of_key(v_, b, hk, 0), j, static_cast<std::int64_t>(c), types_.v);
        return;
    }
}

double FwdFill::bias(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const bool shared = case_.mode == Mode::batch && case_.bias_rank < 2;
    const std::int64_t entry = shared ? b : plain_entry(case_, b);
    const std::int64_t head = case_.bias_rank < 1 ? h : plain_head(case_, h, case_.nhead_q);
    const Random random = bias_.row(u64(entry), u64(head), u64(i));
    return (random.bits(u64(j)) & 15U) == 7U ? -infinity : random.normal(u64(j));
}

float FwdFill::sink_logit(std::int64_t at) const {
    const std::int64_t h = plain_head(case_, at, case_.nhead_q);
    const bool closed =
        case_.sink_logits == SinkLogits::neutral ? h % 2 == 0 : case_.nhead_q > 1 && h % 4 == 1;
    if (closed) return -std::numeric_limits<float>::infinity();
    const double value = case_.sink_logits == SinkLogits::saturated ? 30.0 + 30.0 * sink_.uniform(u64(h))
                                                                    : sink_.normal(u64(h));
    return static_cast<float>(value);
}

double FwdFill::descale(int stream, std::int64_t b, std::int64_t h, std::int64_t block) const {
    if (exact()) return 1.0;
    // Stored codes of unit-variance data have a standard deviation of about 16, well inside every 8-bit type.
    const Random random = of_descale(stream, b, h);
    const auto index = u64(block);
    if ((random.bits(index) >> 20U & 1U) != 0) return 0x1p-4;
    return static_cast<double>(static_cast<float>((0.75 + 0.5 * random.uniform(index)) / 16.0));
}

std::uint32_t FwdFill::mx_scale(int stream, std::int64_t b, std::int64_t h, std::int64_t row,
                                std::int64_t block) const {
    constexpr int bias = 127;
    if (edge_ && stream == 0) {
        const auto position = static_cast<std::size_t>(block);
        if (position >= edge_->digits().size()) return bias;
        return static_cast<std::uint32_t>(bias + std::ilogb(edge_->digits()[position].weight) - 1);
    }
    if (exact()) return bias;
    // fp4 holds unit-variance data with codes of a standard deviation of 1 to 4, fp8 of 8 to 32.
    const int centre = element_bits(stream == 2 ? types_.v : types_.q) == 4 ? -1 : -4;
    const Random random = of_descale(stream, b, h).row(u64(row), 0);
    return static_cast<std::uint32_t>(bias + centre + random.integer(u64(block), -1, 1));
}

} // namespace fmha::harness
