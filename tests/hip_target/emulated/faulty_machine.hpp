#pragma once

#include "kernels/programs/programs.hpp"
#include "kernels/targets/hip/emulated/executor.hpp"

#include <atomic>
#include <limits>
#include <memory>

namespace fmha::hip_target::test {

enum class MachineFault : std::uint8_t {
    none,
    barrier_missing,      ///< one barrier of every block
    wave_barrier_missing, ///< one wave barrier of every block
    copies_not_awaited,   ///< one wait of every block lets a group too many stay under way
    exchange_mask_wrong,  ///< every exchange crosses another lane bit too
    copies_misplaced,     ///< every asynchronous copy fetches the neighbour of its unit of 16 bytes
    read_map_wrong,       ///< reads that transpose deal out elements by another map
    words_swapped,        ///< every LDS write of several words exchanges the first and the last
    lane_map_wrong,       ///< the matrix unit deals out elements by another row of the table
};

/// What is wrong with a machine.
struct Sabotage {
    MachineFault fault = MachineFault::none;
    int n = 0; ///< which call since the block began, for faults that happen once
    /// lane_map_wrong: turns the right row of the table into the wrong one.
    void (*spoil)(InstructionInfo&) = nullptr;
    /// read_map_wrong: the same.
    void (*spoil_read)(TransposingRead&) = nullptr;
};

/// The emulated machine with one fault. The block context is compiled a second time against this class.
class FaultyMachine : public EmulatedMachine {
  public:
    /// `hits` counts how often the fault happened.
    FaultyMachine(const MachineShape& machine_shape, const Sabotage& sabotage, std::atomic<int>& hits)
        : EmulatedMachine(machine_shape), sabotage_(sabotage), hits_(&hits) {}

    void begin() {
        calls_ = 0;
        EmulatedMachine::begin();
    }
    void barrier() {
        if (!strikes_once(MachineFault::barrier_missing)) EmulatedMachine::barrier();
    }
    void wave_barrier() {
        if (!strikes_once(MachineFault::wave_barrier_missing)) EmulatedMachine::wave_barrier();
    }
    void wait_copies(int n) {
        EmulatedMachine::wait_copies(n + (strikes_once(MachineFault::copies_not_awaited) ? 1 : 0));
    }
    void wait_single_copies(int n) {
        EmulatedMachine::wait_single_copies(n + (strikes_once(MachineFault::copies_not_awaited) ? 1 : 0));
    }
    template <int N>
    void copy_async(int thread, std::int64_t address, const char* from, int offset, int bytes,
                    int existing = std::numeric_limits<int>::max()) {
        constexpr int unit = 16;
        const bool misplaced = bytes > 0 && strikes(MachineFault::copies_misplaced);
        EmulatedMachine::copy_async<N>(thread, address, from, misplaced ? offset ^ unit : offset, bytes,
                                       existing);
    }
    template <int N>
    void copy_below(int thread, std::int64_t place, int further, const char* from, int offset, int below,
                    bool exists) {
        copy_async<N>(thread, place + further + std::int64_t{4} * N * thread, from + below, offset,
                      exists ? 4 * N : 0);
    }
    template <int N>
    void copy_from(int thread, std::int64_t place, int further, const char* from) {
        constexpr std::uintptr_t unit = 16;
        const auto at = reinterpret_cast<std::uintptr_t>(from);
        const auto other = strikes(MachineFault::copies_misplaced) ? at ^ unit : at;
        EmulatedMachine::copy_from<N>(thread, place, further, reinterpret_cast<const char*>(other));
    }
    void copy_once(int thread, std::int64_t address, const char* from) {
        copy_async<4>(thread, address, from, 0, 16);
    }
    template <class Address>
    void read_transposed(EmulatedRegisters<std::uint32_t>& out, int r0, ElementType type, Address address) {
        TransposingRead read = checked_transposing_read(type);
        if (strikes(MachineFault::read_map_wrong)) sabotage_.spoil_read(read);
        read_by(read, out, r0, type, address);
    }
    template <class T>
    void exchange(EmulatedRegisters<T>& out, const EmulatedRegisters<T>& in, int lane_mask) {
        EmulatedMachine::exchange(out, in, spoiled(lane_mask));
    }
    template <class T, class F>
    void fold(EmulatedRegisters<T>& x, int lane_mask, F f) {
        EmulatedMachine::fold(x, spoiled(lane_mask), f);
    }
    template <int N>
    void lds_write(int thread, std::int64_t address, const std::uint32_t* words) {
        EmulatedMachine::lds_write<N>(thread, address, words);
        if (N > 1 && strikes(MachineFault::words_swapped)) swap_words(thread, address, N);
    }
    void mma(MatrixInstruction instruction, EmulatedRegisters<float>& c, int c0,
             const EmulatedRegisters<std::uint32_t>& a, int a0, const EmulatedRegisters<std::uint32_t>& b,
             int b0, bool begins = false) {
        if (!strikes(MachineFault::lane_map_wrong)) {
            EmulatedMachine::mma(instruction, c, c0, a, a0, b, b0, begins);
            return;
        }
        if (wrong_ == nullptr || wrong_->row().instruction != instruction) {
            InstructionInfo row = instruction_info(instruction);
            sabotage_.spoil(row);
            wrong_ = std::make_unique<MatrixModel>(row, shape().unit);
        }
        multiply(*wrong_, c, c0, a, a0, b, b0);
    }

  private:
    int spoiled(int lane_mask) {
        constexpr int other_row = 4; // in no instruction is this lane bit one that shares a row
        return strikes(MachineFault::exchange_mask_wrong) ? lane_mask ^ other_row : lane_mask;
    }
    void swap_words(int thread, std::int64_t address, int count) {
        const std::int64_t last = address + 4 * (count - 1);
        std::uint32_t ends[2];
        EmulatedMachine::lds_read<1>(thread, address, ends);
        EmulatedMachine::lds_read<1>(thread, last, ends + 1);
        EmulatedMachine::lds_write<1>(thread, address, ends + 1);
        EmulatedMachine::lds_write<1>(thread, last, ends);
    }
    bool strikes(MachineFault fault) {
        if (sabotage_.fault != fault) return false;
        ++*hits_;
        return true;
    }
    bool strikes_once(MachineFault fault) {
        return sabotage_.fault == fault && calls_++ == sabotage_.n && strikes(fault);
    }

    Sabotage sabotage_;
    std::atomic<int>* hits_;
    int calls_ = 0;
    std::unique_ptr<MatrixModel> wrong_;
};

/// Runs a kernel on a machine with a fault and counts how often it happened.
inline void emulate_on_faulty_machine(const KernelConfig& config, const FwdArgs& args,
                                      const Sabotage& sabotage, std::atomic<int>& hits) {
    emulate_blocks(
        kernels::Program<KernelFamily::fwd>{}, config, args, {.threads = 1},
        [&](const MachineShape& shape) { return FaultyMachine(shape, sabotage, hits); },
        [](FaultyMachine& machine, const RunTime& setup) {
            return BlockContext<FaultyMachine, RunTime>(machine, setup);
        });
}

} // namespace fmha::hip_target::test
