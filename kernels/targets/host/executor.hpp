#pragma once

#include "dispatcher/system/parallel.hpp"
#include "kernels/targets/host/context.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

namespace fmha::host_target {

/// Runs a program over all blocks, each thread with a context of its own. `make_context(trace)` builds one. Blocks share
/// nothing, so the result is the same for every number of threads. Throws the exception that the first block, in the order of the grid,
/// throws.
template <class Program, class MakeContext>
void run_blocks(Program, const KernelConfig& config, const typename Program::Args& args,
                const RunOptions& options, MakeContext make_context) {
    const typename Program::Grid grid(config, args);
    const int threads = system::thread_count(options.threads);
    std::vector<std::vector<TileVisit>> visits(static_cast<std::size_t>(threads));
    const auto on_thread = [&](int thread) {
        auto* mine = options.trace != nullptr ? &visits[static_cast<std::size_t>(thread)] : nullptr;
        return [&, context = make_context(mine)](std::int64_t n) mutable {
            const typename Program::Item item = grid[n];
            context.begin(std::max<std::int64_t>(0, Program::rows(config, args, item)));
            Program::run(context, args, item);
        };
    };
    system::parallel_with(grid.size(), on_thread, threads);
    if (options.trace == nullptr) return;
    for (const auto& part : visits) options.trace->insert(options.trace->end(), part.begin(), part.end());
    std::stable_sort(options.trace->begin(), options.trace->end(),
                     [](const TileVisit& a, const TileVisit& b) {
                         return std::tie(a.b, a.h, a.q_tile) < std::tie(b.b, b.h, b.q_tile);
                     });
}

} // namespace fmha::host_target
