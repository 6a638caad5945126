#include "dispatcher/declarations/kernel_set.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace fmha {

namespace {

template <NamedEnum E>
E token_value(std::string_view what, std::string_view token) {
    if (const auto value = parse_enum<E>(token)) return *value;
    throw DeclarationError(
        fmt::format("{} \"{}\" is not known; allowed: {}", what, token, allowed_names<E>()));
}

std::int16_t entry(std::string_view what, std::int64_t n) {
    if (n < 0 || n > std::numeric_limits<std::int16_t>::max())
        throw DeclarationError(fmt::format("{} {} is outside 0 to 32767", what, n));
    return static_cast<std::int16_t>(n);
}

void fill(GemmTriples& triples, std::string_view what, std::initializer_list<int> numbers) {
    if (numbers.size() < 3 || numbers.size() > 9)
        throw DeclarationError(fmt::format("{} takes 3 to 9 numbers, got {}", what, numbers.size()));
    auto next = numbers.begin();
    each_field(triples, [&](std::string_view, std::int16_t& member) {
        if (next != numbers.end()) member = entry(what, *next++);
    });
}

/// What a further number is added to; a tile that was `any` is none any more.
TileChoice tile_so_far(const Axis<TileChoice>& axis) {
    return axis.is_any() ? TileChoice{} : axis.value();
}

} // namespace

SignatureDecl& SignatureDecl::family(KernelFamily value) {
    return fixed.family = value, *this;
}
SignatureDecl& SignatureDecl::family(std::string_view t) {
    return family(token_value<KernelFamily>("family", t));
}
SignatureDecl& SignatureDecl::dtype(Axis<DataType> value) {
    return data_type_axis = value, *this;
}
SignatureDecl& SignatureDecl::dtype(std::string_view t) {
    return dtype(token_value<DataType>("dtype", t));
}
SignatureDecl& SignatureDecl::mode(Axis<Mode> value) {
    return mode_axis = value, *this;
}
SignatureDecl& SignatureDecl::mode(std::string_view t) {
    return mode(token_value<Mode>("mode", t));
}
SignatureDecl& SignatureDecl::vlayout(VLayout value) {
    return fixed.v_layout = value, *this;
}
SignatureDecl& SignatureDecl::vlayout(std::string_view t) {
    return vlayout(token_value<VLayout>("vlayout", t));
}
SignatureDecl& SignatureDecl::hdim(std::int64_t both) {
    return hdim(both, both);
}
SignatureDecl& SignatureDecl::hdim(std::int64_t q, std::int64_t v) {
    return hdim_axis = HeadDims{q, v}, *this;
}
SignatureDecl& SignatureDecl::hdim(AnyValue any) {
    return hdim_axis = any, *this;
}
SignatureDecl& SignatureDecl::mask(Axis<MaskClass> value) {
    return mask_axis = value, *this;
}
SignatureDecl& SignatureDecl::mask(std::string_view t) {
    return mask(token_value<MaskClass>("mask", t));
}
SignatureDecl& SignatureDecl::bias(Axis<BiasType> value) {
    return bias_axis = value, *this;
}
SignatureDecl& SignatureDecl::bias(std::string_view t) {
    return bias(token_value<BiasType>("bias", t));
}
SignatureDecl& SignatureDecl::lse(Axis<bool> on) {
    return lse_axis = on, *this;
}
SignatureDecl& SignatureDecl::dropout(Axis<bool> on) {
    return dropout_axis = on, *this;
}
SignatureDecl& SignatureDecl::qscale(QScale value) {
    return fixed.qscale = value, *this;
}
SignatureDecl& SignatureDecl::qscale(std::string_view t) {
    return qscale(token_value<QScale>("qscale", t));
}
SignatureDecl& SignatureDecl::rope(Rope value) {
    return fixed.rope = value, *this;
}
SignatureDecl& SignatureDecl::rope(std::string_view t) {
    return rope(token_value<Rope>("rope", t));
}
SignatureDecl& SignatureDecl::logits(bool on) {
    return fixed.has_logits_soft_cap = on, *this;
}
SignatureDecl& SignatureDecl::paged_kv(bool on) {
    return fixed.use_paged_kv = on, *this;
}
SignatureDecl& SignatureDecl::fp8_static_quant(bool on) {
    return fixed.do_fp8_static_quant = on, *this;
}
SignatureDecl& SignatureDecl::skip(bool on) {
    return fixed.skip_min_seqlen_q = on, *this;
}
SignatureDecl& SignatureDecl::sink(bool on) {
    return fixed.has_sink = on, *this;
}
SignatureDecl& SignatureDecl::sink_logit(bool on) {
    return fixed.has_sink_logit = on, *this;
}
SignatureDecl& SignatureDecl::dbias(bool on) {
    return fixed.has_dbias = on, *this;
}
SignatureDecl& SignatureDecl::store_randval(bool on) {
    return fixed.is_store_randval = on, *this;
}
SignatureDecl& SignatureDecl::deterministic(bool on) {
    return fixed.is_deterministic = on, *this;
}
SignatureDecl& SignatureDecl::kv_cache(KvLayout layout, KvLookup lookup, std::int32_t page_size) {
    fixed.kv_layout = layout;
    fixed.kv_lookup = lookup;
    fixed.page_size = page_size;
    return *this;
}

AlgorithmDecl::AlgorithmDecl() {
    fixed.block_per_cu = 1;
    fixed.pad = {true, true, 1, 1};
}

AlgorithmDecl& AlgorithmDecl::tile(std::initializer_list<int> numbers) {
    if (numbers.size() != 6 && numbers.size() != 9)
        throw DeclarationError(
            fmt::format("tile takes 6 numbers, or 9 for bwd_dq_dk_dv, got {}", numbers.size()));
    TileChoice choice = tile_so_far(tile_axis);
    choice.tile = {};
    auto next = numbers.begin();
    each_field(choice.tile, [&](std::string_view, std::int16_t& member) {
        if (next != numbers.end()) member = entry("tile", *next++);
    });
    tile_axis = choice;
    return *this;
}
AlgorithmDecl& AlgorithmDecl::tile(AnyValue any) {
    return tile_axis = any, *this;
}
AlgorithmDecl& AlgorithmDecl::wave(std::initializer_list<int> numbers) {
    TileChoice choice = tile_so_far(tile_axis);
    fill(choice.wave, "wave", numbers);
    return tile_axis = choice, *this;
}
AlgorithmDecl& AlgorithmDecl::warp(std::initializer_list<int> numbers) {
    TileChoice choice = tile_so_far(tile_axis);
    fill(choice.warp, "warp", numbers);
    return tile_axis = choice, *this;
}
AlgorithmDecl& AlgorithmDecl::set_tile(std::int16_t Tile::*member, int n) {
    TileChoice choice = tile_so_far(tile_axis);
    choice.tile.*member = entry("tile", n);
    return tile_axis = choice, *this;
}
AlgorithmDecl& AlgorithmDecl::set_wave(std::int16_t GemmTriples::*member, int n) {
    TileChoice choice = tile_so_far(tile_axis);
    choice.wave.*member = entry("wave", n);
    return tile_axis = choice, *this;
}
AlgorithmDecl& AlgorithmDecl::set_warp(std::int16_t GemmTriples::*member, int n) {
    TileChoice choice = tile_so_far(tile_axis);
    choice.warp.*member = entry("warp", n);
    return tile_axis = choice, *this;
}
AlgorithmDecl& AlgorithmDecl::pipeline(Axis<Pipeline> value) {
    return pipeline_axis = value, *this;
}
AlgorithmDecl& AlgorithmDecl::pipeline(std::string_view t) {
    return pipeline(token_value<Pipeline>("pipeline", t));
}
AlgorithmDecl& AlgorithmDecl::padding(bool s, bool sk, int d, int dv) {
    for (const int pad : {d, dv})
        if (pad != 0 && pad != 1 && pad != 8)
            throw DeclarationError(fmt::format("head dimension padding {} is none of 0, 1 and 8", pad));
    fixed.pad = {s, sk, static_cast<std::int8_t>(d), static_cast<std::int8_t>(dv)};
    return *this;
}
AlgorithmDecl& AlgorithmDecl::trload(bool on) {
    return fixed.use_trload = on, *this;
}
AlgorithmDecl& AlgorithmDecl::alignments(int q, int v) {
    fixed.hdim_q_alignment = q;
    fixed.hdim_v_alignment = v;
    return *this;
}
AlgorithmDecl& AlgorithmDecl::block_per_cu(int n) {
    return fixed.block_per_cu = n, *this;
}
AlgorithmDecl& AlgorithmDecl::num_wave_groups(int n) {
    return fixed.num_wave_groups = n, *this;
}
AlgorithmDecl& AlgorithmDecl::max_splits_log2(int n) {
    return fixed.max_splits_log2 = n, *this;
}
AlgorithmDecl& AlgorithmDecl::max_seq_len_q(std::int64_t n) {
    return fixed.max_seq_len_q = n, *this;
}
AlgorithmDecl& AlgorithmDecl::selection_rank(int n) {
    return fixed.selection_rank = n, *this;
}
AlgorithmDecl& AlgorithmDecl::constraint(std::string_view name) {
    return fixed.constraint = name, *this;
}
AlgorithmDecl& AlgorithmDecl::load_mode(LoadMode mode) {
    return fixed.load_mode = mode, *this;
}
AlgorithmDecl& AlgorithmDecl::dropout_variant(DropoutVariant variant) {
    return fixed.dropout_variant = variant, *this;
}

bool Declaration::has_wildcard() const {
    return arch.is_any() || signature.data_type_axis.is_any() || signature.mode_axis.is_any() ||
           signature.hdim_axis.is_any() || signature.mask_axis.is_any() || signature.bias_axis.is_any() ||
           signature.lse_axis.is_any() || signature.dropout_axis.is_any() || algorithm.tile_axis.is_any() ||
           algorithm.pipeline_axis.is_any();
}

KernelConfig Declaration::config() const {
    KernelConfig kernel;
    const auto set = [](auto& target, const auto& axis) {
        if (!axis.is_any()) target = axis.value();
    };
    set(kernel.arch, arch);
    kernel.signature = signature.fixed;
    set(kernel.signature.data_type, signature.data_type_axis);
    set(kernel.signature.mode, signature.mode_axis);
    set(kernel.signature.mask, signature.mask_axis);
    set(kernel.signature.bias, signature.bias_axis);
    set(kernel.signature.has_lse, signature.lse_axis);
    set(kernel.signature.has_dropout, signature.dropout_axis);
    if (!signature.hdim_axis.is_any()) {
        kernel.signature.hdim_q = signature.hdim_axis.value().q;
        kernel.signature.hdim_v = signature.hdim_axis.value().v;
    }
    kernel.algorithm = algorithm.fixed;
    set(kernel.algorithm.pipeline, algorithm.pipeline_axis);
    if (!algorithm.tile_axis.is_any()) {
        kernel.algorithm.tile = algorithm.tile_axis.value().tile;
        kernel.algorithm.wave = algorithm.tile_axis.value().wave;
        kernel.algorithm.warp = algorithm.tile_axis.value().warp;
    }
    return kernel;
}

namespace {

/// Completes the fields that a declaration leaves at 0 (section 5.2), but for wildcards.
void auto_fill(Declaration& declaration) {
    const bool forward_tile = traits_of(declaration.signature.fixed.family).products != MatrixProducts::five;
    if (declaration.signature.hdim_axis.is_any()) return;
    const HeadDims dims = declaration.signature.hdim_axis.value();
    Algorithm& algorithm = declaration.algorithm.fixed;
    if (forward_tile && !declaration.algorithm.tile_axis.is_any()) {
        TileChoice choice = declaration.algorithm.tile_axis.value();
        if (choice.tile.n1 == 0) choice.tile.n1 = entry("hdim_v", dims.v);
        if (choice.tile.k1 == 0) choice.tile.k1 = choice.tile.k0;
        if (choice.tile.k0max == 0) choice.tile.k0max = entry("hdim_q", dims.q);
        declaration.algorithm.tile_axis = choice;
        if (algorithm.hdim_q_alignment == 0) algorithm.hdim_q_alignment = choice.tile.k0max;
    }
    if (algorithm.hdim_q_alignment == 0) algorithm.hdim_q_alignment = entry("hdim_q", dims.q);
    if (algorithm.hdim_v_alignment == 0) algorithm.hdim_v_alignment = entry("hdim_v", dims.v);
}

} // namespace

KernelSet& KernelSet::add(SignatureDecl signature, AlgorithmDecl algorithm, Axis<ArchName> arch) {
    if (!arch.is_any() && arch.value().empty())
        throw DeclarationError(
            fmt::format("set {}: a declaration names no architecture; write one, or ANY", name_));
    Declaration declaration{signature, algorithm, arch};
    auto_fill(declaration);
    declarations_.push_back(declaration);
    return *this;
}

KernelSet& KernelSet::add(SignatureDecl signature, AlgorithmDecl algorithm, const char* arch) {
    return add(signature, algorithm, Axis<ArchName>(ArchName(arch)));
}

KernelSet& KernelSet::merge(const KernelSet& other) {
    const std::vector<Declaration> theirs = other.declarations_; // a copy: `other` may be this set
    declarations_.insert(declarations_.end(), theirs.begin(), theirs.end());
    return *this;
}

KernelSet& KernelSet::tag(std::string_view tag) {
    tags_.emplace_back(tag);
    return *this;
}

bool KernelSet::needs_expansion() const {
    return std::any_of(declarations_.begin(), declarations_.end(),
                       [](const auto& one) { return one.has_wildcard(); });
}

std::string KernelSet::to_string() const {
    std::string text;
    for (const Declaration& declaration : declarations_) {
        text += fmt::format("{}: {}", name_, identifier(declaration.config()));
        const auto any = [&](const auto& axis, std::string_view field) {
            if (axis.is_any()) text += fmt::format(";{}=ANY", field);
        };
        any(declaration.arch, "arch");
        any(declaration.signature.data_type_axis, "data_type");
        any(declaration.signature.mode_axis, "mode");
        any(declaration.signature.mask_axis, "mask");
        any(declaration.signature.bias_axis, "bias");
        any(declaration.signature.lse_axis, "lse");
        any(declaration.signature.dropout_axis, "dropout");
        any(declaration.signature.hdim_axis, "hdim");
        any(declaration.algorithm.tile_axis, "tile");
        any(declaration.algorithm.pipeline_axis, "pipeline");
        text += '\n';
    }
    return text;
}

namespace {

struct Factory {
    std::string name;
    KernelSet (*make)();
};

/// The only static object of the dispatcher (dispatcher-api 5.3).
std::vector<Factory>& factories() {
    static std::vector<Factory> list;
    return list;
}

} // namespace

detail::DeclaredSet::DeclaredSet(const char* name, KernelSet (*make)()) {
    factories().push_back({name, make});
}

std::vector<KernelSet> declared_kernel_sets() {
    std::vector<KernelSet> sets;
    for (const Factory& factory : factories()) {
        KernelSet fresh = [&] {
            try {
                return factory.make();
            } catch (const DeclarationError& error) {
                throw DeclarationError(fmt::format("set {}: {}", factory.name, error.what()));
            }
        }();
        const auto known = std::find_if(sets.begin(), sets.end(),
                                        [&](const auto& one) { return one.name() == fresh.name(); });
        if (known == sets.end())
            sets.push_back(std::move(fresh));
        else if (*known != fresh)
            throw DeclarationError(
                fmt::format("kernel set {} is declared twice with different content", fresh.name()));
    }
    std::sort(sets.begin(), sets.end(), [](const auto& a, const auto& b) { return a.name() < b.name(); });
    return sets;
}

KernelSet declared_kernel_set(std::string_view name) {
    std::string known;
    for (KernelSet& set : declared_kernel_sets()) {
        if (set.name() == name) return set;
        known += (known.empty() ? "" : ", ") + set.name();
    }
    throw DeclarationError(
        fmt::format("there is no kernel set {}; declared: {}", name, known.empty() ? "none" : known));
}

} // namespace fmha
