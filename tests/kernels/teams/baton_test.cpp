// A thread that does not start is an error of the run. Its process lives on, and the agents that did start end.

#include "kernels/targets/hip/emulated/baton.hpp"
#include "tests/system/replaced_new.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <new>

namespace {

/// How many pieces of memory this thread still gets; −1: as many as it wants.
thread_local int pieces = -1;

} // namespace

bool fmha::test::refuses_memory() {
    if (pieces == 0) return true;
    if (pieces > 0) --pieces;
    return false;
}

namespace fmha::hip_target {
namespace {

/// Runs three agents that wait for each other, with so many pieces of memory for the thread that starts them. Returns whether
/// all ended.
bool all_end(int given) {
    std::atomic<int> ended{0};
    Baton baton(3, Schedule::in_turn, 0, {[] { return false; }, [] {}}, [](int) { return std::string(); });
    const auto meet = [&](int agent) {
        baton.yield(agent);
        ++ended;
    };
    pieces = given;
    try {
        baton.run(meet);
    } catch (const std::bad_alloc&) {
        pieces = -1;
        return false;
    }
    pieces = -1;
    return ended == 3;
}

TEST(Baton, AThreadThatDoesNotStartIsAnError) {
    int given = 0;
    while (given < 100 && !all_end(given)) ++given;
    // A thread takes at least one piece, and the second and third begin after another has started.
    EXPECT_GE(given, 3);
    EXPECT_LT(given, 100);
    EXPECT_TRUE(all_end(-1));
}

} // namespace
} // namespace fmha::hip_target
