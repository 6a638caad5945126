#pragma once

#include "dispatcher/types/problem.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Sizes and offsets of the memory that a plan needs besides its tensors (semantics 20.4 and S-3). The
/// reference and every target take sizes and offsets from here and nothing else.
namespace fmha {

/// Bytes to which workspaces and their segments are aligned.
inline constexpr std::int64_t workspace_alignment = 16;

/// A sentence when memory cannot be a workspace because it is not aligned.
std::optional<std::string> misaligned(const void* workspace);

/// The sizes that decide the backward workspace. `compute_units` is W of X-2; with 0 the size is an upper bound.
struct BwdWorkspaceInputs {
    bool group = false, deterministic = false;
    bool direct_dq = false; ///< the main kernel writes dQ itself: no workspace at all
    bool masked = false;
    std::int64_t batch = 0, nhead_q = 0, hdim_q = 0;
    /// Query heads whose key tiles are one job: those of a KV head when dK and dV are reduced (W-11).
    std::int64_t heads_of_job = 1;
    std::int64_t seqlen_q = 0, seqlen_k = 0; ///< batch mode: allocated lengths
    /// Batch mode with shorter logical lengths, or group mode with padding or empty entries.
    bool keys_may_be_shorter = false;
    std::int64_t key_tile = 0; ///< kN0 of the main kernel
    std::int64_t compute_units = 0;
    /// Group mode: physical lengths of the entries (batch values each). Empty = unknown, then the scalars
    /// above stand for every entry, and the size is an upper bound where no entry is longer than they are.
    std::span<const std::int64_t> physical_q, physical_k;
};

/// Sizes of X-1, in bytes unless said otherwise.
struct BwdWorkspaceSize {
    std::int64_t nsplits_bytes = 0; ///< int32 nsplits[N], at offset 0
    std::int64_t start_bytes = 0;   ///< int64 start[B+1], after it; 0 = absent
    std::int64_t host_bytes = 0;    ///< offset of dq_acc; written on the host, copied by prepare
    std::int64_t dq_acc_elements = 0;
    std::int64_t bytes = 0;
    bool zero_dq_acc = false; ///< prepare must clear dq_acc (X-5)
    bool exact = true;        ///< false = lengths or compute units were unknown: an upper bound
    friend bool operator==(const BwdWorkspaceSize&, const BwdWorkspaceSize&) = default;
};

/// Throws WorkspaceError when the size exceeds 64 bits. Allocates nothing.
BwdWorkspaceSize bwd_workspace_size(const BwdWorkspaceInputs& inputs);

/// The host part: the values that `prepare_workspace` copies to the front of the workspace, and the offset of
/// every entry's region in dq_acc, which batch mode and non-deterministic mode do not store.
struct BwdWorkspaceLayout {
    BwdWorkspaceSize size;
    std::vector<std::int32_t> nsplits; ///< N values (X-1)
    std::vector<std::int64_t> start;   ///< batch + 1 offsets in elements of dq_acc
    /// Jobs that a block of a deterministic batch kernel does one after another (q of X-2), otherwise 1.
    std::int32_t jobs_per_worker = 1;
    /// The bytes of the host part exactly as they lie in memory. With one nsplits, `jobs_per_worker` follows it, in bytes
    /// that X-1 leaves free.
    std::vector<std::byte> host_image() const;
    friend bool operator==(const BwdWorkspaceLayout&, const BwdWorkspaceLayout&) = default;
    /// Makes memory of the host ready for the kernels: writes the host part, and clears dq_acc where X-5 asks for it. Throws
    /// WorkspaceError when it is too small or not aligned to 16 bytes.
    void prepare(std::span<std::byte> workspace) const;
};

BwdWorkspaceLayout bwd_workspace_layout(const BwdWorkspaceInputs& inputs);

/// What X-2 distributes in deterministic batch mode: the key tiles of every entry and head, among `workers` compute units.
struct PersistentWork {
    std::int64_t batch = 0;
    std::int64_t heads = 0; ///< that have jobs of their own: Hq, or Hk when dK and dV are reduced
    std::int64_t seqlen_k = 0;
    std::int64_t key_tile = 0; ///< keys of a tile
    std::int64_t workers = 0;
};

/// Number of splits of X-2; 0 when there are no keys.
std::int64_t persistent_splits(const PersistentWork& work);

/// q of X-2, the jobs of each worker; 0 when there are no keys.
std::int64_t persistent_jobs(const PersistentWork& work);

/// lse_acc and o_acc of split-KV (S-3): offsets and total in bytes. `query_rows` is batch * seqlen_q, or the
/// total physical query length in group mode.
struct SplitKvWorkspace {
    std::int64_t lse_acc_offset = 0, o_acc_offset = 0, bytes = 0;
};
SplitKvWorkspace splitkv_workspace(std::int64_t query_rows, std::int64_t nhead_q, std::int64_t hdim_v,
                                   std::int64_t num_splits);

/// A number of splits and what it follows from (S-6, on sm_90 S-9).
struct SplitChoice {
    std::string_view rule = "S-6";
    std::int64_t num_splits = 1;
    std::int64_t compute_units = 0; ///< 0 = unknown, and nothing is split
    std::int64_t at_once = 0;       ///< blocks that each of them has at once
    double blocks = 0.0;            ///< of a launch with one split
    double unsplit = 0.0;           ///< from this share of the blocks that fit on, nothing is split
    std::int64_t most = 1;          ///< as many splits were compared; 1 = none
    double near = 0.0;              ///< the fewest of them fill this share of the best one's rounds
    double fullness = 0.0, best = 0.0;
    std::int64_t unbounded = 1; ///< those fewest
    std::int64_t key_tiles = 0; ///< fewer than that, so that there are no more splits; 0 = no bound
};

/// Choice of the number of splits when the caller leaves it to the plan.
SplitChoice split_choice(const Problem& problem, std::int64_t compute_units, int wave_size);
inline std::int64_t choose_num_splits(const Problem& problem, std::int64_t compute_units, int wave_size) {
    return split_choice(problem, compute_units, wave_size).num_splits;
}

} // namespace fmha
