#include "kernels/targets/hip/emulated/baton.hpp"

#include "kernels/targets/hip/emulated/emulation_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace fmha::hip_target {

Baton::Baton(int agents, Schedule schedule, std::uint64_t seed, Background background,
             std::function<std::string(int)> name_of)
    : schedule_(schedule), random_(seed), background_(std::move(background)), name_of_(std::move(name_of)),
      agents_(static_cast<std::size_t>(agents)) {}

void Baton::run(const std::function<void(int)>& body) {
    {
        const std::lock_guard lock(mutex_);
        hand_on();
    }
    const auto as_agent = [&](int agent) {
        std::exception_ptr error;
        try {
            {
                std::unique_lock lock(mutex_);
                await_baton(agent, lock);
            }
            body(agent);
        } catch (const Stopped&) {
        } catch (...) {
            error = std::current_exception();
        }
        const std::lock_guard lock(mutex_);
        agents_[static_cast<std::size_t>(agent)].ended = true;
        if (error) fail(error);
        if (!error_) hand_on();
    };
    {
        std::vector<std::jthread> threads;
        try {
            for (int agent = 0; agent < static_cast<int>(agents_.size()); ++agent)
                threads.emplace_back(as_agent, agent);
        } catch (...) {
            // Agents wait for each other, so that nobody can do the work of an agent that does not start.
            const std::lock_guard lock(mutex_);
            fail(std::current_exception());
        }
    }
    if (error_) std::rethrow_exception(error_);
}

void Baton::wait_until(int agent, std::function<bool()> ready, std::function<std::string()> what) {
    std::unique_lock lock(mutex_);
    Agent& self = agents_[static_cast<std::size_t>(agent)];
    self.ready = std::move(ready);
    self.what = std::move(what);
    hand_on();
    await_baton(agent, lock);
    self.ready = {};
    self.what = {};
}

void Baton::yield(int agent) {
    wait_until(
        agent, [] { return true; }, [] { return std::string("nothing"); });
}

void Baton::await_baton(int agent, std::unique_lock<std::mutex>& lock) {
    agents_[static_cast<std::size_t>(agent)].called.wait(lock, [&] { return current_ == agent || error_; });
    if (error_) throw Stopped{};
}

void Baton::hand_on() {
    const int memory = static_cast<int>(agents_.size());
    while (!error_) {
        std::vector<int> candidates;
        bool all_ended = true;
        for (int agent = 0; agent < memory; ++agent) {
            const Agent& a = agents_[static_cast<std::size_t>(agent)];
            all_ended = all_ended && a.ended;
            if (!a.ended && (!a.ready || a.ready())) candidates.push_back(agent);
        }
        if (background_.pending()) candidates.push_back(memory);
        if (candidates.empty()) {
            if (!all_ended)
                fail(std::make_exception_ptr(EmulationError(Hazard::deadlock, deadlock_report())));
            return;
        }
        last_ = chosen_of(candidates);
        if (last_ < memory) {
            current_ = last_;
            agents_[static_cast<std::size_t>(current_)].called.notify_one();
            return;
        }
        try {
            background_.advance();
        } catch (...) {
            fail(std::current_exception());
        }
    }
}

int Baton::chosen_of(const std::vector<int>& candidates) {
    const int memory = static_cast<int>(agents_.size());
    switch (schedule_) {
    case Schedule::feed_first:
        return candidates.back() == memory ? memory : candidates.front();
    case Schedule::teams_first: {
        const bool only_memory = candidates.front() == memory;
        return only_memory || candidates.back() != memory ? candidates.back()
                                                          : candidates[candidates.size() - 2];
    }
    case Schedule::in_turn: {
        const auto next = std::ranges::upper_bound(candidates, last_);
        return next == candidates.end() ? candidates.front() : *next;
    }
    case Schedule::random:
        break;
    }
    return candidates[random_() % candidates.size()];
}

void Baton::fail(std::exception_ptr error) {
    if (!error_) error_ = std::move(error);
    for (Agent& agent : agents_) agent.called.notify_one();
}

std::string Baton::deadlock_report() const {
    std::string text = "no part of the block can go on";
    for (std::size_t agent = 0; agent < agents_.size(); ++agent) {
        const Agent& a = agents_[agent];
        text += fmt::format("; {} {}", name_of_(static_cast<int>(agent)),
                            a.ended ? "has ended" : "waits for " + a.what());
    }
    return text;
}

} // namespace fmha::hip_target
