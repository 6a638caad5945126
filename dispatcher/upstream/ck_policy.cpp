#include "dispatcher/upstream/ck_policy.hpp"

#include "dispatcher/plan/plan.hpp"

#include <limits>

namespace fmha::upstream {

namespace {

/// Key tile of every batch prefill kernel upstream; smaller pages are read with 64-bit addresses when the
/// pool is too large for 32-bit offsets.
constexpr std::int64_t prefill_key_tile = 128;

std::optional<KernelConfig> stage_of(const Selection& selection, KernelFamily family) {
    switch (family) {
    case KernelFamily::fwd_splitkv_combine:
        return selection.combine;
    case KernelFamily::bwd_dot_do_o:
        return selection.dot_do_o;
    case KernelFamily::bwd_convert_dq:
        return selection.convert_dq;
    default:
        return selection.main;
    }
}

/// Chains hold architecture groups; a registry holds the architecture itself.
KernelConfig on_arch(KernelConfig config, const ArchName& arch) {
    config.arch = arch;
    return config;
}

} // namespace

Problem from_problem(const fmha::Problem& own) {
    const Signature& s = own.signature;
    Problem p;
    p.family = own.api_family;
    p.arch = own.arch;
    p.data_type = s.data_type;
    p.batch = own.batch;
    p.nhead_q = own.nhead_q;
    p.is_group_mode = s.mode == Mode::group;
    p.seqlen_q = p.is_group_mode ? own.effective_max_seqlen_q() : own.seqlen_q;
    p.seqlen_k = p.is_group_mode ? own.effective_max_seqlen_k() : own.seqlen_k;
    p.max_seqlen_q = own.effective_max_seqlen_q();
    p.hdim_q = s.hdim_q;
    p.hdim_v = s.hdim_v;
    p.num_cus = own.compute_units;
    p.is_v_rowmajor = s.v_layout == VLayout::row;
    p.mask_type = own.mask_type;
    p.bias_type = s.bias;
    p.qscale_type = s.qscale;
    p.rope_type = s.rope;
    p.has_logits_soft_cap = s.has_logits_soft_cap;
    p.has_lse = s.has_lse;
    p.has_dropout = s.has_dropout;
    p.has_sink = s.has_sink;
    p.skip_min_seqlen_q = s.skip_min_seqlen_q;
    p.do_fp8_static_quant = s.do_fp8_static_quant;
    p.use_pagedkv = s.use_paged_kv;
    p.has_dbias = s.has_dbias;
    p.is_store_randval = s.is_store_randval;
    p.is_deterministic = s.is_deterministic;
    p.cu_seqlen_k_ptr = own.presence.cu_seqlen_k;
    p.seqlen_k_ptr = own.presence.seqlen_k;
    p.block_table_ptr = own.presence.block_table;
    p.kv_memory_layout = s.kv_layout;
    p.kv_lookup_table = s.kv_lookup;
    p.page_size = s.page_size;
    const bool wide =
        own.kv_pool_bytes > std::numeric_limits<std::int32_t>::max() && s.page_size < prefill_key_tile;
    p.kv_load_mode = wide ? LoadMode::gload : LoadMode::bload;
    return p;
}

CkPolicy::CkPolicy(const arch::ArchSet& archs, std::span<const ArchName> names) {
    for (const ArchName& name : names) chains_.emplace(name, Chain(archs, name));
}

std::span<const std::string_view> CkPolicy::criteria() const {
    static constexpr std::array<std::string_view, 1> names{"position in the chain"};
    return names;
}

const KernelEntry* CkPolicy::select(const Snapshot& kernels, const StageQuery& query) const {
    const auto chain = chains_.find(query.arch);
    if (chain == chains_.end()) return nullptr;
    const auto config = stage_of(chain->second.select(from_problem(*query.problem)), query.family);
    return config ? kernels.find(on_arch(*config, query.arch)) : nullptr;
}

std::vector<RankedKernel> CkPolicy::rank(const Snapshot& kernels, const StageQuery& query) const {
    std::vector<RankedKernel> ranked;
    const auto add = [&](const KernelEntry* entry) {
        if (entry != nullptr) ranked.push_back({entry, {static_cast<std::int64_t>(ranked.size())}});
    };
    const auto chain = chains_.find(query.arch);
    if (chain == chains_.end()) return ranked;
    // The chain decides the main kernel alone; the other stages follow from it and have no competitor.
    if (query.family != main_stage(query.problem->api_family))
        add(select(kernels, query));
    else
        for (const KernelConfig& config : chain->second.accepting(from_problem(*query.problem)))
            add(kernels.find(on_arch(config, query.arch)));
    return ranked;
}

} // namespace fmha::upstream
