#include "kernels/targets/hip/emulated/lds.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fmha::hip_target {
namespace {

/// The contents of memory that must not be relied upon: NaN in most storage types.
constexpr std::byte poison{0xFF};
constexpr int word_bytes = 4;

} // namespace

Lds::Lds(int bytes, int threads, int wave_size)
    : threads_(threads), wave_size_(wave_size), memory_(static_cast<std::size_t>(bytes), poison),
      words_((static_cast<std::size_t>(bytes) + word_bytes - 1) / word_bytes) {}

void Lds::begin() {
    epoch_ = 0;
    step_ = 0;
    std::fill(memory_.begin(), memory_.end(), poison);
    std::fill(words_.begin(), words_.end(), Stamp{});
    open_.clear();
    groups_.clear();
}

void Lds::barrier() {
    ++epoch_;
    ++step_;
}

template <class Visit>
inline void Lds::each_stamp(std::int64_t address, int bytes, Visit visit) {
    const std::int64_t end = address + bytes;
    for (std::int64_t at = address; at < end;) {
        Stamp& word = words_[static_cast<std::size_t>(at / word_bytes)];
        if (!word.split) {
            if (bytes >= word_bytes) {
                visit(word, at);
                at += word_bytes;
                continue;
            }
            split(at / word_bytes);
        }
        visit(bytes_[static_cast<std::size_t>(at)], at);
        ++at;
    }
}

void Lds::split(std::int64_t word) {
    bytes_.resize(words_.size() * word_bytes);
    Stamp& whole = words_[static_cast<std::size_t>(word)];
    std::fill_n(bytes_.begin() + word * word_bytes, word_bytes, whole);
    whole.split = true;
}

void Lds::write(int thread, std::int64_t address, const void* from, int bytes, std::string_view operation) {
    check_place(thread, address, bytes, operation);
    stamp_write(thread, address, bytes, State::written, operation);
    std::memcpy(memory_.data() + address, from, static_cast<std::size_t>(bytes));
}

void Lds::read(int thread, std::int64_t address, void* to, int bytes, std::string_view operation) {
    check_place(thread, address, bytes, operation);
    stamp_read(thread, address, bytes, false, operation);
    std::memcpy(to, memory_.data() + address, static_cast<std::size_t>(bytes));
}

void Lds::read_for_wave(int thread, std::int64_t address, void* to, int bytes, std::string_view operation) {
    check_place(thread, address, bytes, operation);
    stamp_read(thread, address, bytes, true, operation);
    std::memcpy(to, memory_.data() + address, static_cast<std::size_t>(bytes));
}

void Lds::copy_async(int thread, std::int64_t address, const void* from, int valid, int bytes) {
    constexpr std::string_view operation = "copy_async";
    check_place(thread, address, bytes, operation);
    if (valid < 0 || valid > bytes)
        throw EmulationError(
            Hazard::out_of_range,
            fmt::format("copy_async by thread {} copies {} bytes; allowed: 0 to {}", thread, valid, bytes));
    if (valid > 0 && reinterpret_cast<std::uintptr_t>(from) % static_cast<std::uintptr_t>(bytes) != 0)
        throw EmulationError(Hazard::misaligned,
                             fmt::format("copy_async by thread {} reads global memory at {}, which is not a "
                                         "multiple of {} bytes",
                                         thread, from, bytes));
    stamp_write(thread, address, bytes, State::in_flight, operation);
    Copy copy{thread, address, bytes, {}};
    if (valid > 0) std::memcpy(copy.data.data(), from, static_cast<std::size_t>(valid));
    std::memset(memory_.data() + address, std::to_integer<int>(poison), static_cast<std::size_t>(bytes));
    open_.push_back(copy);
}

void Lds::commit_copies() {
    groups_.push_back(std::move(open_));
    open_.clear();
}

void Lds::land(const Copy& copy) {
    std::memcpy(memory_.data() + copy.address, copy.data.data(), static_cast<std::size_t>(copy.bytes));
    each_stamp(copy.address, copy.bytes, [&](Stamp& stamp, std::int64_t) {
        stamp.state = State::copied;
        stamp.written = now(copy.thread);
    });
}

void Lds::wait_copies(int n) {
    while (static_cast<int>(groups_.size()) > n) {
        for (const Copy& copy : groups_.front()) land(copy);
        groups_.pop_front();
    }
}

void Lds::wait_single_copies(int n) {
    std::vector<int> left(static_cast<std::size_t>(threads_), n);
    const auto newest_first = [&](std::vector<Copy>& copies) {
        std::vector<Copy> under_way;
        for (auto copy = copies.rbegin(); copy != copies.rend(); ++copy)
            if (left[static_cast<std::size_t>(copy->thread)]-- > 0)
                under_way.push_back(*copy);
            else
                land(*copy);
        copies.assign(under_way.rbegin(), under_way.rend());
    };
    newest_first(open_);
    std::for_each(groups_.rbegin(), groups_.rend(), newest_first);
    while (!groups_.empty() && groups_.front().empty()) groups_.pop_front();
}

inline bool Lds::ordered(const Access& before, const Accessor& by) const {
    if (before.thread < 0 || before.thread == by.thread || before.epoch != epoch_) return true;
    return in_wave(before, by) && before.step != step_;
}

inline void Lds::check_place(int thread, std::int64_t address, int bytes, std::string_view operation) const {
    const bool in_range = thread >= 0 && thread < threads_ && address >= 0 &&
                          address + bytes <= static_cast<std::int64_t>(memory_.size());
    // Sizes are powers of two.
    if (!in_range || (address & (bytes - 1)) != 0) fail_place(thread, address, bytes, operation);
}

void Lds::fail_place(int thread, std::int64_t address, int bytes, std::string_view operation) const {
    const auto size = static_cast<std::int64_t>(memory_.size());
    if (thread < 0 || thread >= threads_)
        throw EmulationError(Hazard::out_of_range, fmt::format("{} by thread {} of a block of {} threads",
                                                               operation, thread, threads_));
    if (address < 0 || address + bytes > size)
        throw EmulationError(Hazard::out_of_range,
                             fmt::format("{} by thread {} at LDS bytes {} to {}, the block has {}", operation,
                                         thread, address, address + bytes - 1, size));
    throw EmulationError(Hazard::misaligned,
                         fmt::format("{} by thread {} at LDS byte {}, which is not a multiple of {}",
                                     operation, thread, address, bytes));
}

void Lds::stamp_read(int thread, std::int64_t address, int bytes, bool for_wave, std::string_view operation) {
    const Accessor by = accessor(thread);
    each_stamp(address, bytes, [&](Stamp& stamp, std::int64_t at) {
        const Access& written = stamp.written;
        if (stamp.state == State::unwritten)
            fail(Hazard::unwritten_read, thread, at, operation, "which was never written", {});
        if (stamp.state == State::in_flight)
            fail(Hazard::copy_not_awaited, thread, at, operation, "to which a copy is under way", written);
        const bool own_but_for_wave = for_wave && written.thread == thread && written.step == step_;
        if (!ordered(written, by) || own_but_for_wave) {
            if (stamp.state == State::copied)
                fail(Hazard::copy_not_visible, thread, at, operation,
                     "which was copied without a barrier since", written);
            fail(in_wave(written, by) ? Hazard::wave_order : Hazard::read_after_write, thread, at, operation,
                 "which was written without a barrier since", written);
        }
        Access& last = stamp.last_read;
        if (last.thread < 0 || last.epoch != epoch_) {
            last = now(thread);
            stamp.several_lanes_read = for_wave;
            stamp.several_waves_read = false;
        } else if (!in_wave(last, by)) {
            stamp.several_waves_read = true;
        } else if (last.step != step_) {
            last = now(thread);
            stamp.several_lanes_read = for_wave;
        } else if (last.thread != thread || for_wave) {
            stamp.several_lanes_read = true;
        }
    });
}

void Lds::stamp_write(int thread, std::int64_t address, int bytes, State state, std::string_view operation) {
    const Accessor by = accessor(thread);
    each_stamp(address, bytes, [&](Stamp& stamp, std::int64_t at) {
        const Access &written = stamp.written, &last = stamp.last_read;
        if (stamp.state == State::in_flight)
            fail(Hazard::copy_overwritten, thread, at, operation, "to which a copy is under way", written);
        if (!ordered(written, by))
            fail(in_wave(written, by) ? Hazard::wave_order : Hazard::write_after_write, thread, at, operation,
                 "which was written without a barrier since", written);
        const bool read_now = last.thread >= 0 && last.epoch == epoch_;
        if (read_now && (stamp.several_waves_read || !in_wave(last, by)))
            fail(Hazard::write_after_read, thread, at, operation, "which was read without a barrier since",
                 last);
        if (read_now && last.step == step_ && (last.thread != thread || stamp.several_lanes_read))
            fail(Hazard::wave_order, thread, at, operation, "which was read without a barrier since", last);
        stamp.state = state;
        stamp.written = now(thread);
    });
}

void Lds::fail(Hazard hazard, int thread, std::int64_t address, std::string_view operation,
               std::string_view what, const Access& other) const {
    std::string sentence = fmt::format("{} by thread {} (wave {}) in epoch {} meets LDS byte {}, {}",
                                       operation, thread, wave(thread), epoch_, address, what);
    if (other.thread >= 0)
        sentence += fmt::format(", by thread {} (wave {}) in epoch {}", other.thread, wave(other.thread),
                                other.epoch);
    throw EmulationError(hazard, sentence);
}

} // namespace fmha::hip_target
