#pragma once

#include "kernels/targets/host/context.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <tuple>
#include <vector>

namespace fmha::host_target {

/// The blocks of one launch, numbered so that the query tiles of a head follow each other.
struct FwdGrid {
    std::int64_t batch, heads, q_tiles, v_tiles;

    FwdGrid(const KernelConfig& config, const FwdArgs& args)
        : batch(args.batch), heads(args.nhead_q),
          q_tiles(
              tiles(args.mode == Mode::group ? args.max_seqlen_q : args.seqlen_q, config.algorithm.tile.m0)),
          v_tiles(tiles(args.hdim_v, config.algorithm.tile.n1)) {}

    std::int64_t size() const { return batch * heads * q_tiles * v_tiles; }
    kernels::FwdItem operator[](std::int64_t n) const {
        const std::int64_t q = n / v_tiles, head = q / q_tiles;
        // Last query tile first: under a causal mask the long blocks start early and the threads end
        // together.
        return {head / heads, head % heads, q_tiles - 1 - q % q_tiles, n % v_tiles};
    }

  private:
    static std::int64_t tiles(std::int64_t extent, std::int64_t tile) { return (extent + tile - 1) / tile; }
};

/// Runs the forward program over all blocks, each thread with a context of its own. `make_context(trace)`
/// builds one. Blocks share nothing, so the result is the same for every number of threads.
template <class MakeContext>
void run_blocks(const KernelConfig& config, const FwdArgs& args, const RunOptions& options,
                MakeContext make_context) {
    const FwdGrid grid(config, args);
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
