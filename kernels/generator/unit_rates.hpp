#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "kernels/built/loop_model.hpp"

#include <cstdint>
#include <string_view>

/// How fast the units of an architecture are.
namespace fmha::generator {

/// Whether an architecture is NVIDIA's: its machine code has other words, a reader and a model of its own.
bool is_nvidia(const ArchName& arch);

/// Cycles are of one SIMD (a quarter of a multiprocessor on NVIDIA) and a whole wave.
struct UnitRates {
    int lanes = 64;          ///< of a wave
    int simds = 4;           ///< that share LDS and the path to memory
    int vector = 4;          ///< cycles of a vector instruction of 32 bits, packed ones included
    int quarter = 16;        ///< of a multiplication of 32-bit integers, and of 64-bit integer arithmetic
    int transcendental = 16; ///< of exp2
    bool own_transcendental = false; ///< other vector instructions go on meanwhile
    int scalar = 4;
    int branch = 16;
    int matrix_flops = 256; ///< of a SIMD and a cycle, multiplications and additions, with 16-bit operands
    bool shares_vector = false;                 ///< the matrix instructions are executed by the vector unit
    int lds_bytes = 128;                        ///< a cycle, of all SIMDs that share it; a bank has four
    int memory_bytes = 64;                      ///< a cycle, likewise
    int lds_latency = 64, memory_latency = 500; ///< cycles, rounded
    int other_latency = 20;                     ///< of other instructions with a scoreboard (NVIDIA)
};

/// The rates of an architecture that kernels are built for. Throws InputError for another one.
UnitRates rates_of(const ArchName& arch);

/// The cost of one instruction.
struct InstructionCost {
    built::LoopUnit unit = built::LoopUnit::scalar;
    int cycles = 0;
    std::int64_t products = 0;           ///< of the wave, for matrix instructions
    int lds_bytes = 0, memory_bytes = 0; ///< of a lane
    bool move = false, wide = false, select = false;
    int slots = 0; ///< cycles of vector issue beside its own unit's
};

/// The cost of an instruction of AMD's and of NVIDIA's machine code.
InstructionCost cost_of(std::string_view mnemonic, std::string_view operands, const ArchName& arch,
                        const UnitRates& rates);

} // namespace fmha::generator
