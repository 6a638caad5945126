#pragma once

#include "kernels/targets/hip/emulated/emulation_error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

namespace fmha::hip_target {

/// LDS (shared memory) of one block, with a stamp on every byte: who wrote and who read it last, and between
/// which barriers. Bytes of a word that were always accessed together share one. An access that is not ordered after the accesses it depends on throws EmulationError, even
/// when the emulated order of threads would have given the right bytes.
///
/// Two accesses of different threads are ordered by a block barrier between them, or, within one wave, by a
/// wave barrier. Lanes of a wave are taken to be unordered otherwise: NVIDIA promises no more.
class Lds {
  public:
    /// `bytes` of memory for a block of `threads` threads in waves of `wave_size`.
    Lds(int bytes, int threads, int wave_size);

    /// A new block: nothing is written, no copy is under way.
    void begin();

    void barrier();
    void wave_barrier() { ++step_; }

    /// `bytes` bytes at `address`, which is a multiple of them. `operation` is for messages.
    void write(int thread, std::int64_t address, const void* from, int bytes, std::string_view operation);
    void read(int thread, std::int64_t address, void* to, int bytes, std::string_view operation);
    /// A read by one lane for others: not even this thread's own
    /// writes are ordered before it without a barrier.
    void read_for_wave(int thread, std::int64_t address, void* to, int bytes, std::string_view operation);

    /// Starts to copy `bytes` bytes, 4 or 16, of which `valid` exist at `from`; the rest become 0. Until the copy has
    /// been waited for, the destination holds a poison.
    void copy_async(int thread, std::int64_t address, const void* from, int valid, int bytes = 16);
    /// Closes the group of copies that were started since the last call. A group may be empty.
    void commit_copies();
    /// Lets all groups but the last `n` land. Copies outside any group stay under way.
    void wait_copies(int n);
    /// Lets all copies but the last `n` of every thread land, whatever group they are of.
    void wait_single_copies(int n);

    /// Barriers of the block since begin().
    std::uint32_t epoch() const { return epoch_; }

  private:
    enum class State : std::uint8_t { unwritten, written, copied, in_flight };

    struct Access {
        std::uint32_t epoch = 0, step = 0;
        std::int16_t thread = -1;
    };
    /// The memory of one byte, or of the four bytes of a word. `last_read` is one of the reads since the last barrier; the flags say that
    /// there were others, by lanes of the same wave since its last wave barrier or by another wave.
    struct Stamp {
        Access written, last_read;
        State state = State::unwritten;
        bool several_lanes_read = false, several_waves_read = false;
        bool split = false; ///< of a word: its bytes have stamps of their own
    };
    /// A thread, and the first one of its wave.
    struct Accessor {
        int thread, first_of_wave;
    };
    struct Copy {
        int thread;
        std::int64_t address;
        int bytes;
        std::array<std::byte, 16> data;
    };

    void land(const Copy& copy);
    Access now(int thread) const { return {epoch_, step_, static_cast<std::int16_t>(thread)}; }
    int wave(int thread) const { return thread / wave_size_; }
    Accessor accessor(int thread) const { return {thread, wave(thread) * wave_size_}; }
    bool in_wave(const Access& other, const Accessor& by) const {
        return other.thread >= by.first_of_wave && other.thread < by.first_of_wave + wave_size_;
    }
    bool ordered(const Access& before, const Accessor& by) const;
    void check_place(int thread, std::int64_t address, int bytes, std::string_view operation) const;
    [[noreturn]] void fail_place(int thread, std::int64_t address, int bytes,
                                 std::string_view operation) const;
    /// Calls visit(stamp, address) for the stamps of these bytes in turn.
    template <class Visit>
    void each_stamp(std::int64_t address, int bytes, Visit visit);
    void split(std::int64_t word);
    void stamp_read(int thread, std::int64_t address, int bytes, bool for_wave, std::string_view operation);
    void stamp_write(int thread, std::int64_t address, int bytes, State state, std::string_view operation);
    [[noreturn]] void fail(Hazard hazard, int thread, std::int64_t address, std::string_view operation,
                           std::string_view what, const Access& other) const;

    int threads_, wave_size_;
    std::uint32_t epoch_ = 0, step_ = 0;
    std::vector<std::byte> memory_;
    std::vector<Stamp> words_;
    std::vector<Stamp> bytes_; ///< of split words; empty while there are none
    std::vector<Copy> open_;
    std::deque<std::vector<Copy>> groups_;
};

} // namespace fmha::hip_target
