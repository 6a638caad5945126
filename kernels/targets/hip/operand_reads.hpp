#pragma once

#include "kernels/targets/hip/block.hpp"
#include "kernels/targets/hip/line_view.hpp"

#include <cstdint>

/// Operand fragments from LDS.
namespace fmha::hip_target {

/// A word of an operand as the matrix unit takes it: fp32 may need a rounding of its own.
template <class Machine>
FMHA_DEVICE std::uint32_t operand_word(Machine& machine, std::uint32_t word, ElementType type) {
    return element_bits(type) == 32 ? machine.round_operand(word) : word;
}

/// `count` words of a fragment from `address`.
template <int count, class Machine, class Registers>
FMHA_DEVICE void read_some(Machine& machine, int thread, int address, ElementType type, Registers& out,
                           int r0) {
    std::uint32_t words[static_cast<unsigned>(count)];
    machine.template lds_read<count>(thread, address, words);
    FMHA_UNROLL
    for (int w = 0; w < count; ++w) out.at(thread, r0 + w) = operand_word(machine, words[w], type);
}

/// `words` words of a line of the image at `base`, from `byte` on, in the widest reads that their number allows.
template <class Machine, class Registers>
FMHA_DEVICE void read_words(Machine& machine, int thread, int base, const Image& image, int line, int byte,
                            int words, ElementType type, Registers& out, int r0) {
    const auto address = [&](int w) { return base + image.at(line, byte + 4 * w); };
    if (words % 4 == 0) {
        FMHA_UNROLL
        for (int w = 0; w < words; w += 4) read_some<4>(machine, thread, address(w), type, out, r0 + w);
    } else if (words % 2 == 0) {
        FMHA_UNROLL
        for (int w = 0; w < words; w += 2) read_some<2>(machine, thread, address(w), type, out, r0 + w);
    } else {
        FMHA_UNROLL
        for (int w = 0; w < words; ++w) read_some<1>(machine, thread, address(w), type, out, r0 + w);
    }
}

} // namespace fmha::hip_target
