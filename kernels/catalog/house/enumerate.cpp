#include "kernels/catalog/house/house.hpp"
#include "kernels/catalog/tables/first_seen.hpp"
#include "kernels/catalog/tables/reader.hpp"
#include "kernels/catalog/tables/walk.hpp"

#include <algorithm>

namespace fmha::catalog::house {

using namespace tables;

namespace {

/// The group file that an architecture file names for the working list.
struct Source {
    Reader reader;
    std::string group;
    const Json* families;
};

Source source_of(const arch::ArchSet& archs, const ArchName& target) {
    const arch::Part named = archs.at(target).rule_set("house");
    const auto path = named.value->at(0).get<std::string>();
    const std::size_t slash = path.rfind('/') + 1;
    return {Reader(archs, path.substr(0, slash), all_rules()), path.substr(slash, path.rfind('.') - slash),
            &archs.table(path).value->at("families")};
}

bool passes(std::span<const Rule* const> rules, const arch::Hardware& hardware,
            const KernelConfig& candidate) {
    return hardware_has(hardware, candidate) &&
           std::all_of(rules.begin(), rules.end(),
                       [&](const Rule* rule) { return rule->accepts(candidate); });
}

void enumerate_backward(const BackwardGroup& group, const arch::Hardware& hardware, const Request& request,
                        Sink sink) {
    const auto emit = [&](const KernelConfig& config) {
        const KernelConfig kernel = finished(config, group.name);
        if (request.families.has(kernel.signature.family) && keeps(request.profile, kernel)) sink(kernel);
    };
    Request walked = request;
    walked.masks = MaskVocabulary::simplified; // classes none and generic; generic serves causal problems
    const auto each_accepted = [&](const auto& visit) {
        walk_backward(group, walked, [&](const KernelConfig& trait, const BackwardTile&) {
            if (optdim_keeps(request, trait.signature.hdim_q) && passes(group.tables.rules, hardware, trait))
                visit(trait);
        });
    };
    FirstSeen dots;
    FirstSeen converts;
    std::vector<KernelConfig> last;
    each_accepted([&](const KernelConfig& trait) {
        const KernelConfig dot = dot_do_o_of(trait);
        if (dots.first(dot)) emit(dot);
        const KernelConfig convert = convert_dq_of(trait);
        if (trait.algorithm.max_seq_len_q == 0 && converts.first(convert)) last.push_back(convert);
    });
    each_accepted([&](const KernelConfig& trait) {
        // Query padding does not reach this kernel, and every trait exists with it.
        if (trait.algorithm.pad.s) emit(dq_dk_dv_of(trait));
    });
    for (const KernelConfig& convert : last) emit(convert);
}

} // namespace

std::vector<FamilyTables> forward_tables(const arch::ArchSet& archs, const ArchName& target,
                                         FamilySet families) {
    const Source source = source_of(archs, target);
    std::vector<FamilyTables> result;
    for (const KernelFamily family : forward_families)
        if (families.has(family) && source.families->contains(std::string(to_string(family))))
            result.push_back({family, {target, source.reader.forward(source.group, family)}});
    return result;
}

std::optional<BackwardGroup> backward_tables(const arch::ArchSet& archs, const ArchName& target) {
    const Source source = source_of(archs, target);
    if (!source.families->contains("bwd")) return std::nullopt;
    return BackwardGroup{target, source.reader.backward(source.group)};
}

void enumerate(const arch::ArchSet& archs, const Request& request, Sink sink) {
    std::vector<ArchName> done;
    for (const ArchName& target : request.targets) {
        if (std::find(done.begin(), done.end(), target) != done.end()) continue;
        done.push_back(target);
        const arch::Hardware& hardware = archs.at(target).hardware();
        for (const FamilyTables& tables : forward_tables(archs, target, request.families))
            walk_forward(tables.group, tables.family, request, /*extended=*/false,
                         [&](const KernelConfig& candidate, const Origin&) {
                             if (!optdim_keeps(request, candidate.signature.hdim_q) ||
                                 !passes(tables.group.tables.rules, hardware, candidate))
                                 return;
                             const KernelConfig kernel = finished(candidate, target);
                             if (!keeps(request.profile, kernel)) return;
                             sink(kernel);
                             if (has_global_load_twin(kernel)) sink(global_load_twin_of(kernel));
                         });
        if (!has_backward(request.families)) continue;
        if (const auto group = backward_tables(archs, target))
            enumerate_backward(*group, hardware, request, sink);
    }
}

const RuleSetOps& ops() {
    static constexpr RuleSetOps table{RuleSet::house, enumerate, append_name, why, rule_rows};
    return table;
}

} // namespace fmha::catalog::house
