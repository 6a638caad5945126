#pragma once

#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>

namespace fmha::cli {

/// The state of long work on one line of a terminal, written over itself: "[120/4596] 48.1/s, 1 min 33 s left, 2 red   NAME".
/// It writes nothing where the stream is no terminal.
class Progress {
  public:
    using Clock = std::chrono::steady_clock;

    /// `total`: 0 = unknown. `done`: steps of an earlier process, which count for no rate. `columns`: of the terminal; absent =
    /// it is asked.
    Progress(std::ostream& stream, bool on, std::size_t total, std::size_t done = 0,
             std::optional<std::size_t> columns = std::nullopt);

    /// The end of the work, where that is a time and not a number of steps.
    void ends_at(Clock::time_point end) { end_ = end; }
    /// A step has ended.
    void step(const std::string& name, Clock::time_point now = Clock::now());
    /// A step has ended of work that counts its own: it was the `done`-th of `total`. Fewer than before are those of another part of
    /// the work, which begins a rate of its own.
    void at(std::size_t done, std::size_t total, const std::string& name,
            Clock::time_point now = Clock::now());
    /// Results of it were red.
    void red(std::size_t results = 1) { red_ += results; }
    void clear();

  private:
    std::string line(const std::string& name, Clock::time_point now) const;

    std::ostream& stream_;
    bool on_;
    std::size_t total_, done_, before_, red_ = 0, columns_;
    Clock::time_point start_ = Clock::now(), shown_{};
    std::optional<Clock::time_point> end_;
};

/// "93 s", "12 min 5 s", "3 h 20 min".
std::string duration_text(double seconds);

} // namespace fmha::cli
