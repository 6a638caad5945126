#include "parity/witness.hpp"

#include "dispatcher/selection/match.hpp"
#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/strict_json.hpp"
#include "kernels/catalog/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace fmha::parity {
namespace {

/// Features of which a problem may ask for less than the kernel offers. A problem can hold the kernel's own signature, so each
/// entry only takes something away; `false` = the kernel has nothing of the kind.
using Reduction = bool (*)(Signature& signature);

bool without_sink_logit(Signature& s) {
    return std::exchange(s.has_sink_logit, false);
}
bool without_sink(Signature& s) {
    return std::exchange(s.has_sink, false);
}
bool without_skip(Signature& s) {
    return std::exchange(s.skip_min_seqlen_q, false);
}
bool without_randval(Signature& s) {
    return std::exchange(s.is_store_randval, false);
}
bool causal_only(Signature& s) {
    return std::exchange(s.mask, s.mask == MaskClass::generic ? MaskClass::causal : s.mask) ==
           MaskClass::generic;
}

constexpr std::array<Reduction, 5> reductions{without_sink_logit, without_sink, without_skip, without_randval,
                                              causal_only};

/// The kernel's signature, then every distinct way to ask for less.
std::vector<Signature> demands(const Signature& full) {
    std::vector<Signature> list;
    for (unsigned bits = 0; bits < 1U << reductions.size(); ++bits) {
        Signature s = full;
        bool applies = true;
        for (std::size_t i = 0; i < reductions.size(); ++i)
            if ((bits >> i & 1U) != 0) applies = reductions[i](s) && applies;
        if (applies) list.push_back(s);
    }
    return list;
}

/// Everything of a problem but its sizes.
Problem base_problem(const KernelConfig& kernel, const Signature& signature) {
    const ApiTraits& api = api_traits_of(signature.family);
    Problem p;
    p.api_family = api.api;
    p.arch = kernel.arch;
    p.signature = signature;
    // Tensors of no stated alignment suit kernels that ask for none, and no kernel that copies in units.
    if (api.tensor_maps) p.tensor_alignment = facts_of(kernel).tensor_alignment;
    if (signature.mask == MaskClass::causal) p.mask_type = MaskType::top_left;
    if (signature.mask == MaskClass::generic) {
        p.mask_type = MaskType::window_generic;
        p.window_left = p.window_right = 16;
    }
    if (signature.has_sink) p.sink_size = 4;
    if (signature.skip_min_seqlen_q) p.min_seqlen_q = 1;
    if (signature.mode == Mode::group) p.presence.seqstart_q = p.presence.seqstart_k = true;
    if (signature.rope != Rope::none) {
        p.rotary_dim = 16;
        p.presence.rotary = true;
    }
    const bool is_paged = signature.use_paged_kv || api.always_paged;
    if (is_paged) {
        p.presence.block_table = true;
        if (!api.lists_pages && signature.page_size <= 1) p.signature.page_size = 128;
    }
    if (is_paged || api.stores_keys) p.presence.seqlen_k = true;
    return p;
}

std::vector<std::int64_t> lengths_round(std::int64_t tile, std::int64_t limit,
                                        const WitnessLattice& lattice) {
    std::set<std::int64_t> lengths(lattice.lengths.begin(), lattice.lengths.end());
    for (const auto offset : lattice.length_offsets)
        for (const std::int64_t base : {tile, 4 * tile, limit})
            if (base > 0 && base + offset > 0) lengths.insert(base + offset);
    return {lengths.begin(), lengths.end()};
}

/// Legal head dimensions are multiples of 8 (H-2); other members of the lattice pose no problem.
std::vector<std::int64_t> dims_round(std::int64_t hdim, const WitnessLattice& lattice) {
    std::vector<std::int64_t> dims;
    for (const auto offset : lattice.hdim_offsets)
        if (hdim + offset > 0 && (hdim + offset) % 8 == 0) dims.push_back(hdim + offset);
    return dims;
}

/// Values that only some families look at; the others take the first one.
std::vector<std::int64_t> where(bool matters, const std::vector<std::int64_t>& values,
                                std::int64_t otherwise) {
    return matters ? values : std::vector<std::int64_t>{otherwise};
}

bool each_size(Problem p, const KernelConfig& kernel, const WitnessLattice& lattice,
               const std::function<bool(const Problem&)>& visit) {
    const ApiTraits& api = api_traits_of(kernel.signature.family);
    const auto q_lengths = lengths_round(kernel.algorithm.tile.m0, kernel.algorithm.max_seq_len_q, lattice);
    const auto k_lengths = lengths_round(kernel.algorithm.tile.n0, 0, lattice);
    const Constraint constraint = facts_of(kernel).constraint;
    const bool even =
        constraint == Constraint::even_head_groups || constraint == Constraint::rows_of_even_groups;
    const std::int64_t group = even ? 2 : 1;
    for (const auto hdim_q : dims_round(kernel.signature.hdim_q, lattice))
        for (const auto hdim_v : dims_round(kernel.signature.hdim_v, lattice))
            for (const auto splits : where(api.splits_keys, lattice.num_splits, 1))
                for (const auto pool : where(api.lists_pages, lattice.kv_pool_bytes, 0))
                    for (const auto& [batch, heads] : lattice.batch_heads)
                        for (const auto seqlen_q : q_lengths)
                            for (const auto seqlen_k : k_lengths) {
                                p.signature.hdim_q = hdim_q;
                                p.signature.hdim_v = hdim_v;
                                p.num_splits = splits;
                                p.kv_pool_bytes = pool;
                                p.batch = batch;
                                p.nhead_q = heads;
                                p.nhead_k = heads / group;
                                p.seqlen_q = p.max_seqlen_q = seqlen_q;
                                p.seqlen_k = p.max_seqlen_k = seqlen_k;
                                if (!visit(p)) return false;
                            }
    return true;
}

} // namespace

WitnessLattice read_lattice(const std::filesystem::path& file) {
    const std::string where = file.string();
    const Json document = parse_strict_json(system::read_file(file), where);
    allow_keys(document, where,
               {"hdim_offsets", "length_offsets", "lengths", "batch_heads", "num_splits", "kv_pool_bytes"});
    const auto integers = [&](std::string_view key) {
        return value_at<std::vector<std::int64_t>>(document, where, key);
    };
    return {.hdim_offsets = integers("hdim_offsets"),
            .length_offsets = integers("length_offsets"),
            .lengths = integers("lengths"),
            .batch_heads =
                value_at<std::vector<std::pair<std::int64_t, std::int64_t>>>(document, where, "batch_heads"),
            .num_splits = integers("num_splits"),
            .kv_pool_bytes = integers("kv_pool_bytes")};
}

void each_witness(const KernelConfig& kernel, const WitnessLattice& lattice,
                  const std::function<bool(const Problem&)>& visit) {
    for (const Signature& signature : demands(kernel.signature)) {
        Problem p = base_problem(kernel, signature);
        if (!each_size(p, kernel, lattice, visit)) return;
        // The same with lengths that only the device knows.
        if (signature.mode == Mode::group || p.presence.seqlen_k) continue;
        p.presence.cu_seqlen_q = p.presence.cu_seqlen_k = true;
        if (!each_size(p, kernel, lattice, visit)) return;
    }
}

} // namespace fmha::parity
