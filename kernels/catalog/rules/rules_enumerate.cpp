#include "kernels/catalog/rules/rules_enumerate.hpp"

#include <algorithm>

namespace fmha::catalog::audit {

namespace {

bool is_fp8ish(std::string_view type) {
    return type.find("fp8") != std::string_view::npos;
}

/// Waves and warp tile of a table tile. bf8 falls under the wide types, as upstream has it here.
void set_waves(DataType type, SweepVariant variant, std::int64_t hdim_v, Algorithm& algorithm) {
    const std::int16_t m0 = algorithm.tile.m0;
    std::int16_t warp = 16, warp_k = 16, waves = 1;
    if (is_fp8ish(to_string(type))) {
        warp = warp_k = 32;
        // Upstream passes hdim_v where its rule reads hdim_q.
        waves = static_cast<std::int16_t>(std::min<std::int64_t>(m0 / 32, hdim_v / 32));
    } else if (variant == SweepVariant::fwd) {
        warp = m0 == 32 || m0 > 64 ? 32 : 16;
        waves = static_cast<std::int16_t>(m0 / warp);
    } else {
        waves = static_cast<std::int16_t>(m0 / 16);
    }
    algorithm.wave = {waves, 1, 1, waves, 1, 1, 1, 1, 1};
    algorithm.warp = {warp, warp, warp_k, warp, warp, warp_k, 16, 16, 16};
}

class RulesWalk {
  public:
    RulesWalk(const RulesTables& tables, const Selection& selection, const CandidateSink& sink)
        : tables_(tables), selection_(selection), sink_(sink) {}

    void run() const {
        each_type([this](DataType type, RuleBits failed) {
            switch (selection_.variant) {
            case SweepVariant::fwd:
                forward(type, failed);
                break;
            case SweepVariant::splitkv:
                splitkv(type, failed);
                break;
            case SweepVariant::pagedkv:
                pagedkv(type, failed);
                break;
            case SweepVariant::appendkv:
                appendkv(type, failed);
                break;
            case SweepVariant::batch_prefill:
                prefill(type, failed);
                break;
            case SweepVariant::bwd:
                if (is_half(type))
                    enumerate_backward(tables_.backward, selection_, /*allow_on_extra=*/false,
                                       record(KernelFamily::bwd_dot_do_o, type), failed, sink_);
                break;
            }
        });
        if (selection_.variant == SweepVariant::splitkv)
            each_type([this](DataType type, RuleBits failed) { combine(type, failed); });
    }

  private:
    /// Data types in name order. The flavour's own list counts unless the selection brings one.
    template <class Use>
    void each_type(Use&& use) const {
        const auto& own = tables_.default_data_types[static_cast<std::size_t>(selection_.variant)];
        const auto& allowed = selection_.allow.data_types ? selection_.allow.data_types : own;
        for (const std::string& name : tables_.data_types) {
            const auto type = parse_enum<DataType>(name);
            const RuleBits failed = unless(allows(allowed, name), AuditRule::allow_data_type);
            if (type && !dropped(failed)) use(*type, failed);
        }
    }

    bool dropped(RuleBits failed) const { return failed != 0 && !selection_.keep_rejected; }

    void emit(const KernelConfig& config, RuleBits failed) const {
        if (!dropped(failed)) sink_(config, failed);
    }

    KernelConfig record(KernelFamily family, DataType type) const {
        KernelConfig config = default_record(tables_.arch, 1);
        config.signature.family = family;
        config.signature.data_type = type;
        return config;
    }

    RuleBits mode_failures(Mode mode) const {
        return outside(selection_.allow.modes, static_cast<unsigned>(mode), AuditRule::allow_mode);
    }

    RuleBits set_head(KernelConfig& config, HeadDims head) const {
        config.signature.hdim_q = head.q;
        config.signature.hdim_v = head.v;
        const auto& kept = selection_.allow.head_dims;
        return unless(kept.empty() || std::ranges::find(kept, std::array{head.q, head.v}) != kept.end(),
                      AuditRule::head_dim_restriction);
    }

    void set_tile(KernelConfig& config, const Tile& tile) const {
        config.algorithm.tile = tile;
        set_waves(config.signature.data_type, selection_.variant, config.signature.hdim_v, config.algorithm);
    }

    void forward(DataType type, RuleBits failed) const {
        const auto* heads = forward_tiles(tables_, to_string(type));
        if (heads == nullptr) return;
        KernelConfig config = record(KernelFamily::fwd, type);
        for (const HeadTiles& entry : *heads) {
            const RuleBits of_head = failed | set_head(config, entry.head);
            auto features = forward_features(type, entry.head.q, entry.head.v,
                                             {tables_.has_trload, selection_.receipts.extends_qr()});
            judge(features, type, selection_);
            for (const Mode mode : modes) {
                config.signature.mode = mode;
                for (const Feature& feature : features) {
                    const RuleBits of_feature =
                        of_head | mode_failures(mode) | feature.failed | group_needs_both(mode, feature.pad);
                    if (dropped(of_feature)) continue;
                    apply(feature, config);
                    for (const ListedTile& listed : entry.tiles) {
                        set_tile(config, listed.tile);
                        emit(config, of_feature | forward_tile_failures(tables_, type, entry.head,
                                                                        feature.pipeline, listed.tile));
                    }
                }
            }
        }
    }

    /// tile × mode × feature over a table of the other variants.
    void by_tile(const TileTable& table, KernelConfig config, std::vector<Feature> features,
                 RuleBits failed) const {
        const DataType type = config.signature.data_type;
        const auto heads = table.find(to_string(type));
        if (heads == table.end()) return;
        judge(features, type, selection_);
        for (const HeadTiles& entry : heads->second) {
            const RuleBits of_head = failed | set_head(config, entry.head);
            for (const ListedTile& listed : entry.tiles) {
                set_tile(config, listed.tile);
                for (const Mode mode : modes) {
                    config.signature.mode = mode;
                    for (const Feature& feature : features) {
                        apply(feature, config);
                        emit(config, of_head | mode_failures(mode) | feature.failed |
                                         group_needs_both(mode, feature.pad));
                    }
                }
            }
        }
    }

    void splitkv(DataType type, RuleBits failed) const {
        by_tile(tables_.splitkv, record(KernelFamily::fwd_splitkv, type),
                splitkv_features(type, MaskAxis::all), failed);
    }

    void pagedkv(DataType type, RuleBits failed) const {
        by_tile(tables_.pagedkv, record(KernelFamily::fwd_pagedkv, type), pagedkv_features(type), failed);
    }

    void combine(DataType type, RuleBits failed) const {
        const auto hdims = tables_.combine.find(to_string(type));
        if (hdims != tables_.combine.end())
            enumerate_combine(selection_, hdims->second, record(KernelFamily::fwd_splitkv_combine, type),
                              failed, sink_);
    }

    void appendkv(DataType type, RuleBits failed) const {
        const auto hdims = tables_.appendkv.find(to_string(type));
        if (hdims == tables_.appendkv.end()) return;
        KernelConfig config = record(KernelFamily::fwd_appendkv, type);
        for (const std::int64_t hdim : hdims->second) {
            const RuleBits of_head = failed | set_head(config, {hdim, hdim});
            set_appendkv_tile(config);
            for (const Feature& feature : appendkv_features(type)) {
                apply(feature, config);
                emit(config, of_head);
            }
        }
    }

    void prefill(DataType type, RuleBits failed) const {
        const auto heads = tables_.batch_prefill.find(to_string(type));
        if (heads == tables_.batch_prefill.end()) return;
        KernelConfig config = record(KernelFamily::batch_prefill, type);
        auto features = prefill_features(type, MaskAxis::all);
        judge(features, type, selection_);
        for (const HeadTiles& entry : heads->second) {
            const RuleBits of_head = failed | set_head(config, entry.head);
            for (const ListedTile& listed : entry.tiles) {
                set_tile(config, listed.tile);
                for (const Mode mode : tables_.prefill_modes) {
                    config.signature.mode = mode;
                    for (const Feature& feature : features) {
                        apply(feature, config);
                        each_page(config, of_head | feature.failed, selection_.keep_rejected, sink_);
                    }
                }
            }
        }
    }

    const RulesTables& tables_;
    const Selection& selection_;
    const CandidateSink& sink_;
};

} // namespace

RuleBits forward_tile_failures(const RulesTables& tables, DataType type, HeadDims head, Pipeline pipeline,
                               const Tile& tile) {
    const bool is_h128 = head == HeadDims{128, 128};
    RuleBits failed = 0;
    // The table rules know three pipelines and leave fp32 alone; they hold on every architecture.
    const bool tabled =
        type != DataType::fp32 &&
        (pipeline == Pipeline::qr || pipeline == Pipeline::qr_async || pipeline == Pipeline::qs);
    if (tabled && is_h128) {
        failed |=
            unless(tile.n0 == 128 && (pipeline == Pipeline::qr_async || tile.k0 != 64), AuditRule::tile_h128);
        failed |= unless(pipeline != Pipeline::qr_async || tile.m0 == 128, AuditRule::tile_h128_async_m0);
    } else if (tabled) {
        failed |= unless(tile.m0 == 128, AuditRule::tile_m0_128);
    }
    failed |= unless((tile.m0 == 256) == (pipeline == Pipeline::qr_async_trload_v3), AuditRule::tile_v3_m0);
    if (pipeline == Pipeline::qr_async_trload)
        failed |= unless((is_h128 && tile.n0 != 128) || head == HeadDims{64, 64}, AuditRule::tile_trload);
    return failed & tables.forward_rules;
}

void enumerate_rules(const RulesTables& tables, const Selection& selection, const CandidateSink& sink) {
    RulesWalk(tables, selection, sink).run();
}

} // namespace fmha::catalog::audit
