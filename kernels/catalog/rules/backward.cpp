#include "kernels/catalog/rules/backward.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace fmha::catalog::audit {

namespace {

HeadDims read_head(const TableNode& node) {
    const auto [q, v] = node.extents<2>();
    return {q, v};
}

Tile nine_numbers(const TableNode& node) {
    const auto t = node.extents<9>();
    return {t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8]};
}

std::vector<std::array<std::int8_t, 2>> read_pads(const TableNode& node) {
    std::vector<std::array<std::int8_t, 2>> pads;
    for (const TableNode& entry : node.items()) {
        const auto pair = entry.items();
        if (pair.size() != 2) entry.refuse("[dpad, dvpad]");
        std::array<std::int8_t, 2> values{};
        for (std::size_t i = 0; i < 2; ++i) {
            const auto value = pair[i].integer(0, 8);
            if (value != 0 && value != 1 && value != 8) pair[i].refuse("0, 1 or 8");
            values[i] = static_cast<std::int8_t>(value);
        }
        if (std::ranges::find(pads, values) != pads.end())
            entry.refuse("a combination that is not listed yet");
        pads.push_back(values);
    }
    return pads;
}

std::vector<DropoutVariant> read_dropouts(const TableNode& node) {
    std::vector<DropoutVariant> variants;
    for (const TableNode& entry : node.items()) {
        const auto variant = parse_enum<DropoutVariant>(entry.text());
        if (!variant) entry.refuse("one of " + allowed_names<DropoutVariant>());
        if (std::ranges::find(variants, *variant) != variants.end())
            entry.refuse("a dropout variant that is not listed yet");
        variants.push_back(*variant);
    }
    return variants;
}

std::vector<BackwardTables::MainTile> read_main_tiles(const TableNode& node) {
    std::vector<BackwardTables::MainTile> tiles;
    for (const TableNode& entry : node.items()) {
        entry.allow_keys({"head", "tile"});
        const HeadDims head = read_head(entry.at("head"));
        if (std::ranges::find(tiles, head, &BackwardTables::MainTile::head) != tiles.end())
            entry.refuse("one main tile for each head dimension");
        tiles.push_back({head, nine_numbers(entry.at("tile")), entry.source()});
    }
    std::ranges::sort(tiles, {}, &BackwardTables::MainTile::head);
    return tiles;
}

std::vector<BackwardTables::ExtraTile> read_extra_tiles(const TableNode& node) {
    std::vector<BackwardTables::ExtraTile> tiles;
    for (const TableNode& entry : node.items()) {
        entry.allow_keys({"head", "tile", "tag", "batch_only"});
        BackwardTables::ExtraTile extra{read_head(entry.at("head")), nine_numbers(entry.at("tile")),
                                        Tag(entry.at("tag").text()), entry.at("batch_only").boolean(),
                                        entry.source()};
        if (extra.tag.empty()) entry.at("tag").refuse("a tag that is not empty, because it names the kernel");
        const auto named = [](const BackwardTables::ExtraTile& t) {
            return std::tuple(t.head, t.tag, t.tile.m0, t.tile.n0, t.tile.k0, t.tile.n1, t.tile.k1,
                              t.tile.k0max);
        };
        if (std::ranges::find(tiles, named(extra), named) != tiles.end())
            entry.refuse(
                "a tile whose first six numbers and tag are not listed yet, because they name the kernel");
        tiles.push_back(std::move(extra));
    }
    return tiles;
}

/// Walks the records of one (head dimension, tile) over modes and features.
struct BackwardWalk {
    const Selection& selection;
    const CandidateSink& sink;
    RuleBits failed;

    template <class GroupRule>
    void modes_and_features(KernelConfig& config, const std::vector<Feature>& features, bool batch_only,
                            GroupRule&& group_rule) const {
        for (const Mode mode : modes) {
            const RuleBits of_mode =
                failed | outside(selection.allow.modes, static_cast<unsigned>(mode), AuditRule::allow_mode) |
                unless(mode == Mode::batch || !batch_only, AuditRule::batch_only_tile);
            if (of_mode != 0 && !selection.keep_rejected) continue;
            config.signature.mode = mode;
            for (const Feature& feature : features) {
                const RuleBits all = of_mode | feature.failed | group_rule(mode, feature.pad);
                if (all != 0 && !selection.keep_rejected) continue;
                apply(feature, config);
                sink(config, all);
            }
        }
    }
};

constexpr auto no_group_rule = [](Mode, const Padding&) { return RuleBits{0}; };

void set_head(KernelConfig& config, HeadDims head) {
    config.signature.hdim_q = head.q;
    config.signature.hdim_v = head.v;
}

} // namespace

void append_wave_warp(const TableNode& rows, BackwardTables& tables) {
    for (const TableNode& entry : rows.items()) {
        entry.allow_keys({"block", "trload", "wave", "warp_k1"});
        const auto w = entry.at("wave").extents<9>();
        tables.wave_warp.push_back({entry.at("block").extents<3>(),
                                    entry.at("trload").boolean(),
                                    {w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]},
                                    entry.at("warp_k1").extent()});
    }
}

BackwardTables read_backward_tables(const TableNode& table) {
    table.allow_keys({"main_tiles", "extra_tiles", "dot_do_o_head_dims", "convert_dq", "pads", "extra_pads",
                      "dropouts", "small_dropouts", "wave_warp"});
    BackwardTables tables;
    tables.main_tiles = read_main_tiles(table.at("main_tiles"));
    tables.extra_tiles = read_extra_tiles(table.at("extra_tiles"));
    tables.dot_do_o = table.at("dot_do_o_head_dims").distinct_integers();
    tables.dot_do_o_source = table.at("dot_do_o_head_dims").source();
    for (const TableNode& entry : table.at("convert_dq").items()) {
        entry.allow_keys({"head_dim", "tile_groups"});
        const std::int64_t hdim = entry.at("head_dim").extent();
        if (std::ranges::find(tables.convert_dq, hdim, &BackwardTables::ConvertDq::hdim) !=
            tables.convert_dq.end())
            entry.refuse("a head dimension that is not listed yet");
        tables.convert_dq.push_back(
            {hdim, static_cast<int>(entry.at("tile_groups").integer(1, 99)), entry.source()});
    }
    tables.main_axes = {read_pads(table.at("pads")), read_dropouts(table.at("dropouts"))};
    tables.extra_axes = {read_pads(table.at("extra_pads")), tables.main_axes.dropouts};
    tables.small_axes = {tables.extra_axes.pads, read_dropouts(table.at("small_dropouts"))};
    append_wave_warp(table.at("wave_warp"), tables);
    return tables;
}

void set_backward_waves(const BackwardTables& tables, Algorithm& algorithm) {
    const std::array block{algorithm.tile.m0, algorithm.tile.n0, algorithm.tile.k0};
    const auto same_size = [&](const auto& row) { return row.block == block; };
    auto row = std::ranges::find_if(tables.wave_warp, [&](const auto& candidate) {
        return same_size(candidate) && candidate.trload == (algorithm.tile_tag == Tag("trload"));
    });
    if (row == tables.wave_warp.end()) row = std::ranges::find_if(tables.wave_warp, same_size);
    std::int16_t warp_k1 = 16;
    if (row != tables.wave_warp.end()) {
        algorithm.wave = row->wave;
        warp_k1 = row->warp_k1;
    } else {
        const auto n = static_cast<std::int16_t>(std::clamp(algorithm.tile.n0 / 32, 1, 4));
        algorithm.wave = {1, n, 1, 4, 1, 1, 1, n, 1};
    }
    algorithm.warp = {16, 16, 32, 16, 16, warp_k1, 16, 16, 16};
}

std::string backward_source(const BackwardTables& tables, const KernelConfig& config) {
    const HeadDims head{config.signature.hdim_q, config.signature.hdim_v};
    const Algorithm& algorithm = config.algorithm;
    switch (config.signature.family) {
    case KernelFamily::bwd_dot_do_o:
        return tables.dot_do_o_source;
    case KernelFamily::bwd_convert_dq:
        for (const auto& convert : tables.convert_dq)
            if (convert.hdim == head.q) return convert.source;
        break;
    default:
        for (const auto& main : tables.main_tiles)
            if (algorithm.tile_tag.empty() && main.head == head && main.tile == algorithm.tile)
                return main.source;
        for (const auto& extra : tables.extra_tiles)
            if (extra.tag == algorithm.tile_tag && extra.head == head && extra.tile == algorithm.tile)
                return extra.source;
    }
    return "the ranges of the sweep, which exhaustive mode uses for backward tiles";
}

void enumerate_backward(const BackwardTables& tables, const Selection& selection, bool allow_on_extra,
                        const KernelConfig& base, RuleBits failed, const CandidateSink& sink) {
    const BackwardWalk walk{selection, sink, failed};
    Selection without_lists = selection;
    without_lists.allow.masks.reset();
    without_lists.allow.biases.reset();
    const DataType type = base.signature.data_type;

    KernelConfig config = base;
    config.signature.family = KernelFamily::bwd_dot_do_o;
    config.algorithm.tile.m0 = 64;
    for (const std::int64_t hdim : tables.dot_do_o) {
        set_head(config, {hdim, hdim});
        walk.modes_and_features(config, dot_do_o_features(), false, group_needs_query);
    }

    config = base;
    config.signature.family = KernelFamily::bwd_dq_dk_dv;
    auto features = backward_features(tables.main_axes);
    judge(features, type, selection);
    for (const auto& main : tables.main_tiles) {
        set_head(config, main.head);
        config.algorithm.tile = main.tile;
        set_backward_waves(tables, config.algorithm);
        walk.modes_and_features(config, features, false, no_group_rule);
    }
    for (const auto& extra : tables.extra_tiles) {
        features = backward_features(extra.tag == Tag("small") ? tables.small_axes : tables.extra_axes);
        judge(features, type, allow_on_extra ? selection : without_lists);
        set_head(config, extra.head);
        config.algorithm.tile = extra.tile;
        config.algorithm.tile_tag = extra.tag;
        config.algorithm.use_trload = extra.tag == Tag("trload");
        set_backward_waves(tables, config.algorithm);
        walk.modes_and_features(config, features, extra.batch_only, no_group_rule);
    }

    config = base;
    config.signature.family = KernelFamily::bwd_convert_dq;
    config.algorithm.tile.m0 = 64;
    for (const auto& convert : tables.convert_dq) {
        set_head(config, {convert.hdim, convert.hdim});
        // Tile groups are innermost, so that each feature gives one kernel per group in turn.
        const CandidateSink each_group = [&](const KernelConfig& kernel, RuleBits of_kernel) {
            KernelConfig grouped = kernel;
            for (int group = 0; group < convert.tile_groups; ++group) {
                grouped.algorithm.tile_tag = group == 0 ? Tag() : Tag(fmt::format("g{}", group));
                sink(grouped, of_kernel);
            }
        };
        BackwardWalk{selection, each_group, failed}.modes_and_features(
            config, convert_dq_features(convert.hdim), false, group_needs_query);
    }
}

} // namespace fmha::catalog::audit
