#pragma once

#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace fmha::test {

/// Runs `work`, which returns an exit code, in a process of its own; `meanwhile` in this one gets its id. Returns its wait status.
inline int in_another_process(const std::function<int()>& work, const std::function<void(pid_t)>& meanwhile) {
    const pid_t child = fork();
    if (child == 0) _exit(work());
    meanwhile(child);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

/// At most a minute.
inline void wait_until(const std::function<bool()>& holds) {
    for (int i = 0; i < 6000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(holds());
}

} // namespace fmha::test
