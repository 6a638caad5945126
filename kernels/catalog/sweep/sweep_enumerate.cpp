#include "kernels/catalog/sweep/sweep_enumerate.hpp"

#include <algorithm>

namespace fmha::catalog::audit {

namespace {

constexpr std::array forward_pipelines{Pipeline::qr, Pipeline::qr_async, Pipeline::qr_async_trload,
                                       Pipeline::qr_async_trload_v3};

class SweepWalk {
  public:
    SweepWalk(const SweepTables& tables, const Selection& selection, const CandidateSink& sink)
        : tables_(tables), selection_(selection), sink_(sink) {}

    void run() const {
        const auto types = selected_types(tables_, selection_);
        for (const auto& [type, failed] : types) {
            switch (selection_.variant) {
            case SweepVariant::fwd:
                forward(type, failed);
                break;
            case SweepVariant::splitkv:
                by_tile(record(KernelFamily::fwd_splitkv, type),
                        splitkv_features(type, MaskAxis::none_and_causal), failed);
                break;
            case SweepVariant::pagedkv:
                by_tile(record(KernelFamily::fwd_pagedkv, type), pagedkv_features(type), failed);
                break;
            case SweepVariant::appendkv:
                appendkv(type, failed);
                break;
            case SweepVariant::batch_prefill:
                prefill(type, failed);
                break;
            case SweepVariant::bwd:
                if (is_half(type))
                    enumerate_backward(tables_.backward, selection_, /*allow_on_extra=*/true,
                                       record(KernelFamily::bwd_dot_do_o, type), failed, sink_);
                break;
            }
        }
        if (selection_.variant != SweepVariant::splitkv) return;
        for (const auto& [type, failed] : types) {
            const auto hdims = tables_.combine.find(to_string(type));
            if (hdims != tables_.combine.end())
                enumerate_combine(selection_, hdims->second, record(KernelFamily::fwd_splitkv_combine, type),
                                  failed, sink_);
        }
    }

  private:
    bool dropped(RuleBits failed) const { return failed != 0 && !selection_.keep_rejected; }

    KernelConfig record(KernelFamily family, DataType type) const {
        KernelConfig config = default_record(tables_.arch, -1);
        config.signature.family = family;
        config.signature.data_type = type;
        return config;
    }

    RuleBits mode_failures(Mode mode) const {
        return outside(selection_.allow.modes, static_cast<unsigned>(mode), AuditRule::allow_mode);
    }

    static void set_tile(KernelConfig& config, const SweepTile& tile) {
        config.algorithm.tile = tile.tile;
        config.algorithm.wave = tile.wave;
        config.algorithm.warp = tile.warp;
    }

    void forward(DataType type, RuleBits failed) const {
        const std::vector<std::int32_t> bpc =
            selection_.allow.block_per_cu.value_or(std::vector<std::int32_t>{-1});
        KernelConfig config = record(KernelFamily::fwd, type);
        for (const HeadDims head : heads_of(tables_, type)) {
            const RuleBits of_head = failed | set_head(selection_, head, config);
            if (dropped(of_head)) continue;
            auto features = forward_features(type, head.q, head.v,
                                             {tables_.has_trload, selection_.receipts.extends_qr()});
            judge(features, type, selection_);
            std::array<std::vector<SweepTile>, forward_pipelines.size()> tiles;
            for (std::size_t i = 0; i < tiles.size(); ++i)
                if (std::ranges::find(features, forward_pipelines[i], &Feature::pipeline) != features.end())
                    tiles[i] = forward_sweep_tiles(tables_, type, head, forward_pipelines[i],
                                                   TileChecks::rules, selection_.keep_rejected);
            for (const Mode mode : modes) {
                config.signature.mode = mode;
                for (const Feature& feature : features) {
                    const RuleBits of_feature =
                        of_head | mode_failures(mode) | feature.failed | group_needs_both(mode, feature.pad);
                    if (dropped(of_feature)) continue;
                    apply(feature, config);
                    const auto index = static_cast<std::size_t>(
                        std::ranges::find(forward_pipelines, feature.pipeline) - forward_pipelines.begin());
                    for (const SweepTile& tile : tiles[index]) {
                        set_tile(config, tile);
                        for (const std::int32_t blocks : bpc) {
                            config.algorithm.block_per_cu = blocks;
                            sink_(config, of_feature | tile.failed);
                        }
                    }
                }
            }
        }
    }

    /// tile × mode × feature: split-KV and paged-KV.
    void by_tile(KernelConfig config, std::vector<Feature> features, RuleBits failed) const {
        const DataType type = config.signature.data_type;
        judge(features, type, selection_);
        if (features.empty()) return;
        for (const HeadDims head : heads_of(tables_, type)) {
            const RuleBits of_head = failed | set_head(selection_, head, config);
            if (dropped(of_head)) continue;
            for (const SweepTile& tile :
                 paged_sweep_tiles(tables_, type, head, TileChecks::rules, selection_.keep_rejected)) {
                set_tile(config, tile);
                for (const Mode mode : modes) {
                    const RuleBits of_mode = of_head | tile.failed | mode_failures(mode);
                    if (dropped(of_mode)) continue;
                    config.signature.mode = mode;
                    for (const Feature& feature : features) {
                        const RuleBits all = of_mode | feature.failed | group_needs_both(mode, feature.pad);
                        if (dropped(all)) continue;
                        apply(feature, config);
                        sink_(config, all);
                    }
                }
            }
        }
    }

    void appendkv(DataType type, RuleBits failed) const {
        KernelConfig config = record(KernelFamily::fwd_appendkv, type);
        const auto features = appendkv_features(type);
        for (const HeadDims head : heads_of(tables_, type)) {
            const RuleBits of_head = failed | set_head(selection_, head, config);
            if (dropped(of_head)) continue;
            set_appendkv_tile(config);
            for (const Feature& feature : features) {
                apply(feature, config);
                sink_(config, of_head);
            }
        }
    }

    void prefill(DataType type, RuleBits failed) const {
        KernelConfig config = record(KernelFamily::batch_prefill, type);
        config.signature.mode = Mode::group;
        auto features = prefill_features(type, MaskAxis::none_and_causal);
        judge(features, type, selection_);
        if (features.empty()) return;
        for (const HeadDims head : heads_of(tables_, type)) {
            const RuleBits of_head = failed | set_head(selection_, head, config);
            if (dropped(of_head)) continue;
            for (SweepTile& tile :
                 paged_sweep_tiles(tables_, type, head, TileChecks::rules, selection_.keep_rejected)) {
                set_prefill_k1(tables_, head, tile.tile);
                set_tile(config, tile);
                for (const Feature& feature : features) {
                    apply(feature, config);
                    each_page(config, of_head | tile.failed | feature.failed, selection_.keep_rejected,
                              sink_);
                }
            }
        }
    }

    const SweepTables& tables_;
    const Selection& selection_;
    const CandidateSink& sink_;
};

} // namespace

std::vector<SelectedType> selected_types(const SweepTables& tables, const Selection& selection) {
    const auto& list = selection.allow.data_types;
    std::vector<SelectedType> types;
    for (const std::string& name : tables.data_types) {
        const auto type = parse_enum<DataType>(name);
        const RuleBits failed =
            unless(!list || list->empty() || allows(list, name), AuditRule::allow_data_type);
        if (type && (failed == 0 || selection.keep_rejected)) types.push_back({*type, failed});
    }
    return types;
}

std::span<const HeadDims> heads_of(const SweepTables& tables, DataType type) {
    const auto found = tables.heads.find(to_string(type));
    return found == tables.heads.end() ? std::span<const HeadDims>{} : found->second;
}

RuleBits set_head(const Selection& selection, HeadDims head, KernelConfig& config) {
    config.signature.hdim_q = head.q;
    config.signature.hdim_v = head.v;
    const auto& kept = selection.allow.head_dims;
    return unless(kept.empty() || std::ranges::find(kept, std::array{head.q, head.v}) != kept.end(),
                  AuditRule::head_dim_restriction);
}

void enumerate_sweep(const SweepTables& tables, const Selection& selection, const CandidateSink& sink) {
    SweepWalk(tables, selection, sink).run();
}

} // namespace fmha::catalog::audit
