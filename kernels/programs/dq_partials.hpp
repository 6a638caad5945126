#pragma once

#include "kernels/programs/matrix.hpp"

#include <cstdint>

/// The workspace of backward as its kernels see it. Nothing about it is in the arguments but its address.
namespace fmha::kernels {

/// Where the partial sums of dQ of one entry lie: [nhead_q, splits, physical queries, hdim_q], fp32.
struct DqPartials {
    float* data = nullptr;
    std::int64_t start = 0, splits = 0, rows = 0, channels = 0;

    FMHA_DEVICE static constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + 15) / 16 * 16; }

    FMHA_DEVICE static DqPartials of(const KernelConfig& cfg, const BwdArgs& args, std::int64_t b) {
        const Shape& shape = args.shape;
        const bool group = shape.mode == Mode::group;
        const bool per_entry = group && cfg.signature.is_deterministic;
        const std::int64_t counts = aligned(4 * (per_entry ? shape.batch : 1));
        const std::int64_t starts = per_entry ? aligned(8 * (shape.batch + 1)) : 0;
        auto* const base = static_cast<unsigned char*>(args.workspace);
        const std::int64_t first = group ? args.lengths.seqstart_q[b] : 0;
        DqPartials out;
        out.splits = 1; // atomic sums meet in one
        if (cfg.signature.is_deterministic)
            out.splits = reinterpret_cast<const std::int32_t*>(base)[per_entry ? b : 0];
        out.rows = group ? args.lengths.seqstart_q[b + 1] - first : shape.seqlen_q;
        out.channels = shape.hdim_q;
        out.data = reinterpret_cast<float*>(base + counts + starts);
        out.start = per_entry ? reinterpret_cast<const std::int64_t*>(base + counts)[b]
                    : group   ? shape.nhead_q * first * shape.hdim_q
                              : b * shape.nhead_q * out.splits * shape.seqlen_q * shape.hdim_q;
        return out;
    }

    /// One split of one head. `queries` and `channels_of` are the extents that the kernel believes in.
    FMHA_DEVICE Matrix matrix(std::int64_t h, std::int64_t split, Extent queries, Extent channels_of) const {
        TensorView view;
        view.data = data;
        view.row_stride = channels;
        return {view, start + (h * splits + split) * rows * channels, queries, channels_of, {}};
    }
};

/// The second number of a workspace with one entry of `nsplits`: jobs that a worker does one after another. It lies
/// in the room that X-1 leaves free behind the first.
FMHA_DEVICE std::int64_t jobs_of_a_worker(const BwdArgs& args) {
    const std::int32_t jobs = static_cast<const std::int32_t*>(args.workspace)[1];
    return jobs > 0 ? jobs : 1;
}

} // namespace fmha::kernels
