#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

/// The loop over keys of a kernel, as its machine code has it. Cycles are those of one wave of one SIMD (of one quarter of a
/// multiprocessor on NVIDIA); a unit that several SIMDs share counts as often as it has users.
namespace fmha::built {

/// The unit that executes an instruction.
enum class LoopUnit : std::uint8_t {
    matrix,
    vector,         ///< one slot of a SIMD's issue each, matrix instructions included
    transcendental, ///< exp2 and the like
    lds,
    memory, ///< global memory, by way of the first-level cache
    scalar,
    branch,
    wait, ///< waits, barriers, wait states
};
inline constexpr std::array loop_units{
    std::pair{LoopUnit::matrix, std::string_view("matrix")},
    std::pair{LoopUnit::vector, std::string_view("vector")},
    std::pair{LoopUnit::transcendental, std::string_view("transcendental")},
    std::pair{LoopUnit::lds, std::string_view("lds")},
    std::pair{LoopUnit::memory, std::string_view("memory")},
    std::pair{LoopUnit::scalar, std::string_view("scalar")},
    std::pair{LoopUnit::branch, std::string_view("branch")},
    std::pair{LoopUnit::wait, std::string_view("wait")},
};

struct UnitLoad {
    std::int64_t instructions = 0, cycles = 0;
    friend bool operator==(const UnitLoad&, const UnitLoad&) = default;
};

/// Waits for accesses of a kind, and the cycles between each of them and the newest access that it waits for, added up.
struct Distances {
    std::int64_t waits = 0, cycles = 0;
    friend bool operator==(const Distances&, const Distances&) = default;
};

/// One iteration on one path through the loop.
struct LoopIteration {
    std::array<UnitLoad, loop_units.size()> units{};
    std::int64_t matrix_slots = 0; ///< cycles of the vector unit that matrix instructions take there
    std::int64_t access_slots = 0; ///< cycles that a wave needs to issue its instructions of LDS and memory
    std::int64_t lds_bytes = 0, memory_bytes = 0; ///< of a lane
    std::int64_t moves = 0;                       ///< copies of vector registers
    std::int64_t wide_integers = 0;               ///< 64-bit integer arithmetic in vector registers
    std::int64_t selects = 0;                     ///< of one of two values by a predicate, as masks need
    std::int64_t products = 0; ///< multiplications and additions of the matrix instructions
    /// Waits for memory, LDS included, and how many of these come before its latency has passed since the newest access
    /// that they wait for; the cycles that are missing then, for a wave that has its SIMD for itself.
    std::int64_t waits = 0, early_waits = 0, missing_cycles = 0;
    Distances behind_memory{}, behind_lds{}; ///< the same waits by their cause; none on NVIDIA
    /// Accesses of LDS whose lanes' addresses follow from the code, and the cycles that conflicts of banks cost those, beside the
    /// unit's own. No bound has them: the order in which lanes are served is an assumption.
    std::int64_t lds_followed = 0, conflict_cycles = 0;
    /// That a wave needs in order, its waits included, with a SIMD for itself.
    std::int64_t wave_cycles = 0;

    UnitLoad& operator[](LoopUnit unit) { return units[static_cast<std::size_t>(unit)]; }
    const UnitLoad& operator[](LoopUnit unit) const { return units[static_cast<std::size_t>(unit)]; }
    friend bool operator==(const LoopIteration&, const LoopIteration&) = default;
};

/// `plain`: a tile of which every key is seen, whose rows are aligned and whose maxima do not rise; `masked`: the same, with
/// a predicate for every score. They are equal where a kernel has no such path.
struct LoopModel {
    std::int64_t scores = 0; ///< of a lane and an iteration
    std::int64_t waves = 0;  ///< that a SIMD holds
    LoopIteration plain{}, masked{};
    /// The cycles that llvm-mca gives an iteration of the plain path in one wave, all loads hitting; 0: not asked.
    std::int64_t second_opinion = 0;
    friend bool operator==(const LoopModel&, const LoopModel&) = default;
};

/// Vector instructions, transcendental ones included, a score and lane.
double vector_a_score(const LoopModel& model, const LoopIteration& iteration);

/// The share of time that the matrix unit is busy at most. Alone: in one wave that does nothing else during its products, and that
/// LDS and memory never keep waiting. Together: with `waves` waves that overlap in any way, where the bound is the busiest unit,
/// or the time that a wave needs to issue its instructions.
double busy_alone(const LoopIteration& iteration);
double busy_together(const LoopIteration& iteration, std::int64_t waves);
/// The same where no wave goes faster than alone: the others have to fill its waits.
double busy_waiting(const LoopIteration& iteration, std::int64_t waves);

} // namespace fmha::built
