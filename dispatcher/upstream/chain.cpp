#include "dispatcher/upstream/chain.hpp"

#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/upstream/conditions.hpp"

#include <algorithm>
#include <limits>

namespace fmha::upstream {

namespace {

bool is_companion(KernelFamily family) {
    return family != api_traits_of(family).main;
}

bool is_v3(const KernelConfig& config) {
    return config.algorithm.pipeline == Pipeline::qr_async_trload_v3;
}

/// Tiles that hold the whole query length come first, smallest first.
std::int64_t query_limit_rank(const KernelConfig& config) {
    const std::int64_t limit = config.algorithm.max_seq_len_q;
    return limit == 0 ? std::numeric_limits<std::int64_t>::max() : limit;
}

} // namespace

Chain::Chain(const arch::ArchSet& archs, std::string_view arch) {
    catalog::Request request;
    request.rules = catalog::RuleSet::ck;
    request.targets = {ArchName(arch)};
    catalog::enumerate(archs, request, [this](const KernelConfig& config) { add(config); });
    for (auto& [key, buckets] : chains_)
        if (key.family == KernelFamily::bwd_dq_dk_dv)
            for (Bucket& bucket : buckets)
                std::stable_sort(bucket.kernels.begin(), bucket.kernels.end(),
                                 [](const KernelConfig& a, const KernelConfig& b) {
                                     return query_limit_rank(a) < query_limit_rank(b);
                                 });
}

void Chain::add(const KernelConfig& config) {
    const Signature& s = config.signature;
    if (is_companion(s.family)) {
        companions_.push_back(config);
        return;
    }
    auto& buckets = chains_[{s.family, s.data_type, is_v3(config)}];
    auto bucket = std::find_if(buckets.begin(), buckets.end(), [&](const Bucket& one) {
        return one.hdim_q == s.hdim_q && one.hdim_v == s.hdim_v;
    });
    if (bucket == buckets.end()) bucket = buckets.insert(buckets.end(), Bucket{s.hdim_q, s.hdim_v, 0, {}});
    bucket->largest_m0 = std::max<std::int32_t>(bucket->largest_m0, config.algorithm.tile.m0);
    bucket->kernels.push_back(config);
}

template <class Visit>
bool Chain::each_in_chain(KernelFamily family, bool v3, const Problem& problem, Visit&& visit) const {
    if (!problem.data_type) return true;
    const auto chain = chains_.find({family, *problem.data_type, v3});
    if (chain == chains_.end()) return true;
    for (const Bucket& bucket : chain->second) {
        if (problem.hdim_q > bucket.hdim_q || problem.hdim_v > bucket.hdim_v) continue;
        for (const KernelConfig& kernel : bucket.kernels)
            if ((family != KernelFamily::fwd || tile_is_preferred(kernel, bucket.largest_m0, problem)) &&
                accepts(kernel, problem) && !visit(kernel))
                return false;
        // The generated test is an else-if: a problem never moves on to a later bucket.
        break;
    }
    return true;
}

template <class Visit>
void Chain::each_accepting(const Problem& problem, Visit&& visit) const {
    const KernelFamily family = traits_of(problem.family).main;
    const bool has_v3 = family == KernelFamily::fwd && problem.max_seqlen_q > 1;
    if (has_v3 && !each_in_chain(family, true, problem, visit)) return;
    each_in_chain(family, false, problem, visit);
}

std::vector<KernelConfig> Chain::accepting(const Problem& problem) const {
    std::vector<KernelConfig> kernels;
    each_accepting(problem, [&](const KernelConfig& kernel) {
        kernels.push_back(kernel);
        return true;
    });
    return kernels;
}

std::optional<KernelConfig> Chain::companion(const Companion& wanted, const KernelConfig& main) const {
    const auto fits = [&](const KernelConfig& one) {
        const Signature& s = one.signature;
        const Padding& pad = one.algorithm.pad;
        return s.family == wanted.family && s.data_type == main.signature.data_type &&
               s.mode == main.signature.mode && s.hdim_q == main.signature.hdim_q && pad.s == wanted.pad_s &&
               (pad.d != 0) == wanted.pad_d && (pad.dv != 0) == wanted.pad_dv &&
               s.has_lse == wanted.has_lse.value_or(s.has_lse) &&
               s.is_deterministic == wanted.is_deterministic.value_or(s.is_deterministic) &&
               s.do_fp8_static_quant == main.signature.do_fp8_static_quant;
    };
    const auto found = std::find_if(companions_.begin(), companions_.end(), fits);
    return found != companions_.end() ? std::optional(*found) : std::nullopt;
}

Selection Chain::select(const Problem& problem) const {
    Selection selection;
    each_accepting(problem, [&](const KernelConfig& kernel) {
        selection.main = kernel;
        return false;
    });
    if (!selection.main) return selection;
    const KernelConfig& main = *selection.main;
    const KernelFamily family = main.signature.family;
    const Padding& pad = main.algorithm.pad;
    if (family == KernelFamily::fwd_splitkv)
        selection.combine = companion({.family = KernelFamily::fwd_splitkv_combine,
                                       .pad_s = pad.s,
                                       .pad_dv = pad.dv != 0,
                                       .has_lse = problem.has_lse},
                                      main);
    if (family == KernelFamily::bwd_dq_dk_dv) {
        // Traits without row padding come first wherever they exist; small tiles have none.
        const bool small_tile = main.algorithm.max_seq_len_q > 0 && main.algorithm.max_seq_len_q < 64;
        const bool pad_rows = problem.is_group_mode || small_tile || problem.seqlen_q % 64 != 0;
        selection.dot_do_o =
            companion({.family = KernelFamily::bwd_dot_do_o, .pad_s = pad_rows, .pad_dv = pad.dv != 0}, main);
        if (main.algorithm.max_seq_len_q == 0)
            selection.convert_dq = companion({.family = KernelFamily::bwd_convert_dq,
                                              .pad_s = pad_rows,
                                              .pad_d = pad.d != 0,
                                              .is_deterministic = main.signature.is_deterministic},
                                             main);
    }
    return selection;
}

const Chain& Chains::of(std::string_view arch) {
    auto found = chains_.find(arch);
    if (found == chains_.end()) found = chains_.emplace(std::string(arch), Chain(archs_, arch)).first;
    return found->second;
}

Json selection_to_json(const Problem& problem, const Selection& selection) {
    const auto name = [](const std::optional<KernelConfig>& config) -> Json {
        if (!config) return nullptr;
        return catalog::name_of(catalog::RuleSet::ck, *config);
    };
    if (!selection.main) return nullptr;
    Json stages;
    switch (problem.family) {
    case ApiFamily::fwd_splitkv:
        stages["main"] = name(selection.main);
        stages["combine"] = name(selection.combine);
        return stages;
    case ApiFamily::bwd:
        stages["dot_do_o"] = name(selection.dot_do_o);
        stages["dq_dk_dv"] = name(selection.main);
        stages["convert_dq"] = name(selection.convert_dq);
        return stages;
    default:
        return name(selection.main);
    }
}

} // namespace fmha::upstream
