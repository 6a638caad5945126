#pragma once

#include "kernels/programs/fwd_grid.hpp"
#include "kernels/targets/host/context.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <tuple>
#include <vector>

namespace fmha::host_target {

/// Runs the forward program over all blocks, each thread with a context of its own. `make_context(trace)`
/// builds one. Blocks share nothing, so the result is the same for every number of threads.
template <class MakeContext>
void run_blocks(const KernelConfig& config, const FwdArgs& args, const RunOptions& options,
                MakeContext make_context) {
    const kernels::FwdGrid grid(config, args);
    const std::int64_t wanted =
        options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
    const std::int64_t threads = std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, grid.size()));

    std::atomic<std::int64_t> next{0};
    std::vector<std::vector<TileVisit>> visits(static_cast<std::size_t>(threads));
    const auto work = [&](std::vector<TileVisit>& mine) {
        auto context = make_context(options.trace != nullptr ? &mine : nullptr);
        for (std::int64_t n = next++; n < grid.size(); n = next++) {
            const kernels::FwdItem item = grid[n];
            const std::int64_t m0 = config.algorithm.tile.m0;
            const std::int64_t rows = kernels::Entry::of(args, item.b).seqlen_q - item.q_tile * m0;
            context.begin(std::clamp<std::int64_t>(rows, 0, m0));
            kernels::fmha_fwd(context, args, item);
        }
    };
    {
        std::vector<std::jthread> others;
        for (std::size_t i = 1; i < visits.size(); ++i) others.emplace_back([&, i] { work(visits[i]); });
        work(visits[0]);
    }
    if (options.trace == nullptr) return;
    for (const auto& part : visits) options.trace->insert(options.trace->end(), part.begin(), part.end());
    std::stable_sort(options.trace->begin(), options.trace->end(),
                     [](const TileVisit& a, const TileVisit& b) {
                         return std::tie(a.b, a.h, a.q_tile) < std::tie(b.b, b.h, b.q_tile);
                     });
}

} // namespace fmha::host_target
