#include "harness/cli/progress.hpp"

#include "dispatcher/types/visible_text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/ostream.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace fmha::cli {
namespace {

/// More often nobody can read it, and quick steps would spend their time on it.
constexpr std::chrono::milliseconds between_lines{100};

std::size_t terminal_columns() {
    winsize window{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1 ? window.ws_col : 80;
}

double seconds_between(Progress::Clock::time_point from, Progress::Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

} // namespace

std::string duration_text(double seconds) {
    const auto whole = std::llround(std::max(seconds, 0.0));
    if (whole < 100) return fmt::format("{} s", whole);
    if (whole < 6000) return fmt::format("{} min {} s", whole / 60, whole % 60);
    return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

Progress::Progress(std::ostream& stream, bool on, std::size_t total, std::size_t done,
                   std::optional<std::size_t> columns)
    : stream_(stream), on_(on), total_(total), done_(done), before_(done), columns_(columns ? *columns
                                                                                    : on ? terminal_columns()
                                                                                         : 0) {}

std::string Progress::line(const std::string& name, Clock::time_point now) const {
    std::string text = total_ > 0 ? fmt::format("[{}/{}]", done_, total_) : fmt::format("[{}]", done_);
    const double passed = seconds_between(start_, now);
    const double rate = passed > 0.0 ? static_cast<double>(done_ - before_) / passed : 0.0;
    // The first steps say little about the others.
    if (rate > 0.0 && passed >= 1.0) text += fmt::format(" {:.3g}/s", rate);
    if (end_)
        text += fmt::format(", {} left", duration_text(seconds_between(now, *end_)));
    else if (rate > 0.0 && passed >= 1.0 && total_ > done_)
        text += fmt::format(", {} left", duration_text(static_cast<double>(total_ - done_) / rate));
    if (red_ > 0) text += fmt::format(", {} red", red_);
    text += "   " + visible(name);
    // A longer line would wrap, and only its last part would be overwritten.
    return text.substr(0, columns_ - 1);
}

void Progress::step(const std::string& name, Clock::time_point now) {
    ++done_;
    if (!on_ || (now - shown_ < between_lines && done_ != total_)) return;
    shown_ = now;
    fmt::print(stream_, "\r\x1b[K{}", line(name, now));
    stream_.flush();
}

void Progress::at(std::size_t done, std::size_t total, const std::string& name, Clock::time_point now) {
    if (done <= done_ || total != total_) {
        before_ = done - 1;
        start_ = now;
    }
    done_ = done - 1;
    total_ = total;
    step(name, now);
}

void Progress::clear() {
    if (on_) fmt::print(stream_, "\r\x1b[K");
}

} // namespace fmha::cli
