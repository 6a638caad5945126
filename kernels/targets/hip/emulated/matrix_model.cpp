#include "kernels/targets/hip/emulated/matrix_model.hpp"

#include "kernels/targets/hip/emulated/code_values.hpp"
#include "kernels/targets/hip/emulated/emulation_error.hpp"
#include "kernels/targets/hip/emulated/line_products.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace fmha::hip_target {
namespace {

ElementType operand_type(ElementType listed, MatrixUnit unit) {
    if (unit != MatrixUnit::cdna3) return listed;
    if (listed == ElementType::fp8_ocp) return ElementType::fp8_fnuz;
    if (listed == ElementType::bf8_ocp) return ElementType::bf8_fnuz;
    return listed;
}

} // namespace

MatrixModel::MatrixModel(const InstructionInfo& row, MatrixUnit unit)
    : row_(row), unit_(unit), operand_(operand_type(row.operand, unit)),
      a_(places(row.a_row, row.a_k, row.a_elements, row.m, row.k)),
      b_(places(row.b_k, row.b_col, row.b_elements, row.k, row.n)),
      c_(places(row.c_row, row.c_col, row.c_elements, row.m, row.n)) {
    if (element_bits(operand_) <= 16) values_ = &code_values(operand_, unit == MatrixUnit::cdna2);
}

MatrixModel::Places MatrixModel::places(const Axis& major, const Axis& minor, int elements, int majors,
                                        int minors) const {
    const int most = static_cast<int>(most_elements);
    if (majors * minors > most || row_.wave_size * elements > most)
        throw EmulationError(Hazard::out_of_range,
                             fmt::format("{}: a matrix of {} x {} has more elements than {}",
                                         to_string(row_.instruction), majors, minors, most));
    Places out;
    std::vector<std::int32_t> holder(static_cast<std::size_t>(majors) * static_cast<std::size_t>(minors), -1);
    for (int lane = 0; lane < row_.wave_size; ++lane)
        for (int e = 0; e < elements; ++e) {
            const int i = major.at(lane, e), j = minor.at(lane, e);
            if (i < 0 || i >= majors || j < 0 || j >= minors)
                throw EmulationError(Hazard::out_of_range,
                                     fmt::format("{}: lane {}, element {} is ({}, {}) of a {} x {} matrix",
                                                 to_string(row_.instruction), lane, e, i, j, majors, minors));
            const int place = i * minors + j, number = lane * elements + e;
            std::int32_t& first = holder[static_cast<std::size_t>(place)];
            if (first < 0) first = number;
            out.held.push_back(place);
            out.first_holder.push_back(first);
        }
    return out;
}

template <unsigned bits>
void MatrixModel::unpack(Codes& codes, WaveRegisters<const std::uint32_t> registers, int elements) const {
    constexpr unsigned per_word = 32 / bits;
    constexpr std::uint32_t mask = bits == 32 ? ~0U : (1U << (bits % 32)) - 1U;
    std::uint32_t* code = codes.data();
    for (int lane = 0; lane < row_.wave_size; ++lane)
        for (int w = 0; w < elements / static_cast<int>(per_word); ++w) {
            const std::uint32_t word = registers.at(lane, w);
            for (unsigned i = 0; i < per_word; ++i) *code++ = word >> i * bits & mask;
        }
}

void MatrixModel::check_copies(const Codes& codes, const Places& places, int elements, char operand) const {
    for (std::size_t at = 0; at < places.held.size(); ++at) {
        const auto first = static_cast<std::size_t>(places.first_holder[at]);
        if (codes[at] == codes[first]) continue;
        const auto each = static_cast<std::size_t>(elements);
        throw EmulationError(Hazard::copies_differ,
                             fmt::format("{}: element {} of lane {} and element {} of lane {} are "
                                         "the same element of {} and hold {:#x} and {:#x}",
                                         to_string(row_.instruction), first % each, first / each, at % each,
                                         at / each, operand, codes[first], codes[at]));
    }
}

void MatrixModel::gather(Matrix& matrix, WaveRegisters<const std::uint32_t> registers, const Places& places,
                         int elements, char operand) const {
    Codes codes;
    switch (element_bits(operand_)) {
    case 4:
        unpack<4>(codes, registers, elements);
        break;
    case 8:
        unpack<8>(codes, registers, elements);
        break;
    case 16:
        unpack<16>(codes, registers, elements);
        break;
    default:
        unpack<32>(codes, registers, elements);
    }
    if (row_.copies > 1) check_copies(codes, places, elements, operand);
    const std::int32_t* const held = places.held.data();
    const std::size_t count = places.held.size();
    if (values_ != nullptr) {
        const float* const values = values_->data();
        for (std::size_t at = 0; at < count; ++at)
            matrix[static_cast<std::size_t>(held[at])] = static_cast<double>(values[codes[at]]);
        return;
    }
    // TF32 has ten mantissa bits; the hardware does not look at the others.
    const std::uint32_t seen = unit_ == MatrixUnit::nvidia ? ~0x1FFFU : ~0U;
    for (std::size_t at = 0; at < count; ++at)
        matrix[static_cast<std::size_t>(held[at])] =
            static_cast<double>(std::bit_cast<float>(codes[at] & seen));
}

std::vector<double> MatrixModel::scales(WaveRegisters<const std::uint32_t> registers, const ScaleMap& map,
                                        int elements, int outer) const {
    const int blocks = row_.k / row_.scale_block;
    std::vector<double> out(static_cast<std::size_t>(outer) * static_cast<std::size_t>(blocks), 1.0);
    for (int lane = 0; lane < row_.wave_size; ++lane) {
        const int i = map.outer.of_lane(lane), block = map.k.of_lane(lane) / row_.scale_block;
        const int scale = i * blocks + block;
        if (i < 0 || i >= outer || block < 0 || block >= blocks)
            throw EmulationError(Hazard::out_of_range,
                                 fmt::format("{}: lane {} has the scale of ({}, block {}) of {} x {} blocks",
                                             to_string(row_.instruction), lane, i, block, outer, blocks));
        const std::uint32_t code = registers.at(lane, scale_register(elements)) & 0xFFU;
        out[static_cast<std::size_t>(scale)] = code == 0xFFU ? std::numeric_limits<double>::quiet_NaN()
                                                             : std::ldexp(1.0, static_cast<int>(code) - 127);
    }
    return out;
}

template <std::size_t columns>
void MatrixModel::add_products_of(Matrix& sum, const Matrix& left, const Matrix& right) const {
    constexpr std::size_t lines = 32 / columns;
    const auto m = static_cast<std::size_t>(row_.m), k = static_cast<std::size_t>(row_.k);
    for (std::size_t i = 0; i < m; i += lines)
        add_products<lines, columns>(sum.data() + i * columns, left.data() + i * k, right.data(), k, columns);
}

void MatrixModel::multiply(WaveRegisters<float> c, WaveRegisters<const std::uint32_t> a,
                           WaveRegisters<const std::uint32_t> b) const {
    const auto m = static_cast<std::size_t>(row_.m), n = static_cast<std::size_t>(row_.n),
               k = static_cast<std::size_t>(row_.k);
    // An instruction of another layout than those of the table may leave elements without a holder.
    Matrix left, right, sum;
    std::fill_n(left.begin(), m * k, 0.0);
    std::fill_n(right.begin(), k * n, 0.0);
    std::fill_n(sum.begin(), m * n, 0.0);
    gather(left, a, a_, row_.a_elements, 'A');
    gather(right, b, b_, row_.b_elements, 'B');
    if (row_.scale_block != 0) {
        const auto block = static_cast<std::size_t>(row_.scale_block), blocks = k / block;
        const auto of_a = scales(a, row_.a_scale, row_.a_elements, row_.m);
        const auto of_b = scales(b, row_.b_scale, row_.b_elements, row_.n);
        for (std::size_t d = 0; d < k; ++d) {
            for (std::size_t i = 0; i < m; ++i) left[i * k + d] *= of_a[i * blocks + d / block];
            for (std::size_t j = 0; j < n; ++j) right[d * n + j] *= of_b[j * blocks + d / block];
        }
    }
    switch (n) {
    case 8:
        add_products_of<8>(sum, left, right);
        break;
    case 16:
        add_products_of<16>(sum, left, right);
        break;
    case 32:
        add_products_of<32>(sum, left, right);
        break;
    default:
        throw EmulationError(Hazard::unknown_operation,
                             fmt::format("{} has {} columns", to_string(row_.instruction), n));
    }
    const std::int32_t* place = c_.held.data();
    for (int lane = 0; lane < row_.wave_size; ++lane)
        for (int r = 0; r < row_.c_elements; ++r) {
            float& element = c.at(lane, r);
            element =
                static_cast<float>(static_cast<double>(element) + sum[static_cast<std::size_t>(*place++)]);
        }
}

} // namespace fmha::hip_target
