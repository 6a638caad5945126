#include "dispatcher/plan/workspace.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/type_classes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fmha {

std::optional<std::string> misaligned(const void* workspace) {
    if (reinterpret_cast<std::uintptr_t>(workspace) % workspace_alignment == 0) return std::nullopt;
    return fmt::format("workspace {} is not aligned to {} bytes", workspace, workspace_alignment);
}

namespace {

std::int64_t product(std::initializer_list<std::int64_t> factors) {
    std::int64_t result = 1;
    for (const std::int64_t factor : factors)
        if (__builtin_mul_overflow(result, factor, &result))
            throw WorkspaceError("a workspace of these extents exceeds 64-bit sizes");
    return result;
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (__builtin_add_overflow(a, b, &result))
        throw WorkspaceError("a workspace of these extents exceeds 64-bit sizes");
    return result;
}

std::int64_t aligned(std::int64_t bytes) {
    return sum(bytes, workspace_alignment - 1) & ~(workspace_alignment - 1);
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return a / b + (a % b != 0 ? 1 : 0);
}

std::int64_t physical_q(const BwdWorkspaceInputs& in, std::size_t entry) {
    return in.physical_q.empty() ? in.seqlen_q : in.physical_q[entry];
}

std::int64_t physical_k(const BwdWorkspaceInputs& in, std::size_t entry) {
    return in.physical_k.empty() ? in.seqlen_k : in.physical_k[entry];
}

void check(const BwdWorkspaceInputs& in) {
    const auto entries = static_cast<std::size_t>(in.batch);
    if ((!in.physical_q.empty() && in.physical_q.size() != entries) ||
        (!in.physical_k.empty() && in.physical_k.size() != entries))
        throw WorkspaceError(fmt::format("physical lengths are given for {} and {} entries, the batch is {}",
                                         in.physical_q.size(), in.physical_k.size(), in.batch));
    if (in.deterministic && in.key_tile <= 0)
        throw WorkspaceError(
            fmt::format("a deterministic backward needs the key tile of its kernel, got {}", in.key_tile));
}

PersistentWork persistent_work(const BwdWorkspaceInputs& in) {
    return {.batch = in.batch,
            .heads = in.nhead_q / in.heads_of_job,
            .seqlen_k = in.seqlen_k,
            .key_tile = in.key_tile,
            .workers = in.compute_units};
}

/// Splits of one entry.
std::int64_t splits_of(const BwdWorkspaceInputs& in, std::size_t entry) {
    if (!in.deterministic) return 1;
    if (in.group) return ceil_div(physical_k(in, entry), in.key_tile);
    // Without the number of workers: no schedule has more splits than key tiles.
    if (in.compute_units <= 0) return ceil_div(in.seqlen_k, in.key_tile);
    return persistent_splits(persistent_work(in));
}

/// How the number of splits follows from how many blocks fit a device.
struct SplitRule {
    std::string_view name;
    std::int64_t at_once; ///< blocks that a compute unit has at once
    bool packs;           ///< the query heads of a KV head are rows of one block where each has one row
    std::int64_t sharing; ///< so many query heads share a block where each has a few rows
    double unsplit;       ///< no splits from this share of the blocks that fit on
    double near;          ///< the fewest splits whose efficiency is this share of the best
    std::int64_t
        key_tile; ///< of sm_90's kernel for the problem, as it has no more splits than tiles; 0 = no bound
};

/// S-9: of 2 to 8 query rows those of so many heads share a tile of 16 rows, a power of two that divides the heads of a KV head.
std::int64_t heads_of_few_rows(const Problem& problem) {
    const std::int64_t rows = problem.effective_max_seqlen_q(), group = problem.nhead_q / problem.nhead_k;
    const Signature& has = problem.signature;
    if (rows < 2 || has.bias != BiasType::no_bias || has.hdim_q <= 32 || has.hdim_q > 128 || has.hdim_v > 128)
        return 1;
    std::int64_t heads = 1;
    while (2 * heads * rows <= 16 && group % (2 * heads) == 0) heads *= 2;
    return heads;
}

/// S-9 where a kernel of sm_90 decodes, else S-6.
SplitRule split_rule(const Problem& problem, std::int64_t compute_units, int wave_size) {
    const Signature& s = problem.signature;
    const bool hopper = problem.arch.view() == "sm_90";
    const std::int64_t widest = std::max(s.hdim_q, s.hdim_v);
    if (!hopper || problem.effective_max_seqlen_q() > 16 || !is_half(s.data_type))
        return {.name = "S-6",
                .at_once = wave_size == 32 ? 4 : 2,
                .packs = s.bias == BiasType::no_bias && s.mask == MaskClass::none,
                .sharing = 1,
                .unsplit = 0.8,
                .near = 0.85,
                .key_tile = !hopper                                ? 0
                            : widest > 128 && is_half(s.data_type) ? 32
                                                                   : 64};
    const std::int64_t sharing = heads_of_few_rows(problem);
    const bool few =
        sharing == 1 && static_cast<double>(problem.batch) * static_cast<double>(problem.nhead_q) <=
                            static_cast<double>(compute_units);
    const std::int64_t most_keys = widest <= 32 ? 64 : few || widest <= 64 ? 128 : 64;
    return {.name = "S-9",
            .at_once = few && s.hdim_q > 64 ? 1 : 2,
            .packs = s.bias != BiasType::alibi && (s.mask == MaskClass::none || problem.window_left < 0),
            .sharing = sharing,
            .unsplit = 4.0,
            .near = 0.95,
            .key_tile = widest > 128 ? most_keys / 2 : most_keys};
}

/// The keys of the longest entry; 0 where the problem does not say.
std::int64_t longest_keys(const Problem& problem) {
    const bool batch =
        problem.signature.mode == Mode::batch; // elsewhere the scalar length says nothing (N-2)
    return batch ? std::max(problem.seqlen_k, problem.max_seqlen_k) : problem.max_seqlen_k;
}

} // namespace

std::int64_t persistent_jobs(const PersistentWork& work) {
    return ceil_div(product({work.batch, work.heads, ceil_div(work.seqlen_k, work.key_tile)}), work.workers);
}

std::int64_t persistent_splits(const PersistentWork& work) {
    const std::int64_t tiles = ceil_div(work.seqlen_k, work.key_tile);
    const std::int64_t per_worker = persistent_jobs(work);
    if (per_worker == 0) return 0;
    if (tiles % per_worker == 0) return tiles / per_worker;
    if (per_worker % tiles == 0) return 1;
    return 1 + ceil_div(tiles - 1, per_worker);
}

BwdWorkspaceSize bwd_workspace_size(const BwdWorkspaceInputs& in) {
    BwdWorkspaceSize size;
    if (in.direct_dq) return size;
    check(in);
    const bool per_entry = in.group && in.deterministic;
    size.nsplits_bytes = aligned(product({4, per_entry ? in.batch : 1}));
    size.start_bytes = per_entry ? aligned(product({8, sum(in.batch, 1)})) : 0;
    size.host_bytes = sum(size.nsplits_bytes, size.start_bytes);
    if (in.group && !in.physical_q.empty()) {
        for (std::size_t b = 0; b < static_cast<std::size_t>(in.batch); ++b)
            size.dq_acc_elements = sum(size.dq_acc_elements,
                                       product({in.nhead_q, splits_of(in, b), physical_q(in, b), in.hdim_q}));
    } else {
        size.dq_acc_elements = product({in.batch, in.nhead_q, splits_of(in, 0), in.seqlen_q, in.hdim_q});
    }
    size.bytes = sum(size.host_bytes, product({4, size.dq_acc_elements}));
    size.zero_dq_acc = !in.deterministic || !in.group || in.masked || in.keys_may_be_shorter;
    size.exact = in.group ? !in.physical_q.empty() && (!in.deterministic || !in.physical_k.empty())
                          : !in.deterministic || in.compute_units > 0;
    return size;
}

BwdWorkspaceLayout bwd_workspace_layout(const BwdWorkspaceInputs& in) {
    BwdWorkspaceLayout layout;
    layout.size = bwd_workspace_size(in);
    if (in.direct_dq) return layout;
    if (in.deterministic && !in.group && in.compute_units > 0) {
        const std::int64_t jobs = persistent_jobs(persistent_work(in));
        if (jobs > std::numeric_limits<std::int32_t>::max())
            throw WorkspaceError(fmt::format("{} key tiles for each of {} compute units do not fit 32 bits",
                                             jobs, in.compute_units));
        layout.jobs_per_worker = std::max(std::int32_t{1}, static_cast<std::int32_t>(jobs));
    }
    layout.start.push_back(0);
    for (std::size_t b = 0; b < static_cast<std::size_t>(in.batch); ++b) {
        const std::int64_t splits = splits_of(in, b);
        if (b == 0 || (in.group && in.deterministic))
            layout.nsplits.push_back(static_cast<std::int32_t>(splits));
        layout.start.push_back(layout.start.back() + in.nhead_q * splits * physical_q(in, b) * in.hdim_q);
    }
    return layout;
}

std::vector<std::byte> BwdWorkspaceLayout::host_image() const {
    std::vector<std::byte> image(static_cast<std::size_t>(size.host_bytes), std::byte{0});
    if (image.empty()) return image;
    std::memcpy(image.data(), nsplits.data(), nsplits.size() * sizeof(std::int32_t));
    if (size.start_bytes == 0)
        std::memcpy(image.data() + sizeof(std::int32_t), &jobs_per_worker, sizeof jobs_per_worker);
    if (size.start_bytes > 0)
        std::memcpy(image.data() + size.nsplits_bytes, start.data(), start.size() * sizeof(std::int64_t));
    return image;
}

void BwdWorkspaceLayout::prepare(std::span<std::byte> workspace) const {
    if (size.bytes == 0) return;
    if (workspace.size() < static_cast<std::size_t>(size.bytes))
        throw WorkspaceError(
            fmt::format("the workspace has {} bytes, {} are needed", workspace.size(), size.bytes));
    if (const auto fault = misaligned(workspace.data())) throw WorkspaceError(*fault);
    const std::vector<std::byte> image = host_image();
    std::ranges::copy(image, workspace.begin());
    if (size.zero_dq_acc)
        std::ranges::fill(
            workspace.subspan(image.size(), static_cast<std::size_t>(size.bytes) - image.size()),
            std::byte{0});
}

SplitKvWorkspace splitkv_workspace(std::int64_t query_rows, std::int64_t nhead_q, std::int64_t hdim_v,
                                   std::int64_t num_splits) {
    const std::int64_t rows = product({query_rows, nhead_q, num_splits});
    SplitKvWorkspace workspace;
    workspace.o_acc_offset = aligned(product({4, rows}));
    workspace.bytes = sum(workspace.o_acc_offset, product({4, rows, hdim_v}));
    return workspace;
}

SplitChoice split_choice(const Problem& problem, std::int64_t compute_units, int wave_size) {
    // No device comes near the bound; it keeps the product small for every value that a caller states.
    constexpr std::int64_t most_units = 1 << 24;
    const SplitRule rule = split_rule(problem, compute_units, wave_size);
    SplitChoice choice{
        .rule = rule.name, .at_once = rule.at_once, .unsplit = rule.unsplit, .near = rule.near};
    choice.compute_units = std::clamp<std::int64_t>(compute_units, 0, most_units);
    const std::int64_t units = choice.compute_units * rule.at_once;
    if (units <= 0) return choice;
    std::int64_t heads = problem.nhead_q, rows = problem.effective_max_seqlen_q();
    const std::int64_t group_size = problem.nhead_q / problem.nhead_k;
    // One query row shared by several heads: the heads of a group become rows of one block.
    if (rule.packs && rows == 1 && group_size > 1) {
        heads = problem.nhead_k;
        rows = group_size;
    }
    heads /= rule.sharing;
    const double work = static_cast<double>(problem.batch) * static_cast<double>(heads) *
                        static_cast<double>(ceil_div(rows, 64));
    choice.blocks = work;
    if (work >= rule.unsplit * static_cast<double>(units)) return choice;
    choice.most = work >= static_cast<double>(units) ? 2 : std::min(most_num_splits, units);
    const auto efficiency = [&](std::int64_t splits) {
        const double waves = work * static_cast<double>(splits) / static_cast<double>(units);
        return waves > 0.0 ? waves / std::ceil(waves) : 0.0;
    };
    for (std::int64_t splits = 1; splits <= choice.most; ++splits)
        choice.best = std::max(choice.best, efficiency(splits));
    while (choice.unbounded < choice.most && efficiency(choice.unbounded) < rule.near * choice.best)
        ++choice.unbounded;
    choice.num_splits = choice.unbounded;
    choice.fullness = efficiency(choice.unbounded);
    const std::int64_t keys = longest_keys(problem);
    const std::int64_t tiles = rule.key_tile > 0 && keys > 0 ? ceil_div(keys, rule.key_tile) : 0;
    if (tiles > 0 && tiles < choice.num_splits) choice.num_splits = choice.key_tiles = tiles;
    return choice;
}

} // namespace fmha
