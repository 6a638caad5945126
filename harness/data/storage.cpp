#include "harness/data/storage.hpp"

#include <cstring>

namespace fmha::harness {

std::uint32_t load_code(const void* base, ElementType type, std::int64_t index) {
    const auto* bytes = static_cast<const unsigned char*>(base);
    switch (element_bits(type)) {
    case 32: {
        std::uint32_t code = 0;
        std::memcpy(&code, bytes + index * 4, 4);
        return code;
    }
    case 16: {
        std::uint16_t code = 0;
        std::memcpy(&code, bytes + index * 2, 2);
        return code;
    }
    case 4:
        return (static_cast<std::uint32_t>(bytes[index / 2]) >> (index % 2 != 0 ? 4U : 0U)) & 0xFU;
    default:
        return bytes[index];
    }
}

void store_code(void* base, ElementType type, std::int64_t index, std::uint32_t code) {
    auto* bytes = static_cast<unsigned char*>(base);
    switch (element_bits(type)) {
    case 32:
        std::memcpy(bytes + index * 4, &code, 4);
        return;
    case 16: {
        const auto narrow = static_cast<std::uint16_t>(code);
        std::memcpy(bytes + index * 2, &narrow, 2);
        return;
    }
    case 4: {
        unsigned char& byte = bytes[index / 2];
        byte =
            static_cast<unsigned char>(index % 2 != 0 ? (byte & 0x0FU) | code << 4U : (byte & 0xF0U) | code);
        return;
    }
    default:
        bytes[index] = static_cast<unsigned char>(code);
        return;
    }
}

std::uint32_t poison_code(ElementType type, Poison poison) {
    const bool nan = poison == Poison::nan;
    switch (type) {
    case ElementType::fp32:
        return nan ? 0x7FC0DEADU : 0x7F7FFFFFU;
    case ElementType::fp16:
        return nan ? 0x7EADU : 0x7BFFU;
    case ElementType::bf16:
        return nan ? 0x7FEDU : 0x7F7FU;
    case ElementType::fp8_ocp:
        return nan ? 0x7FU : 0x7EU;
    case ElementType::bf8_ocp:
        return nan ? 0x7EU : 0x7BU;
    case ElementType::fp8_fnuz:
    case ElementType::bf8_fnuz:
        return nan ? 0x80U : 0x7FU;
    case ElementType::fp4:
        return nan ? 0xFU : 0x7U;
    case ElementType::e8m0:
        return nan ? 0xFFU : 0xFEU;
    case ElementType::uint8:
        return nan ? 0xA5U : 0x5AU;
    case ElementType::int32: // an index that is far outside, on either side
        return nan ? 0xC0DEC0DEU : 0x3FFFFFFFU;
    }
    return 0;
}

} // namespace fmha::harness
