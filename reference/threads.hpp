#pragma once

#include <cstdint>
#include <functional>

namespace fmha::reference {

/// `requested`, or as many as the machine has when it is 0.
int thread_count(int requested);

/// Calls task(0) … task(tasks − 1), each once, on up to `threads` threads (0 = as many as the machine has)
/// and returns when all are done. The first exception is rethrown.
void run_tasks(std::int64_t tasks, int threads, const std::function<void(std::int64_t)>& task);

} // namespace fmha::reference
