#pragma once

#include "kernels/programs/dq_partials.hpp"

#include <cstdint>

/// Which key tiles a block of the main kernel of backward differentiates, and where its part of dQ goes.
namespace fmha::kernels {

/// A key tile of `heads` query heads of one entry from h on, or every `stride`-th tile from it on.
struct KeyJob {
    std::int64_t b = 0, h = 0, heads = 1, tile = 0;
    std::int64_t stride = 0; ///< 0: this tile alone
    std::int64_t split = 0;  ///< of dq_acc; in a group each tile is a split of its own
};

/// How partial sums of dQ meet.
enum class DqSum : std::uint8_t {
    atomic, ///< all blocks add to one split
    own,    ///< a block adds to a split that is its own and was cleared
    alone,  ///< a tile is all that its split has
    direct, ///< a block has all the keys of its queries and stores dQ itself
};

/// The blocks of a launch and their jobs.
struct KeyJobs {
    std::int64_t batch = 0;
    std::int64_t heads = 0;   ///< that have dK and dV of their own: query heads, or KV heads (W-11)
    std::int64_t queries = 1; ///< query heads of each
    std::int64_t tiles = 0;   ///< jobs of a head
    bool group = false, masked = false;
    DqSum sum = DqSum::atomic;

    FMHA_DEVICE static constexpr KeyJobs of(const KernelConfig& cfg, const BwdArgs& args) {
        const Shape& shape = args.shape;
        const std::int64_t n0 = cfg.algorithm.tile.n0;
        const bool direct = cfg.algorithm.max_seq_len_q > 0, deterministic = cfg.signature.is_deterministic;
        KeyJobs jobs;
        jobs.batch = shape.batch;
        jobs.heads = args.reduce_dk_dv ? shape.nhead_k : shape.nhead_q;
        if (args.reduce_dk_dv) jobs.queries = shape.nhead_q / shape.nhead_k;
        jobs.group = shape.mode == Mode::group;
        jobs.masked = args.mask.type != MaskType::no_mask;
        // In a group seqlen_k is no length; it says how many blocks a head gets, and these share its tiles.
        jobs.tiles = (shape.seqlen_k + n0 - 1) / n0;
        if (direct || (jobs.group && jobs.tiles == 0)) jobs.tiles = 1;
        jobs.sum = direct           ? DqSum::direct
                   : !deterministic ? DqSum::atomic
                   : jobs.group     ? DqSum::alone
                                    : DqSum::own;
        return jobs;
    }

    /// As many as there are jobs: where blocks have several, those behind the last job have none.
    FMHA_DEVICE constexpr std::int64_t size() const { return batch * heads * tiles; }

    /// Jobs of a block.
    FMHA_DEVICE std::int64_t share(const BwdArgs& args) const {
        return sum == DqSum::own ? jobs_of_a_worker(args) : 1;
    }

    /// Job n, of a block whose first one is `first` and that has up to `share` of them.
    FMHA_DEVICE constexpr KeyJob operator()(std::int64_t n, std::int64_t first, std::int64_t share) const {
        const std::int64_t head = n / tiles, place = n % tiles;
        KeyJob job{head / heads, head % heads * queries, queries, place, 0, 0};
        if (group) job.stride = tiles;
        if (sum == DqSum::direct) job.stride = 1;
        if (sum != DqSum::own) return job;
        const std::int64_t run = first > head * tiles ? first - head * tiles : 0;
        job.split = (run + share - 1) / share;
        // Long and short tiles of a causal mask take turns.
        if (masked) job.tile = place % 2 == 0 ? place / 2 : tiles - 1 - place / 2;
        return job;
    }
};

} // namespace fmha::kernels
