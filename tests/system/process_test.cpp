#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace fmha::system {
namespace {

using testing::ElementsAre;

TEST(RunProcess, KillsWhatTakesTooLong) {
    const auto ran = run_process({"sleep", "30"}, {.time = std::chrono::seconds(1)});
    EXPECT_TRUE(ran.timed_out);
    EXPECT_THROW(run_process({"no-such-program-here"}), InputError);
}

bool alive(const std::filesystem::path& pid_file) {
    const pid_t pid = std::stoi(read_file(pid_file));
    if (kill(pid, 0) != 0) return false;
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    // A killed process is a zombie until somebody asks for its status.
    return std::string(std::istreambuf_iterator<char>(stat), {}).find(") Z ") == std::string::npos;
}

/// Waits for the system, which needs a moment to end a process.
bool ends(const std::filesystem::path& pid_file) {
    for (int n = 0; n < 100 && alive(pid_file); ++n)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return !alive(pid_file);
}

TEST(RunProcess, KillsWhatTakesTooLongWithItsStreamsClosed) {
    const auto start = std::chrono::steady_clock::now();
    const auto ran =
        run_process({"sh", "-c", "exec >&- 2>&-; exec sleep 30"}, {.time = std::chrono::milliseconds(500)});
    EXPECT_TRUE(ran.timed_out);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(TemporaryFolder, ThatCannotBeUsedIsNamed) {
    const char* const before = std::getenv("TMPDIR");
    const std::string kept = before == nullptr ? "" : before;
    setenv("TMPDIR", "/no/where", 1);
    try {
        const TemporaryDirectory folder;
        ADD_FAILURE() << folder.path();
    } catch (const InputError& error) {
        EXPECT_STREQ(
            error.what(),
            "the folder for temporary files, TMPDIR=/no/where, cannot be used: No such file or directory");
    }
    before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
}

TEST(RunProcess, EndsTheProgramWhenItsCallerThrows) {
    const TemporaryDirectory folder;
    const ProcessOptions options{.directory = folder.path(),
                                 .on_line = [](std::string_view) { throw std::runtime_error("no more"); }};
    EXPECT_THROW(run_process({"sh", "-c", "echo $$ > child; echo line; exec sleep 60"}, options),
                 std::runtime_error);
    EXPECT_FALSE(alive(folder.path() / "child"));
}

TEST(RunProcess, EndsWhatTheProgramStartedWhenItTakesTooLong) {
    const TemporaryDirectory folder;
    const auto start = std::chrono::steady_clock::now();
    const auto ran = run_process({"sh", "-c", "sleep 60 & echo $! > child; wait"},
                                 {.directory = folder.path(), .time = std::chrono::milliseconds(500)});
    EXPECT_TRUE(ran.timed_out);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
    EXPECT_TRUE(ends(folder.path() / "child"));
}

TEST(RunProcess, KillsAGroupThatDoesNotWantToEnd) {
    const TemporaryDirectory folder;
    const auto ran = run_process(
        {"sh", "-c", "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > child; while :; do sleep 1; done'"},
        {.directory = folder.path(), .time = std::chrono::milliseconds(500)});
    EXPECT_TRUE(ran.timed_out);
    EXPECT_EQ(ran.exit_code, 128 + SIGKILL);
    EXPECT_TRUE(ends(folder.path() / "child"));
}

TEST(RunProcess, PassesOnASignalThatEndsThisProcess) {
    const TemporaryDirectory folder;
    const pid_t runner = fork();
    if (runner == 0) {
        signal(SIGINT, SIG_DFL); // a shell's background jobs ignore it
        run_process({"sh", "-c", "echo $$ > child; exec sleep 60"}, {.directory = folder.path()});
        _exit(0); // not reached: the signal acts first
    }
    while (!std::filesystem::exists(folder.path() / "child") || read_file(folder.path() / "child").empty())
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    kill(runner, SIGINT);
    int status = 0;
    ASSERT_EQ(waitpid(runner, &status, 0), runner);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    EXPECT_TRUE(ends(folder.path() / "child"));
}

TEST(RunProcess, GivesBothStreamsAndTheExitCode) {
    const auto ran = run_process({"sh", "-c", "echo out; echo err >&2; exit 3"}, {.directory = "/"});
    EXPECT_EQ(ran.out, "out\n");
    EXPECT_EQ(ran.err, "err\n");
    EXPECT_EQ(ran.exit_code, 3);
}

TEST(RunProcess, SaysWhetherTheProgramOrTheFolderIsMissing) {
    const auto refusal = [](const std::string& program, const std::string& folder) {
        try {
            run_process({program}, {.directory = folder});
        } catch (const InputError& error) {
            return std::string(error.what());
        }
        return std::string("(it ran)");
    };
    EXPECT_EQ(refusal("true", "/"), "(it ran)");
    EXPECT_EQ(refusal("/no/program", "/"), "/no/program: cannot be started: No such file or directory");
    EXPECT_EQ(refusal("true", "/no/folder"), "true: cannot be started in /no/folder, which is no folder");
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

TEST(RunProcess, InterruptsAlthoughThisProcessIgnoresInterrupts) {
    const auto before = signal(SIGINT, SIG_IGN);
    const auto ran =
        run_process({"sleep", "30"}, {.time = std::chrono::seconds(20), .stop = [] { return true; }});
    signal(SIGINT, before);
    EXPECT_TRUE(ran.stopped);
    EXPECT_EQ(ran.exit_code, 128 + SIGINT);
}

TEST(RunProcess, WaitsForNobodyWhoDoesNotStop) {
    const TemporaryDirectory folder;
    const auto start = std::chrono::steady_clock::now();
    const auto ran = run_process({"sh", "-c", "trap '' INT TERM; echo $$ > child; while :; do sleep 1; done"},
                                 {.directory = folder.path(), .time = std::chrono::seconds(60), .stop = [&] {
                                      return std::filesystem::exists(folder.path() / "child");
                                  }});
    EXPECT_TRUE(ran.stopped);
    EXPECT_FALSE(ran.timed_out);
    EXPECT_EQ(ran.exit_code, 128 + SIGKILL);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

} // namespace
} // namespace fmha::system
