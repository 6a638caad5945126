#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"

#include <gmock/gmock.h>

#include <csignal>

namespace fmha::system {
namespace {

using testing::ElementsAre;

TEST(RunProcess, KillsWhatTakesTooLong) {
    const auto ran = run_process({"sleep", "30"}, {.time = std::chrono::seconds(1)});
    EXPECT_TRUE(ran.timed_out);
    EXPECT_THROW(run_process({"no-such-program-here"}), InputError);
}

TEST(RunProcess, GivesBothStreamsAndTheExitCode) {
    const auto ran = run_process({"sh", "-c", "echo out; echo err >&2; exit 3"}, {.directory = "/"});
    EXPECT_EQ(ran.out, "out\n");
    EXPECT_EQ(ran.err, "err\n");
    EXPECT_EQ(ran.exit_code, 3);
}

TEST(RunProcess, HandsOnCompleteLines) {
    std::vector<std::string> lines;
    run_process({"sh", "-c", "printf a; sleep 0.05; printf 'b\\nc\\nrest'"},
                {.on_line = [&](std::string_view line) { lines.emplace_back(line); }});
    EXPECT_THAT(lines, ElementsAre("ab", "c"));
}

TEST(RunProcess, AddsToTheEnvironmentAndReplacesWhatIsThere) {
    const auto ran =
        run_process({"sh", "-c", "echo $HOME $FMHA_NEW"}, {.environment = {"HOME=/nowhere", "FMHA_NEW=1"}});
    EXPECT_EQ(ran.out, "/nowhere 1\n");
}

TEST(RunProcess, InterruptsWhenAskedAlthoughThisProcessBlocksInterrupts) {
    sigset_t interrupt{};
    sigset_t before{};
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    const auto ran =
        run_process({"sleep", "30"}, {.time = std::chrono::seconds(20), .stop = [] { return true; }});
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    EXPECT_TRUE(ran.stopped);
    EXPECT_FALSE(ran.timed_out);
    EXPECT_EQ(ran.exit_code, 128 + SIGINT);
}

} // namespace
} // namespace fmha::system
