#pragma once

#include "dispatcher/types/tensor_view.hpp"

#include <cstdint>
#include <cstring>

namespace fmha::reference {

/// The stored bits of one element, undecoded, in the low bits of the result (L-1, L-2, T-2). This and the
/// strides are all that the two oracles share.
inline std::uint32_t stored_code(const TensorView& view, std::int64_t element) {
    const auto* bytes = static_cast<const unsigned char*>(view.data);
    switch (element_bits(view.type)) {
    case 32: {
        std::uint32_t code = 0;
        std::memcpy(&code, bytes + 4 * element, 4);
        return code;
    }
    case 16: {
        std::uint16_t code = 0;
        std::memcpy(&code, bytes + 2 * element, 2);
        return code;
    }
    case 4:
        return (std::uint32_t{bytes[element / 2]} >> (4 * (element % 2))) & 0xFU;
    default:
        return bytes[element];
    }
}
inline std::uint32_t stored_code(const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t row,
                                 std::int64_t col) {
    return stored_code(view, view.offset(b, h, row, col));
}

} // namespace fmha::reference
