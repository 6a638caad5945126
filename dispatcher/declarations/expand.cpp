#include "dispatcher/declarations/expand.hpp"

#include "dispatcher/selection/match.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/rule.hpp"
#include "kernels/catalog/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace fmha {

namespace {

/// The kernels of rule set house for one architecture and family.
class HouseValues {
  public:
    HouseValues(const arch::ArchSet& archs, const ArchName& arch, KernelFamily family) {
        catalog::Request request;
        request.rules = catalog::RuleSet::house;
        request.targets = {arch};
        request.families = catalog::FamilySet::of(family);
        kernels_ = catalog::list(archs, request);
    }

    template <class T, class Value, class Keep>
    std::vector<T> values(Value&& value, Keep&& keep) const {
        std::set<T> found;
        for (const KernelConfig& kernel : kernels_)
            if (keep(kernel)) found.insert(value(kernel));
        return {found.begin(), found.end()};
    }

  private:
    std::vector<KernelConfig> kernels_;
};

/// The values of one axis: its own, or those of `from_house` when it is ANY.
template <class T, class FromHouse>
std::vector<T> values_of(const Axis<T>& axis, FromHouse&& from_house) {
    if (!axis.is_any()) return {axis.value()};
    return from_house();
}

constexpr auto always = [](const KernelConfig&) { return true; };

/// Visits every combination of the declaration's wildcards on one architecture, field order, ascending.
template <class Visit>
void each_combination(const Declaration& declaration, const HouseValues& house, KernelConfig kernel,
                      Visit&& visit) {
    const SignatureDecl& sd = declaration.signature;
    const AlgorithmDecl& ad = declaration.algorithm;
    Signature& s = kernel.signature;
    const auto bools = [] { return std::vector<bool>{false, true}; };
    const auto types = values_of(sd.data_type_axis, [&] {
        return house.values<DataType>([](const auto& k) { return k.signature.data_type; }, always);
    });
    const auto modes = values_of(sd.mode_axis, [&] {
        return house.values<Mode>([](const auto& k) { return k.signature.mode; }, always);
    });
    const auto masks = values_of(sd.mask_axis, [&] {
        return house.values<MaskClass>([](const auto& k) { return k.signature.mask; }, always);
    });
    const auto biases = values_of(sd.bias_axis, [&] {
        return house.values<BiasType>([](const auto& k) { return k.signature.bias; }, always);
    });
    for (const DataType type : types) {
        s.data_type = type;
        const auto same_type = [type](const KernelConfig& k) { return k.signature.data_type == type; };
        const auto pipelines = values_of(ad.pipeline_axis, [&] {
            return house.values<Pipeline>([](const auto& k) { return k.algorithm.pipeline; }, same_type);
        });
        const auto dims = values_of(sd.hdim_axis, [&] {
            return house.values<HeadDims>(
                [](const auto& k) {
                    return HeadDims{k.signature.hdim_q, k.signature.hdim_v};
                },
                same_type);
        });
        for (const HeadDims& dim : dims) {
            s.hdim_q = dim.q;
            s.hdim_v = dim.v;
            const auto tiles = values_of(ad.tile_axis, [&] {
                return house.values<TileChoice>(
                    [](const auto& k) {
                        return TileChoice{k.algorithm.tile, k.algorithm.wave, k.algorithm.warp};
                    },
                    [&](const KernelConfig& k) {
                        return same_type(k) && k.signature.hdim_q == dim.q && k.signature.hdim_v == dim.v;
                    });
            });
            for (const Mode mode : modes)
                for (const MaskClass mask : masks)
                    for (const BiasType bias : biases)
                        for (const bool lse : values_of(sd.lse_axis, bools))
                            for (const bool dropout : values_of(sd.dropout_axis, bools))
                                for (const TileChoice& tile : tiles)
                                    for (const Pipeline pipeline : pipelines) {
                                        s.mode = mode;
                                        s.mask = mask;
                                        s.bias = bias;
                                        s.has_lse = lse;
                                        s.has_dropout = dropout;
                                        kernel.algorithm.tile = tile.tile;
                                        kernel.algorithm.wave = tile.wave;
                                        kernel.algorithm.warp = tile.warp;
                                        kernel.algorithm.pipeline = pipeline;
                                        visit(kernel);
                                    }
        }
    }
}

/// Head dimensions that came from a wildcard complete the alignments as written ones do.
KernelConfig completed(KernelConfig kernel) {
    Algorithm& a = kernel.algorithm;
    if (a.hdim_q_alignment == 0) a.hdim_q_alignment = static_cast<std::int32_t>(kernel.signature.hdim_q);
    if (a.hdim_v_alignment == 0) a.hdim_v_alignment = static_cast<std::int32_t>(kernel.signature.hdim_v);
    return kernel;
}

std::vector<ArchName> archs_of(const Declaration& declaration, const arch::ArchSet& archs) {
    if (!declaration.arch.is_any()) return {declaration.arch.value()};
    std::vector<ArchName> names;
    for (const arch::ArchTables& tables : archs.all()) names.push_back(tables.name());
    std::ranges::sort(names);
    return names;
}

/// The first rule that breaks a kernel, which is not valid.
RuleFinding broken_rule(const KernelConfig& kernel, const HardwareLimits& limits) {
    const auto findings = validate(kernel, limits);
    return *std::ranges::find(findings, Severity::error, &RuleFinding::severity);
}

/// The kernels of the declarations of a set, one declaration after the other.
class Expander {
  public:
    Expander(const KernelSet& set, const arch::ArchSet& archs) : set_(set), archs_(archs) {}

    void add(const Declaration& declaration) {
        facts_of(declaration.config()); // an unknown constraint is an error of the declaration
        valid_ = 0;
        for (const ArchName& name : archs_of(declaration, archs_)) {
            const HardwareLimits& limits = tables(name).hardware().limits;
            KernelConfig partial = declaration.config();
            partial.arch = name;
            if (declaration.has_wildcard())
                add_combinations(declaration, partial, limits);
            else
                add_exact(partial, limits);
        }
        if (valid_ == 0)
            throw DeclarationError(
                fmt::format("set {}: a declaration with wildcards leaves no valid kernel: {}", set_.name(),
                            identifier(declaration.config())));
    }
    Expansion take() { return std::move(expansion_); }

  private:
    const arch::ArchTables& tables(const ArchName& name) const {
        if (const arch::ArchTables* found = archs_.find(name)) return *found;
        std::vector<std::string> all;
        for (const arch::ArchTables& one : archs_.all()) all.push_back(one.name().str());
        throw DeclarationError(fmt::format("set {}: arch {} is not known; there are: {}", set_.name(),
                                           name.view(), fmt::join(all, ", ")));
    }
    void add_exact(const KernelConfig& kernel, const HardwareLimits& limits) {
        if (!is_valid(kernel, limits)) {
            const RuleFinding rule = broken_rule(kernel, limits);
            throw DeclarationError(fmt::format("set {}: {} breaks {}: {}", set_.name(), identifier(kernel),
                                               rule.id, rule.message));
        }
        add(kernel);
    }
    void add_combinations(const Declaration& declaration, const KernelConfig& partial,
                          const HardwareLimits& limits) {
        const HouseValues house(archs_, partial.arch, declaration.signature.fixed.family);
        each_combination(declaration, house, partial, [&](const KernelConfig& combination) {
            const KernelConfig kernel = completed(combination);
            ++expansion_.combinations;
            if (is_valid(kernel, limits))
                add(kernel);
            else
                ++expansion_.skipped[std::string(broken_rule(kernel, limits).id)];
        });
    }
    void add(const KernelConfig& kernel) {
        ++valid_;
        if (known_.insert(kernel).second) expansion_.kernels.push_back(kernel);
    }

    const KernelSet& set_;
    const arch::ArchSet& archs_;
    Expansion expansion_;
    std::set<KernelConfig> known_;
    std::size_t valid_ = 0; ///< kernels of the present declaration, known or new
};

} // namespace

Expansion expand(const KernelSet& set, const arch::ArchSet& archs) {
    Expander expander(set, archs);
    for (const Declaration& declaration : set.declarations()) expander.add(declaration);
    return expander.take();
}

} // namespace fmha
