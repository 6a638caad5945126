#pragma once

#include <csignal>

namespace fmha::harness {

/// While one exists, SIGINT, SIGTERM and SIGHUP no longer end this process or the ones that it forks; they are
/// asked for with `requested`, so that a run can stop, keep what has finished and report it. Signals that the
/// process was told to ignore (nohup, background jobs) stay ignored. Create it before starting threads.
class InterruptWatch {
  public:
    InterruptWatch();
    /// Takes the signals that came, so that restoring the old state does not deliver them.
    ~InterruptWatch();
    InterruptWatch(const InterruptWatch&) = delete;
    InterruptWatch& operator=(const InterruptWatch&) = delete;

    bool requested() const;

  private:
    sigset_t watched_{}, before_{};
};

} // namespace fmha::harness
