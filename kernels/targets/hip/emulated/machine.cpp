#include "kernels/targets/hip/emulated/machine.hpp"

#include "dispatcher/types/element.hpp"
#include "kernels/programs/formats.hpp"
#include "kernels/targets/hip/emulated/code_values.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <fmt/format.h>

namespace fmha::hip_target {
namespace {

/// Registers of one operand: its words, and the scales of a scaled instruction.
int registers_of(const InstructionInfo& row, int elements) {
    return elements * element_bits(row.operand) / 32 + (row.scale_block != 0 ? 1 : 0);
}

[[gnu::always_inline]] inline std::uint32_t packed(const float* x, ElementType type) {
    const int bits = element_bits(type);
    std::uint32_t word = 0;
    for (int i = 0; i < 32 / bits; ++i)
        word |= kernels::encode(x[i], type) << static_cast<unsigned>(i * bits);
    return word;
}

/// Registers [first, first + count) of the wave that begins at `thread`, all of which exist.
template <class T, class Source>
WaveRegisters<T> wave_registers(Source& registers, int thread, int first, int count, int lanes) {
    static_cast<void>(registers.at(thread + lanes - 1, first + count - 1));
    return {&registers.at(thread, first), registers.count()};
}

} // namespace

EmulatedMachine::EmulatedMachine(const MachineShape& shape)
    : shape_(shape), lds_(shape.lds_bytes, shape.threads, shape.wave_size),
      copies_(static_cast<std::size_t>(std::max(shape.threads, 0))) {
    if (shape.wave_size < 1 || shape.threads < 1 || shape.threads % shape.wave_size != 0)
        throw EmulationError(Hazard::unknown_operation, fmt::format("a block of {} threads in waves of {}",
                                                                    shape.threads, shape.wave_size));
}

const MatrixModel& EmulatedMachine::model(MatrixInstruction instruction) {
    auto& slot = models_[static_cast<std::size_t>(instruction)];
    if (slot != nullptr) return *slot;
    const InstructionInfo row = instruction_info(instruction);
    if (!has_instruction(shape_.unit, instruction) || row.wave_size != shape_.wave_size)
        throw EmulationError(
            Hazard::unknown_operation,
            fmt::format("this machine has no {} in waves of {}", to_string(instruction), shape_.wave_size));
    slot = std::make_unique<const MatrixModel>(row, shape_.unit);
    return *slot;
}

void EmulatedMachine::multiply(const MatrixModel& model, EmulatedRegisters<float>& c, int c0,
                               const EmulatedRegisters<std::uint32_t>& a, int a0,
                               const EmulatedRegisters<std::uint32_t>& b, int b0) const {
    const InstructionInfo& row = model.row();
    const int lanes = shape_.wave_size;
    for (int thread = 0; thread < shape_.threads; thread += lanes)
        model.multiply(
            wave_registers<float>(c, thread, c0, row.c_elements, lanes),
            wave_registers<const std::uint32_t>(a, thread, a0, registers_of(row, row.a_elements), lanes),
            wave_registers<const std::uint32_t>(b, thread, b0, registers_of(row, row.b_elements), lanes));
}

void EmulatedMachine::check_global(std::string_view operation, int thread, const char* place, int offset,
                                   int bytes) {
    if (offset < 0)
        throw EmulationError(Hazard::out_of_range,
                             fmt::format("{} by thread {} at offset {}", operation, thread, offset));
    if ((reinterpret_cast<std::uintptr_t>(place) + static_cast<std::uintptr_t>(offset)) %
            static_cast<std::uintptr_t>(bytes) !=
        0)
        throw EmulationError(
            Hazard::misaligned,
            fmt::format("{} of {} bytes by thread {} at {} + {}, which is not a multiple of them", operation,
                        bytes, thread, static_cast<const void*>(place), offset));
}

void EmulatedMachine::check_exchange(int lane_mask, int out_count, int in_count) const {
    if (lane_mask < 0 || lane_mask >= shape_.wave_size)
        throw EmulationError(
            Hazard::unknown_operation,
            fmt::format("exchange with lane mask {}; allowed: 0 to {}", lane_mask, shape_.wave_size - 1));
    if (out_count < in_count)
        throw EmulationError(Hazard::out_of_range,
                             fmt::format("exchange of {} registers into {}", in_count, out_count));
}

void EmulatedMachine::check_zeros(MatrixInstruction instruction, const EmulatedRegisters<float>& c, int c0) {
    const int count = model(instruction).row().c_elements;
    for (int thread = 0; thread < shape_.threads; ++thread)
        for (int r = c0; r < c0 + count; ++r)
            if (c.at(thread, r) != 0.0F)
                throw EmulationError(
                    Hazard::unknown_operation,
                    fmt::format("mma that begins with register {} of thread {} at {}; it must be 0", r,
                                thread, c.at(thread, r)));
}

void EmulatedMachine::check_load_matrix() const {
    if (shape_.unit != MatrixUnit::nvidia || shape_.wave_size != load_matrix_lanes)
        throw EmulationError(Hazard::unknown_operation, "load_matrix exists on NVIDIA only, in waves of 32");
}

void EmulatedMachine::load_matrices(EmulatedRegisters<std::uint32_t>& out, int r0, int first,
                                    const std::array<std::int64_t, load_matrix_lanes>& rows,
                                    bool transposed) {
    MatrixLines lines{};
    for (int lane = 0; lane < load_matrix_lanes; ++lane) {
        const auto i = static_cast<std::size_t>(lane);
        lds_.read_for_wave(first + lane, rows[i], lines[i].data(), sizeof lines[i], "load_matrix");
    }
    deal_out(lines, out, r0, first, transposed);
}

void EmulatedMachine::deal_out(const MatrixLines& lines, EmulatedRegisters<std::uint32_t>& out, int r0,
                               int first, bool transposed) {
    const auto element = [&](int matrix, int row, int col) {
        if (transposed) std::swap(row, col);
        const int line = matrix * matrix_side + row;
        return std::uint32_t{lines[static_cast<std::size_t>(line)][static_cast<std::size_t>(col)]};
    };
    for (int lane = 0; lane < load_matrix_lanes; ++lane)
        for (int j = 0; j < load_matrix_lanes / matrix_side; ++j) {
            const int row = lane / 4, col = 2 * (lane % 4);
            out.at(first + lane, r0 + j) = element(j, row, col) | element(j, row, col + 1) << 16U;
        }
}

void EmulatedMachine::check_copy(const StartedCopy& copy, int thread, int offset, int bytes) {
    const MatrixUnit unit = shape_.unit;
    const bool nvidia = unit == MatrixUnit::nvidia, cdna4 = unit == MatrixUnit::cdna4;
    const bool known = nvidia ? copy.words == 1 || copy.words == 4
                              : is_cdna(unit) && (copy.words == 1 || (cdna4 && copy.words == 4));
    if (!known)
        throw EmulationError(Hazard::unknown_operation,
                             fmt::format("this machine does not copy {} words at a time to LDS", copy.words));
    if (nvidia) return;
    if (bytes != 0 && bytes != 4 * copy.words)
        throw EmulationError(Hazard::out_of_range,
                             fmt::format("copy_async by thread {} of {} bytes of a unit of {}, which "
                                         "AMD copies as a whole or not at all",
                                         thread, bytes, 4 * copy.words));
    if (bytes != 0) check_global("copy_async", thread, copy.from, offset, 4 * copy.words);
    copies_.at(static_cast<std::size_t>(thread)).push_back(copy);
}

void EmulatedMachine::check_lane_copy(int thread, std::int64_t address, const char* from, int words) {
    if (shape_.unit != MatrixUnit::cdna3 && shape_.unit != MatrixUnit::cdna4)
        throw EmulationError(Hazard::unknown_operation,
                             "lanes of this machine copy from an address that they share");
    check_copy({address, nullptr, words}, thread, 0, 0);
    check_global("copy_from", thread, from, 0, 4 * words);
}

void EmulatedMachine::check_consecutive_copies() {
    if (shape_.unit == MatrixUnit::nvidia) return;
    const auto of = [&](int thread) -> auto& {
        return copies_[static_cast<std::size_t>(thread)];
    };
    for (int first = 0; first < shape_.threads; first += shape_.wave_size)
        for (int lane = 1; lane < shape_.wave_size; ++lane) {
            if (of(first + lane).size() != of(first).size())
                throw EmulationError(Hazard::copy_scattered,
                                     fmt::format("thread {} has started {} copies, thread {} of its wave {}",
                                                 first + lane, of(first + lane).size(), first,
                                                 of(first).size()));
            for (std::size_t i = 0; i < of(first).size(); ++i) {
                const StartedCopy &a = of(first)[i], &b = of(first + lane)[i];
                if (a.words != b.words || a.from != b.from || b.address - a.address != 4 * a.words * lane)
                    throw EmulationError(
                        Hazard::copy_scattered,
                        fmt::format(
                            "copy {} of thread {} goes to LDS byte {}, that of lane 0 of "
                            "its wave to {}: they do not follow one another, or read from different bases",
                            i, first + lane, b.address, a.address));
            }
        }
    for (auto& copies : copies_) copies.clear();
}

TransposingRead EmulatedMachine::checked_transposing_read(ElementType type) const {
    if (!hip_target::has_transposing_read(shape_.unit, type))
        throw EmulationError(Hazard::unknown_operation,
                             fmt::format("this machine does not read {} transposed", to_string(type)));
    return transposing_read(type);
}

void EmulatedMachine::read_block_transposed(EmulatedRegisters<std::uint32_t>& out, int r0, int size,
                                            const TransposingRead& read, int first,
                                            const std::array<std::int64_t, transposing_lanes>& places) {
    constexpr int bytes = 8;
    const int elements = bytes / size;
    std::array<std::uint8_t, bytes * transposing_lanes> block{};
    const auto at = [&](int row, int col) { return block.begin() + (row * transposing_lanes + col) * size; };
    for (int lane = 0; lane < transposing_lanes; ++lane) {
        std::array<std::uint8_t, bytes> named{};
        lds_.read_for_wave(first + lane, places[static_cast<std::size_t>(lane)], named.data(), bytes,
                           "read_transposed");
        for (int e = 0; e < elements; ++e)
            std::copy_n(named.begin() + e * size, size,
                        at(read.source_row.at(lane, e), read.source_col.at(lane, e)));
    }
    for (int lane = 0; lane < transposing_lanes; ++lane) {
        std::array<std::uint8_t, bytes> received{};
        for (int e = 0; e < elements; ++e)
            std::copy_n(at(read.row.at(lane, e), read.col.at(lane, e)), size, received.begin() + e * size);
        for (int w = 0; w < 2; ++w) std::memcpy(&out.at(first + lane, r0 + w), received.data() + 4 * w, 4);
    }
}

float EmulatedMachine::exp2(float x) {
    const float y = std::exp2(x);
    return y < 0x1p-126F ? 0.0F : y;
}

float EmulatedMachine::log(float x) {
    return std::log(x);
}

float EmulatedMachine::unpack(std::uint32_t bits, ElementType type) {
    if (element_bits(type) == 32) return std::bit_cast<float>(bits);
    const std::vector<float>& values = code_values(type);
    return values[bits & (values.size() - 1)];
}

std::uint32_t EmulatedMachine::pack_quotients(const float* x, ElementType type, float divisor) {
    const int values = 32 / element_bits(type);
    std::array<float, 8> quotients{};
    for (int i = 0; i < values; ++i) {
        float& quotient = quotients[static_cast<std::size_t>(i)];
        quotient = x[i] * (1.0F / divisor);
        if (element_bits(type) <= 8 && std::fabs(quotient) > kernels::format_of(type).largest)
            throw EmulationError(
                Hazard::out_of_range,
                fmt::format("{} is not within the range of the type that it becomes", quotient));
    }
    return pack(quotients.data(), type);
}

std::uint32_t EmulatedMachine::pack(const float* x, ElementType type) {
    // The compiler knows the format of each.
    switch (type) {
    case ElementType::fp16:
        return packed(x, ElementType::fp16);
    case ElementType::bf16:
        return packed(x, ElementType::bf16);
    case ElementType::fp8_ocp:
        return packed(x, ElementType::fp8_ocp);
    case ElementType::fp8_fnuz:
        return packed(x, ElementType::fp8_fnuz);
    default:
        return packed(x, type);
    }
}

std::uint32_t EmulatedMachine::round_operand(std::uint32_t word) const {
    if (shape_.unit != MatrixUnit::nvidia) return word;
    const bool finite = (word & 0x7F800000U) != 0x7F800000U;
    return finite ? (word + 0x1000U) & ~0x1FFFU : word;
}

} // namespace fmha::hip_target
