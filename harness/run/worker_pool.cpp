#include "harness/run/worker_pool.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/run/worker_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <poll.h>
#include <vector>

namespace fmha::harness {
namespace {

/// Processes in a row that may end before they begin a task; the next one would hardly fare better.
constexpr int most_attempts = 3;

/// A write to a worker that just died must be an error code, not the end of this process.
class IgnorePipeSignal {
  public:
    IgnorePipeSignal() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
    IgnorePipeSignal(const IgnorePipeSignal&) = delete;
    IgnorePipeSignal& operator=(const IgnorePipeSignal&) = delete;
    ~IgnorePipeSignal() { std::signal(SIGPIPE, before_); }

  private:
    void (*before_)(int);
};

/// A place for one process, and the task that was assigned to it.
class Slot {
  public:
    explicit Slot(std::size_t place) : place_(place) {}

    bool free() const { return !task_; }
    std::size_t place() const { return place_; }
    /// Why it takes no more tasks; nullopt while it does.
    const std::optional<std::string>& closed() const { return closed_; }
    std::size_t task() const { return *task_; }
    void assign(std::size_t task) {
        task_ = task;
        attempts_ = 0;
    }

    /// The task that it had when it was closed.
    std::size_t give_back() {
        const std::size_t task = *task_;
        task_.reset();
        return task;
    }

    /// Sees to it that a process has the task. An end when none takes it and the place is not closed for it.
    std::optional<TaskEnd> start(const PoolOptions& options,
                                 const std::function<std::string(std::size_t)>& task) {
        while (!worker_ || !worker_->busy()) {
            if (attempts_++ == most_attempts) {
                if (!options.prepare) return end({TaskEnd::Kind::crashed, death_});
                close(fmt::format("{} attempts, the last one: {}", most_attempts, death_));
                return std::nullopt;
            }
            if (!worker_)
                worker_ = std::make_unique<WorkerProcess>(task, options.spent, preparation(options));
            if (!worker_->give(*task_)) {
                death_ = "every process for it ended before it began";
                worker_.reset();
            }
        }
        return std::nullopt;
    }

    int descriptor() const { return task_ && worker_ ? worker_->descriptor() : -1; }

    /// The end of the task, if there is news of one.
    std::optional<TaskEnd> look(bool readable, const PoolOptions& options) {
        WorkerNews news;
        if (readable) news = worker_->news();
        if (news.kind == WorkerNews::Kind::end) {
            if (worker_->spent()) worker_.reset();
            return end(std::move(news.end));
        }
        if (news.kind == WorkerNews::Kind::unable) {
            death_ = news.end.answer;
            worker_.reset();
            return std::nullopt;
        }
        if (news.kind == WorkerNews::Kind::gone) {
            const bool begun = worker_->begun();
            worker_.reset();
            if (begun) return end(std::move(news.end));
            death_ = news.end.answer;
            return std::nullopt;
        }
        const std::chrono::milliseconds timeout = options.task_timeout;
        if (timeout.count() > 0 && worker_->busy_for() > timeout) {
            const bool begun = worker_->begun();
            const double seconds = static_cast<double>(timeout.count()) / 1e3;
            worker_.reset();
            if (begun || !options.prepare)
                return end({TaskEnd::Kind::timed_out, fmt::format("still running after {} s", seconds)});
            close(fmt::format("not ready after {} s", seconds));
        }
        return std::nullopt;
    }

  private:
    TaskEnd end(TaskEnd how) {
        task_.reset();
        how.place = place_;
        return how;
    }

    void close(std::string why) { closed_ = std::move(why); }

    std::function<void()> preparation(const PoolOptions& options) const {
        if (!options.prepare) return {};
        return [&prepare = options.prepare, place = place_] { prepare(place); };
    }

    std::size_t place_;
    std::optional<std::string> closed_;
    std::unique_ptr<WorkerProcess> worker_;
    std::optional<std::size_t> task_;
    int attempts_ = 0;
    std::string death_; ///< of the last process that did not begin the task
};

/// The tasks that no slot has, in their order, those that came back first.
class Waiting {
  public:
    explicit Waiting(std::size_t count) : count_(count) {}
    bool any() const { return !returned_.empty() || next_ < count_; }
    std::size_t take() {
        if (returned_.empty()) return next_++;
        const std::size_t task = returned_.back();
        returned_.pop_back();
        return task;
    }
    void give_back(std::size_t task) { returned_.push_back(task); }

  private:
    std::size_t count_, next_ = 0;
    std::vector<std::size_t> returned_;
};

/// Takes the task of a slot that was closed for others.
void retire(Slot& slot, Waiting& waiting, const PoolOptions& options) {
    waiting.give_back(slot.give_back());
    if (options.on_closed) options.on_closed(slot.place(), *slot.closed());
}

} // namespace

TaskEnd end_of_exception() {
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return {TaskEnd::Kind::no_memory, "this machine has not enough memory left for it"};
    } catch (const InputError& error) {
        return {TaskEnd::Kind::bad_input, error.what()};
    } catch (const std::exception& error) {
        return {TaskEnd::Kind::crashed, fmt::format("ended by an exception: {}", error.what())};
    } catch (...) {
        return {TaskEnd::Kind::crashed, "ended by an exception of an unknown type"};
    }
}

void run_isolated(std::size_t count, const PoolOptions& options,
                  const std::function<std::string(std::size_t)>& task,
                  const std::function<bool(std::size_t, const TaskEnd&)>& on_end) {
    const IgnorePipeSignal no_signal;
    const auto jobs = std::min<std::size_t>(count, static_cast<std::size_t>(std::max(1, options.jobs)));
    std::vector<Slot> slots;
    for (std::size_t place = 0; place < jobs; ++place) slots.emplace_back(place);
    Waiting waiting(count);
    std::size_t ended = 0;
    while (ended < count) {
        if (options.stop && options.stop()) return;
        for (Slot& slot : slots) {
            if (slot.closed()) continue;
            if (slot.free() && waiting.any()) slot.assign(waiting.take());
            if (slot.free()) continue;
            const std::size_t index = slot.task();
            if (const auto end = slot.start(options, task)) {
                ++ended;
                if (!on_end(index, *end)) return;
            }
            if (slot.closed()) retire(slot, waiting, options);
        }
        if (std::ranges::all_of(slots, [](const Slot& slot) { return slot.closed().has_value(); })) {
            const TaskEnd end{TaskEnd::Kind::no_process, *slots.back().closed()};
            while (waiting.any())
                if (!on_end(waiting.take(), end)) return;
            return;
        }
        std::vector<pollfd> waits;
        waits.reserve(slots.size());
        for (const Slot& slot : slots) waits.push_back({slot.descriptor(), POLLIN, 0});
        const bool somebody = std::ranges::any_of(slots, [](const Slot& slot) { return !slot.free(); });
        const bool next = waiting.any() && std::ranges::any_of(slots, [](const Slot& slot) {
                              return slot.free() && !slot.closed();
                          });
        poll(waits.data(), waits.size(),
             !somebody || next                                  ? 0
             : options.task_timeout.count() > 0 || options.stop ? 100
                                                                : -1);
        for (std::size_t s = 0; s < slots.size(); ++s) {
            if (slots[s].free()) continue;
            const std::size_t index = slots[s].task();
            const bool readable = (waits[s].revents & (POLLIN | POLLHUP)) != 0;
            if (const auto end = slots[s].look(readable, options)) {
                ++ended;
                if (!on_end(index, *end)) return;
            }
            if (slots[s].closed()) retire(slots[s], waiting, options);
        }
    }
}

} // namespace fmha::harness
