#include "kernels/generator/wave_time.hpp"

#include "kernels/generator/access_waits.hpp"
#include "kernels/generator/scan.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>

namespace fmha::generator {
namespace {

using built::LoopUnit;

/// Accesses of a kind, which arrive in order: those under way by the cycle in which they will have arrived.
class Arrivals {
  public:
    void add(std::int64_t when) { when_.push_back(when_.empty() ? when : std::max(when, when_.back())); }
    /// When at most `left` are under way, seen from `now`.
    std::int64_t wait(std::int64_t left, std::int64_t now) {
        while (static_cast<std::int64_t>(when_.size()) > left) {
            now = std::max(now, when_.front());
            when_.pop_front();
        }
        return now;
    }

  private:
    std::deque<std::int64_t> when_;
};

class AmdWave {
  public:
    AmdWave(const ArchName& arch, const UnitRates& rates) : arch_(arch), rates_(rates) {}

    void run(const Instruction& instruction) {
        const InstructionCost cost = cost_of(instruction.mnemonic, instruction.operands, arch_, rates_);
        const AccessWait wait = access_wait_of(instruction);
        if (wait.memory) now_ = memory_.wait(*wait.memory, now_);
        if (wait.lds) now_ = lds_.wait(*wait.lds, now_);
        if (cost.unit == LoopUnit::memory) memory_.add(now_ + rates_.memory_latency);
        if (cost.unit == LoopUnit::lds) lds_.add(now_ + rates_.lds_latency);
        if (cost.unit == LoopUnit::matrix) {
            now_ = std::max(now_, matrix_free_);
            matrix_free_ = now_ + cost.cycles;
            now_ += cost.slots;
        } else {
            const bool shared = cost.unit == LoopUnit::memory || cost.unit == LoopUnit::lds;
            now_ += shared ? rates_.scalar : cost.slots > 0 ? cost.slots : cost.cycles;
        }
    }
    std::int64_t now() const { return now_; }

  private:
    const ArchName& arch_;
    const UnitRates& rates_;
    std::int64_t now_ = 0, matrix_free_ = 0;
    Arrivals memory_, lds_;
};

class NvidiaWave {
  public:
    NvidiaWave(const ArchName& arch, const UnitRates& rates) : arch_(arch), rates_(rates) {}

    void run(const Instruction& instruction) {
        const Scoreboards& boards = instruction.scoreboards;
        for (std::size_t i = 0; i < arrived_.size(); ++i)
            if ((boards.waits >> i & 1U) != 0) now_ = std::max(now_, arrived_[i]);
        const InstructionCost cost = cost_of(instruction.mnemonic, instruction.operands, arch_, rates_);
        const std::string_view name =
            std::string_view(instruction.mnemonic).substr(0, instruction.mnemonic.find('.'));
        // Groups of asynchronous copies: one ends at LDGDEPBAR, DEPBAR waits until so many are left.
        if (name == "LDGDEPBAR") groups_.add(now_ + rates_.memory_latency);
        if (name == "DEPBAR") now_ = groups_.wait(groups_left(instruction.operands), now_);
        if (cost.unit == LoopUnit::matrix) {
            now_ = std::max(now_, matrix_free_);
            matrix_free_ = now_ + cost.cycles;
        }
        const int latency = cost.unit == LoopUnit::memory ? rates_.memory_latency
                            : cost.unit == LoopUnit::lds  ? rates_.lds_latency
                                                          : rates_.other_latency;
        const auto sets = [&](std::int8_t board, int after) {
            if (board < 0) return;
            std::int64_t& arrived = arrived_[static_cast<std::size_t>(board)];
            arrived = std::max(arrived, now_ + after);
        };
        sets(boards.written, latency);
        sets(boards.read, rates_.other_latency);
        now_ += std::max<std::int64_t>(boards.stall, 1);
    }
    std::int64_t now() const { return now_; }

  private:
    const ArchName& arch_;
    const UnitRates& rates_;
    std::int64_t now_ = 0, matrix_free_ = 0;
    std::array<std::int64_t, 6> arrived_{};
    Arrivals groups_;

    /// "DEPBAR.LE SB0, 0x1": all groups but one. Without a number, all.
    static std::int64_t groups_left(std::string_view operands) {
        const auto all = operands_of(operands);
        return all.size() < 2 ? 0 : machine_number(all[1]).value_or(0);
    }
};

/// The mean of iterations that others went before: the work of those is under way, and where a wait lets several pass, long and
/// short ones take turns.
template <class Wave>
std::int64_t mean_iteration(std::span<const Instruction> path, Wave wave) {
    constexpr int before = 4, counted = 4;
    std::int64_t begin = 0;
    for (int i = 0; i < before + counted; ++i) {
        if (i == before) begin = wave.now();
        for (const Instruction& instruction : path) wave.run(instruction);
    }
    return (wave.now() - begin) / counted;
}

} // namespace

std::int64_t wave_cycles(std::span<const Instruction> path, const ArchName& arch, const UnitRates& rates) {
    return is_nvidia(arch) ? mean_iteration(path, NvidiaWave(arch, rates))
                           : mean_iteration(path, AmdWave(arch, rates));
}

} // namespace fmha::generator
