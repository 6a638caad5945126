// Several processes and one output folder: they work in it one after the other.

#include "dispatcher/types/error.hpp"
#include "kernels/generator/build.hpp"
#include "kernels/generator/write.hpp"
#include "tests/generator/catalogue.hpp"
#include "tests/generator/fake_compiler.hpp"

#include <gmock/gmock.h>

#include <array>
#include <csignal>
#include <fmt/format.h>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

namespace fmha::generator {
namespace {

namespace fs = std::filesystem;
using test::FakeCompiler;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

Selection kernels(std::size_t first, std::size_t count) {
    const auto list = test::house_fwd("gfx942");
    Selection selection;
    for (std::size_t i = first; i < first + count; ++i) selection.kernels.push_back(named(list[i]));
    return selection;
}

/// A process beside this one, which is killed with the object.
class Beside {
  public:
    explicit Beside(const std::function<void()>& work) : pid_(fork()) {
        if (pid_ != 0) return;
        try {
            work();
            _exit(0);
        } catch (const std::exception& error) {
            fmt::print(stderr, "{}\n", error.what());
            _exit(1);
        }
    }
    ~Beside() {
        if (pid_ > 0) kill();
    }
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;

    pid_t pid() const { return pid_; }
    void kill() {
        ::kill(pid_, SIGKILL);
        wait();
    }
    int wait() {
        int status = -1;
        waitpid(std::exchange(pid_, 0), &status, 0);
        return status;
    }

  private:
    pid_t pid_;
};

/// One byte from one process to another.
class Signal {
  public:
    Signal() {
        if (pipe(ends_.data()) != 0) throw Error("no pipe");
    }
    ~Signal() {
        for (const int end : ends_) close(end);
    }
    Signal(const Signal&) = delete;
    Signal& operator=(const Signal&) = delete;

    void give() const {
        if (write(ends_[1], "x", 1) != 1) throw Error("the pipe is closed");
    }
    void take() const {
        char byte = 0;
        if (read(ends_[0], &byte, 1) != 1) throw Error("the pipe is closed");
    }

  private:
    std::array<int, 2> ends_{};
};

TEST(Claim, ABuildWaitsForTheProcessInItsFolder) {
    const FakeCompiler fake;
    const Signal claimed, asked;
    Beside other([&] {
        const ClaimedFolder claim(fake.folder("out"));
        claimed.give();
        asked.take();
    });
    claimed.take();
    std::vector<std::string> told;
    auto options = fake.options("out");
    options.waiting = [&](const std::string& sentence) {
        told.push_back(sentence);
        asked.give();
    };
    const Selection selection = kernels(0, 2);
    const pid_t pid = other.pid();
    EXPECT_THAT(build(selection, fake.tools(selection), options).manifest.objects, SizeIs(2));
    EXPECT_THAT(told, ElementsAre(fmt::format("waiting for process {}, which is at work in {}", pid,
                                              fake.folder("out").string())));
    if (told.empty()) asked.give();
    EXPECT_EQ(other.wait(), 0);
}

TEST(Claim, EndsWithItsProcess) {
    const FakeCompiler fake;
    const Signal claimed, never;
    Beside other([&] {
        const ClaimedFolder claim(fake.folder("out"));
        claimed.give();
        never.take();
    });
    claimed.take();
    const Selection selection = kernels(0, 2);
    auto options = fake.options("out");
    options.stop = [] { return true; };
    EXPECT_THAT([&] { build(selection, fake.tools(selection), options); },
                testing::ThrowsMessage<InputError>(HasSubstr(
                    fmt::format("out: is in use by process {}; stopped while waiting", other.pid()))));
    other.kill();
    options.stop = {};
    options.waiting = [](const std::string& sentence) { ADD_FAILURE() << sentence; };
    EXPECT_THAT(build(selection, fake.tools(selection), options).manifest.objects, SizeIs(2));
}

TEST(Claim, ManyColdStartsCompileOnce) {
    const FakeCompiler fake;
    fake.be_slow();
    const Selection selection = kernels(0, 3);
    const auto work = [&] {
        auto options = fake.options("out");
        options.cache.reset();
        const auto result = build(selection, fake.tools(selection), options);
        if (result.manifest.objects.size() != 3 || !result.failed.empty())
            throw Error("not every kernel is there");
    };
    Beside a(work), b(work), c(work), d(work);
    for (Beside* one : {&a, &b, &c, &d}) EXPECT_EQ(one->wait(), 0);
    EXPECT_EQ(fake.compiled(), 3U);
}

TEST(Claim, KernelsOfARunningBuildAreNotRemovedUnasked) {
    const FakeCompiler fake;
    fake.be_slow();
    const Selection first = kernels(0, 2), others = kernels(2, 2);
    Beside other([&] { build(first, fake.tools(first), fake.options("out")); });
    while (!fs::exists(fake.folder("out") / "wanted.ninja")) usleep(1000);
    EXPECT_THAT([&] { build(others, fake.tools(others), fake.options("out")); },
                testing::ThrowsMessage<InputError>(HasSubstr("holds 2 kernels that this build leaves out")));
    EXPECT_EQ(other.wait(), 0);
    EXPECT_THAT(built::read_manifest(fake.folder("out")).objects, SizeIs(2));
}

} // namespace
} // namespace fmha::generator
