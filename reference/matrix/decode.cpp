#include "reference/matrix/decode.hpp"

#include "reference/views.hpp"

#include <array>
#include <bit>
#include <limits>

namespace fmha::reference::matrix {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double from_half(std::uint32_t code) {
    return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(static_cast<std::uint16_t>(code)));
}

/// The fields of a small format put where fp32 has them give its value times 2^(its bias − 127), subnormals
/// included.
double from_small_float(std::uint32_t code, int exponent_and_mantissa_bits, int mantissa_bits,
                        double rebias) {
    const std::uint32_t magnitude = code & ((1U << exponent_and_mantissa_bits) - 1U);
    const std::uint32_t sign = (code >> exponent_and_mantissa_bits) << 31;
    return double{std::bit_cast<float>(sign | (magnitude << (23 - mantissa_bits)))} * rebias;
}

double decode_byte(ElementType type, std::uint32_t code) {
    switch (type) {
    case ElementType::fp8_ocp:
        return (code & 0x7FU) == 0x7FU ? nan : from_small_float(code, 7, 3, 0x1p120);
    case ElementType::fp8_fnuz:
        return code == 0x80U ? nan : from_small_float(code, 7, 3, 0x1p119);
    case ElementType::bf8_ocp:
        return from_half(code << 8); // e5m2 is fp16 without its low byte
    case ElementType::bf8_fnuz:
        return code == 0x80U ? nan : from_small_float(code, 7, 2, 0x1p111);
    case ElementType::e8m0:
        return code == 0xFFU ? nan : std::bit_cast<double>(std::uint64_t{code + 1023U - 127U} << 52);
    default:
        return code;
    }
}

using Table = std::array<double, 256>;

Table table_of(ElementType type) {
    if (type == ElementType::fp4) return {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};
    Table table{};
    for (std::uint32_t code = 0; code < table.size(); ++code) table[code] = decode_byte(type, code);
    return table;
}

template <class Decode>
void decode_with(const Decode& decode, const TensorView& view, std::int64_t b, std::int64_t h,
                 std::int64_t first_row, std::int64_t first_col, Block& out) {
    for (Eigen::Index r = 0; r < out.rows(); ++r)
        for (Eigen::Index c = 0; c < out.cols(); ++c)
            out(r, c) = decode(stored_code(view, b, h, first_row + r, first_col + c));
}

} // namespace

void decode_block(const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t first_row,
                  std::int64_t first_col, Block out) {
    switch (view.type) {
    case ElementType::fp32:
        decode_with([](std::uint32_t code) { return double{std::bit_cast<float>(code)}; }, view, b, h,
                    first_row, first_col, out);
        return;
    case ElementType::bf16:
        decode_with([](std::uint32_t code) { return double{std::bit_cast<float>(code << 16)}; }, view, b, h,
                    first_row, first_col, out);
        return;
    case ElementType::fp16:
        decode_with(from_half, view, b, h, first_row, first_col, out);
        return;
    default: {
        const Table table = table_of(view.type);
        decode_with([&](std::uint32_t code) { return table[code]; }, view, b, h, first_row, first_col, out);
    }
    }
}

double decode_element(const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t row,
                      std::int64_t col) {
    Matrix element(1, 1);
    decode_block(view, b, h, row, col, element);
    return element(0, 0);
}

} // namespace fmha::reference::matrix
