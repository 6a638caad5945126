#include "harness/run/interrupt.hpp"

#include <ctime>

namespace fmha::harness {
namespace {

constexpr int endings[] = {SIGINT, SIGTERM, SIGHUP};

} // namespace

InterruptWatch::InterruptWatch() {
    sigemptyset(&watched_);
    for (const int signal : endings) {
        struct sigaction action {};
        // A blocked signal becomes pending even if it is ignored, hence the question.
        if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&watched_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &watched_, &before_);
}

InterruptWatch::~InterruptWatch() {
    const timespec at_once{};
    while (requested() && sigtimedwait(&watched_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool InterruptWatch::requested() const {
    sigset_t pending{};
    sigpending(&pending);
    for (const int signal : endings)
        if (sigismember(&watched_, signal) == 1 && sigismember(&pending, signal) == 1) return true;
    return false;
}

} // namespace fmha::harness
