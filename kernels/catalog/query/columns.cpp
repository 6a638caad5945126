#include "kernels/catalog/query/columns.hpp"

#include "kernels/catalog/rules/sweep_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fmha::catalog {
namespace {

std::string_view upstream_dropout_variant(const KernelConfig& config) {
    if (config.signature.family != KernelFamily::bwd_dq_dk_dv) return "";
    return audit::sweep_dropout_variant_name(config);
}

Cell joined(const GemmTriples& t, std::string& scratch) {
    scratch = fmt::format("{}x{}x{}x{}x{}x{}x{}x{}x{}", t.m0, t.n0, t.k0, t.m1, t.n1, t.k1, t.m2, t.n2, t.k2);
    return scratch;
}

Cell joined(const Tile& t, std::string& scratch) {
    scratch = fmt::format("{}x{}x{}x{}x{}x{}", t.m0, t.n0, t.k0, t.n1, t.k1, t.k0max);
    if (t.b6 > 0) scratch += fmt::format("x{}x{}x{}", t.b6, t.b7, t.b8);
    return scratch;
}

/// A column computed from the signature or the algorithm alone.
template <class Read>
Column column(std::string name, Read read) {
    return {std::move(name),
            [read](const KernelConfig& config, std::string&) -> Cell { return read(config); }};
}

std::vector<Column> upstream_columns() {
    using C = KernelConfig;
    const auto flag = [](bool value) { return Cell(value); };
    std::vector<Column> list;
    list.push_back(column("gfx_arch", [](const C& c) { return Cell(c.arch.view()); }));
    list.push_back(column("vlayout", [](const C& c) {
        return Cell(std::string_view(c.signature.v_layout == VLayout::row ? "r" : "c"));
    }));
    list.push_back(column("mask", [](const C& c) { return Cell(audit::sweep_mask_name(c)); }));
    list.push_back(column("bias", [](const C& c) { return Cell(audit::sweep_bias_name(c.signature.bias)); }));
    list.push_back(column("lse", [flag](const C& c) { return flag(c.signature.has_lse); }));
    list.push_back(column("dropout", [flag](const C& c) { return flag(c.signature.has_dropout); }));
    list.push_back(column("logits", [flag](const C& c) { return flag(c.signature.has_logits_soft_cap); }));
    list.push_back(column("sink", [flag](const C& c) { return flag(c.signature.has_sink); }));
    list.push_back(column("paged_kv", [flag](const C& c) { return flag(c.signature.use_paged_kv); }));
    list.push_back(
        column("deterministic", [flag](const C& c) { return flag(c.signature.is_deterministic); }));
    list.push_back(column("dbias", [flag](const C& c) { return flag(c.signature.has_dbias); }));
    list.push_back(column("qscale", [](const C& c) {
        return c.signature.qscale == QScale::no_scale ? Cell(std::string_view("no"))
                                                      : Cell(to_string(c.signature.qscale));
    }));
    list.push_back(column("rope", [](const C& c) { return Cell(to_string(c.signature.rope)); }));
    list.push_back(column("dropout_variant", [](const C& c) { return Cell(upstream_dropout_variant(c)); }));
    list.push_back(column("kv_memory_layout", [](const C& c) {
        const bool set = c.signature.kv_layout != KvLayout::unset;
        return Cell(set ? to_string(c.signature.kv_layout) : std::string_view("vectorized"));
    }));
    list.push_back(column("kv_lookup_table", [](const C& c) {
        return Cell(std::string_view(c.signature.kv_lookup == KvLookup::vllm_2d ? "vllm" : "sglang"));
    }));
    list.push_back(column("tile_bwd6", [](const C& c) { return Cell(std::int64_t{c.algorithm.tile.b6}); }));
    list.push_back(column("tile_bwd7", [](const C& c) { return Cell(std::int64_t{c.algorithm.tile.b7}); }));
    list.push_back(column("tile_bwd8", [](const C& c) { return Cell(std::int64_t{c.algorithm.tile.b8}); }));
    list.push_back({"tile", [](const C& c, std::string& s) { return joined(c.algorithm.tile, s); }, "x"});
    list.push_back({"wave", [](const C& c, std::string& s) { return joined(c.algorithm.wave, s); }, "x"});
    list.push_back({"warp", [](const C& c, std::string& s) { return joined(c.algorithm.warp, s); }, "x"});
    list.push_back({"padding",
                    [](const C& c, std::string& s) -> Cell {
                        const Padding& pad = c.algorithm.pad;
                        s = fmt::format("{:d}{:d}{:d}{:d}", pad.s, pad.sk, pad.d, pad.dv);
                        return s;
                    },
                    ""});
    return list;
}

template <class M>
Cell leaf_cell(const M& leaf) {
    if constexpr (NamedEnum<M>)
        return to_string(leaf);
    else if constexpr (std::same_as<M, bool>)
        return leaf;
    else if constexpr (std::integral<M>)
        return static_cast<std::int64_t>(leaf);
    else
        return std::string_view(leaf);
}

/// `signature.mask` -> `mask_class`, `algorithm.tile.m0` -> `tile_m0`: the path without its first part. The
/// four whose names upstream uses with other values get the names that the problem builder has for them.
std::string own_name(std::string path) {
    for (const std::string_view prefix : {"signature.", "algorithm."})
        if (path.starts_with(prefix)) path.erase(0, prefix.size());
    std::replace(path.begin(), path.end(), '.', '_');
    if (path == "mask") return "mask_class";
    if (path == "bias" || path == "qscale" || path == "rope") return path + "_type";
    if (path == "dropout_variant") return "dropout_shape";
    return path;
}

std::vector<Column> own_columns() {
    std::vector<Column> list;
    const KernelConfig sample{};
    const auto* base = reinterpret_cast<const std::byte*>(&sample);
    each_leaf(sample, [&](const std::string& path, const auto& leaf) {
        using M = std::remove_cvref_t<decltype(leaf)>;
        // The field list names members, not pointers to members; their place in the record is the same in
        // each.
        const std::ptrdiff_t offset = reinterpret_cast<const std::byte*>(&leaf) - base;
        list.push_back({own_name(path), [offset](const KernelConfig& config, std::string&) {
                            const auto* at = reinterpret_cast<const std::byte*>(&config) + offset;
                            return leaf_cell(*reinterpret_cast<const M*>(at));
                        }});
    });
    return list;
}

} // namespace

std::span<const Column> columns() {
    static const std::vector<Column> all = [] {
        auto list = upstream_columns();
        auto own = own_columns();
        list.insert(list.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
        return list;
    }();
    return all;
}

} // namespace fmha::catalog
