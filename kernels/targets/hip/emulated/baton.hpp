#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace fmha::hip_target {

/// Who goes on when several agents of a block can. Agent 0 is the feed, the others are teams; memory lands copies.
enum class Schedule : std::uint8_t {
    feed_first,  ///< memory, the feed, then the teams
    teams_first, ///< the last team before the first, then the feed, memory last
    in_turn,     ///< one after another
    random,      ///< by the seed
};
inline constexpr int schedules = 4;

/// Runs the agents of a block as threads of which exactly one goes on at a time, so that a run is the same whenever its schedule
/// and seed are. The agent with the baton hands it on where it waits or yields.
class Baton {
  public:
    /// The work beside the agents: whether there is any, and its next piece.
    struct Background {
        std::function<bool()> pending;
        std::function<void()> advance;
    };

    /// `name_of(agent)` is what reports call an agent.
    Baton(int agents, Schedule schedule, std::uint64_t seed, Background background,
          std::function<std::string(int)> name_of);

    /// Runs body(agent) for every agent and returns when all have ended. Throws the first agent's exception where agents throw;
    /// EmulationError (deadlock), which names every agent's wait, when none can go on; the system's error when it refuses a thread.
    void run(const std::function<void(int)>& body);

    /// Of the agent with the baton: others may go on. `what` says what it waits for, when asked.
    void wait_until(int agent, std::function<bool()> ready, std::function<std::string()> what);
    void yield(int agent);

  private:
    /// Ends an agent when another one has failed.
    struct Stopped {};
    struct Agent {
        std::function<bool()> ready; ///< none: it can go on
        std::function<std::string()> what;
        std::condition_variable called; ///< it has the baton, or another one has failed
        bool ended = false;
    };

    void hand_on();
    void await_baton(int agent, std::unique_lock<std::mutex>& lock);
    int chosen_of(const std::vector<int>& candidates);
    void fail(std::exception_ptr error);
    std::string deadlock_report() const;

    Schedule schedule_;
    std::mt19937_64 random_;
    Background background_;
    std::function<std::string(int)> name_of_;
    std::vector<Agent> agents_;
    std::mutex mutex_;
    int current_ = -1, last_ = 0;
    std::exception_ptr error_;
};

} // namespace fmha::hip_target
