#include "kernels/targets/hip/emulated/matrix_model.hpp"

#include "kernels/programs/formats.hpp"
#include "kernels/targets/hip/emulated/emulation_error.hpp"

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
    if (element_bits(operand_) > 16) return;
    const kernels::Format format = kernels::format_of(operand_);
    values_.resize(std::size_t{1} << static_cast<unsigned>(element_bits(operand_)));
    // CDNA 2 takes subnormal operands as zero.
    const float smallest = unit == MatrixUnit::cdna2 ? kernels::power_of_two(1 - format.bias) : 0.0F;
    for (std::uint32_t code = 0; code < values_.size(); ++code) {
        const float value = kernels::decode(code, format);
        values_[code] = std::abs(value) < smallest ? 0.0F : value;
    }
}

MatrixModel::Places MatrixModel::places(const Axis& major, const Axis& minor, int elements, int majors,
                                        int minors) const {
    Places out;
    for (int lane = 0; lane < row_.wave_size; ++lane)
        for (int e = 0; e < elements; ++e) {
            const int i = major.at(lane, e), j = minor.at(lane, e);
            if (i < 0 || i >= majors || j < 0 || j >= minors)
                throw EmulationError(Hazard::out_of_range,
                                     fmt::format("{}: lane {}, element {} is ({}, {}) of a {} x {} matrix",
                                                 to_string(row_.instruction), lane, e, i, j, majors, minors));
            out.push_back(i * minors + j);
        }
    return out;
}

std::uint32_t MatrixModel::code_at(WaveRegisters<const std::uint32_t> registers, int lane,
                                   int element) const {
    const int bits = element_bits(operand_), per_word = 32 / bits;
    const std::uint32_t word = registers.at(lane, element / per_word);
    const std::uint32_t code = word >> static_cast<unsigned>(element % per_word * bits);
    return bits == 32 ? code : code & ((1U << static_cast<unsigned>(bits)) - 1U);
}

double MatrixModel::decode(std::uint32_t code) const {
    if (!values_.empty()) return static_cast<double>(values_[code]);
    // TF32 has ten mantissa bits; the hardware does not look at the others.
    const std::uint32_t seen = unit_ == MatrixUnit::nvidia ? code & ~0x1FFFU : code;
    return static_cast<double>(std::bit_cast<float>(seen));
}

void MatrixModel::gather(std::vector<double>& matrix, WaveRegisters<const std::uint32_t> registers,
                         const Places& places, int elements, char operand) const {
    std::vector<std::int16_t> holder(row_.copies > 1 ? matrix.size() : 0, -1);
    std::size_t at = 0;
    for (int lane = 0; lane < row_.wave_size; ++lane)
        for (int e = 0; e < elements; ++e, ++at) {
            const auto place = static_cast<std::size_t>(places[at]);
            const std::uint32_t code = code_at(registers, lane, e);
            if (row_.copies > 1 && holder[place] >= 0) {
                const int other = holder[place] / elements, other_element = holder[place] % elements;
                if (code_at(registers, other, other_element) != code)
                    throw EmulationError(
                        Hazard::copies_differ,
                        fmt::format("copies_differ: {}: element {} of lane {} and element {} of lane {} are "
                                    "the same element of {} and hold {:#x} and {:#x}",
                                    to_string(row_.instruction), other_element, other, e, lane, operand,
                                    code_at(registers, other, other_element), code));
                continue;
            }
            if (row_.copies > 1) holder[place] = static_cast<std::int16_t>(lane * elements + e);
            matrix[place] = decode(code);
        }
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

void MatrixModel::multiply(WaveRegisters<float> c, WaveRegisters<const std::uint32_t> a,
                           WaveRegisters<const std::uint32_t> b) const {
    const auto m = static_cast<std::size_t>(row_.m), n = static_cast<std::size_t>(row_.n),
               k = static_cast<std::size_t>(row_.k);
    std::vector<double> left(m * k), right(k * n), sum(m * n, 0.0);
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
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t d = 0; d < k; ++d) {
            const double factor = left[i * k + d];
            double* const line = sum.data() + i * n;
            const double* const from = right.data() + d * n;
            for (std::size_t j = 0; j < n; ++j) line[j] += factor * from[j];
        }
    std::size_t at = 0;
    for (int lane = 0; lane < row_.wave_size; ++lane)
        for (int r = 0; r < row_.c_elements; ++r, ++at) {
            float& element = c.at(lane, r);
            element =
                static_cast<float>(static_cast<double>(element) + sum[static_cast<std::size_t>(c_[at])]);
        }
}

} // namespace fmha::hip_target
