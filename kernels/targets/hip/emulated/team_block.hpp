#pragma once

#include "kernels/targets/hip/emulated/baton.hpp"
#include "kernels/targets/hip/emulated/emulation_error.hpp"
#include "kernels/targets/hip/tensor_map.hpp"

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::hip_target {

/// The state that the agents of a block share: LDS in units of 16 bytes, barriers, turns. Every agent has a clock: another agent knows an
/// action when it has waited for a barrier at which the first agent arrived after the action. Actions that are not known
/// are not ordered, and an access that depends on them throws EmulationError, even if it came in the right order here.
class TeamBlock {
  public:
    static constexpr int most_agents = 5, unit_bytes = 16;
    using Clock = std::array<std::uint32_t, most_agents>;

    /// The feed and `agents` − 1 teams, of groups of `group_threads` threads. Where some threads of the feed transpose tiles, the last agent
    /// is these threads instead of a team.
    TeamBlock(int lds_bytes, int agents, int group_threads, Schedule schedule, std::uint64_t seed,
              int transposing_threads = 0);

    void run(const std::function<void(int)>& body) { baton_.run(body); }
    bool transposes(int agent) const { return transposing_threads_ > 0 && agent == agents_ - 1; }
    /// Of the group, or part of one, that an agent is.
    int threads_of(int agent) const { return transposes(agent) ? transposing_threads_ : group_threads_; }
    std::string name_of(int agent) const;
    /// Whether a product has its result as soon as it is started, and not before it is finished.
    bool products_at_start() const { return schedule_ == Schedule::teams_first; }

    /// From now on groups trade registers: the feed keeps `feed` a thread, and a team claims `team`.
    void split_registers(int feed, int team);
    void release_registers(int agent);
    /// Waits until there are so many.
    void claim_registers(int agent);

    void init_barrier(int address, int arrivals);
    /// All agents have come here.
    void meet(int agent);
    void arrive(int agent, int address, int arrivals);
    /// Arrives once, and lets the barrier wait for so many bytes of copies too.
    void expect(int agent, int address, int bytes);
    void wait(int agent, int address, int parity);
    void turn(int agent, int team);
    void pass(int agent, int team);

    /// Starts to copy the box at `corner` to LDS, where its lines are those of a SwizzledTile. When it has landed the barrier has its bytes.
    void copy_box(int agent, const TensorMapSpec& map, const BoxCorner& corner, int address, int barrier);

    /// A thread of the agent reads or writes a unit by itself, at an address that is a multiple of 16.
    void read(int agent, std::int64_t address, void* to);
    void write(int agent, std::int64_t address, const void* from);
    /// Products that know of this may read what threads of the agent wrote before it.
    void publish(int agent);

    /// A product of the agent begins to read a unit, and ends it.
    void begin_read(int agent, std::int64_t unit);
    void end_read(int agent, std::int64_t unit);
    const std::byte* unit(std::int64_t number) const { return memory_.data() + number * unit_bytes; }
    void yield(int agent) { baton_.yield(agent); }

  private:
    enum class State : std::uint8_t { unwritten, in_flight, written };
    struct Unit {
        State state = State::unwritten;
        std::int8_t writer = 0;
        std::uint32_t written = 0;   ///< by the writer's clock
        std::uint32_t published = 0; ///< by the writer's clock; 0: not yet
        Clock read{};                ///< the last read of every agent, by its clock; 0: none
        std::array<std::int8_t, most_agents> reading{};
    };
    struct Barrier {
        int arrivals = 0, missing = 0;
        std::int64_t missing_bytes = 0;
        std::uint32_t phase = 0;
        Clock arriving{}, completed{};
        std::array<bool, most_agents> arrived{};       ///< in this phase; every agent arrives once in it
        std::array<std::uint32_t, most_agents> seen{}; ///< the phase when the agent last waited
    };
    struct Copy {
        std::int64_t unit;
        std::array<std::byte, unit_bytes> data;
    };
    struct Landing {
        std::vector<Copy> copies;
        int agent, barrier;
    };
    struct Turn {
        int given = 0;
        Clock clock{};
    };
    struct Meeting {
        int present = 0;
        std::uint32_t number = 0;
        Clock arriving{}, completed{};
    };
    /// Registers of one thread of every group.
    struct RegisterSplit {
        int groups = 0, at_entry = 0, feed = 0, team = 0, free = 0; ///< no feed: groups trade none
    };

    static std::size_t index(int agent) { return static_cast<std::size_t>(agent); }
    Clock& clock(int agent) { return clocks_.at(index(agent)); }
    static void join(Clock& to, const Clock& from);
    /// The agent's actions so far may be known to others by `to`.
    void tell(int agent, Clock& to);
    Barrier& barrier_at(int address);
    static void end_phase(Barrier& barrier);
    void check_known(int agent, const Unit& unit, std::int64_t address, std::string_view reader) const;
    std::int64_t unit_at(int agent, std::int64_t address, std::string_view operation) const;
    void check_write(int agent, std::int64_t unit, std::string_view operation);
    void land();
    [[noreturn]] void fail(Hazard hazard, int agent, const std::string& sentence) const;

    Schedule schedule_;
    int agents_, group_threads_, transposing_threads_;
    std::vector<std::byte> memory_;
    std::vector<Unit> units_;
    std::map<int, Barrier> barriers_;
    std::array<Turn, most_agents> turns_;
    std::array<Clock, most_agents> clocks_{};
    std::array<std::vector<std::int64_t>, most_agents> unpublished_; ///< units
    std::deque<Landing> landings_;
    Meeting meeting_;
    RegisterSplit registers_;
    Baton baton_;
};

} // namespace fmha::hip_target
