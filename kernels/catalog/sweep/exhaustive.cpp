#include "kernels/catalog/rules/sweep_name.hpp"
#include "kernels/catalog/sweep/sweep_enumerate.hpp"

#include <algorithm>

namespace fmha::catalog::audit {

namespace {

/// Values that the lists of exhaustive mode run over. Lists that the selection gives are sorted as text,
/// which is the order of the arrays here.
struct MaskValue {
    std::uint32_t bit;
    MaskClass mask;
    std::string_view constraint;
};
constexpr std::array sorted_masks{
    MaskValue{bottom_right_bit, MaskClass::causal, bottom_right_constraint},
    MaskValue{1U << static_cast<unsigned>(MaskClass::generic), MaskClass::generic, ""},
    MaskValue{1U << static_cast<unsigned>(MaskClass::none), MaskClass::none, ""},
    MaskValue{1U << static_cast<unsigned>(MaskClass::causal), MaskClass::causal, ""}};
constexpr std::array default_masks{sorted_masks[2], sorted_masks[3], sorted_masks[0]};

/// Enumerators in `sorted` order that `allowed` has; `defaults` when the list is absent or empty.
template <class T, std::size_t N, std::size_t D, class Bit>
std::vector<T> listed(const AllowBits& allowed, const std::array<T, N>& sorted,
                      const std::array<T, D>& defaults, Bit&& bit) {
    if (!allowed || *allowed == 0) return std::vector<T>(defaults.begin(), defaults.end());
    std::vector<T> values;
    for (const T& value : sorted)
        if ((*allowed & bit(value)) != 0) values.push_back(value);
    return values;
}

constexpr auto enum_bit = [](auto value) { return 1U << static_cast<unsigned>(value); };

std::vector<MaskValue> masks_of(const AllowLists& allow) {
    return listed(allow.masks, sorted_masks, default_masks, [](const MaskValue& mask) { return mask.bit; });
}

std::vector<BiasType> biases_of(const AllowLists& allow) {
    using enum BiasType;
    return listed(allow.biases, std::array{alibi, elementwise, no_bias},
                  std::array{no_bias, elementwise, alibi}, enum_bit);
}

std::vector<Mode> modes_of(const AllowLists& allow) {
    return listed(allow.modes, modes, modes, enum_bit);
}

template <std::size_t D>
std::vector<bool> booleans(const AllowBits& allowed, const std::array<bool, D>& defaults) {
    return listed(allowed, std::array{false, true}, defaults, [](bool value) { return value ? 2U : 1U; });
}

constexpr std::array both{false, true};
constexpr std::array only_false{false};

std::vector<Pipeline> pipelines_of(const AllowLists& allow) {
    using enum Pipeline;
    return listed(allow.pipelines, std::array{qr, qr_async, qr_async_trload, qr_async_trload_v3, qs},
                  std::array{qr, qr_async, qr_async_trload, qr_async_trload_v3}, enum_bit);
}

/// Upstream means −1, 1, 2 to be the default, but only an empty list gives them.
std::vector<std::int32_t> blocks_of(const AllowLists& allow) {
    if (!allow.block_per_cu) return {-1};
    if (allow.block_per_cu->empty()) return {-1, 1, 2};
    auto blocks = *allow.block_per_cu;
    std::ranges::sort(blocks);
    return blocks;
}

class ExhaustiveWalk {
  public:
    ExhaustiveWalk(const SweepTables& tables, const Selection& selection, const CandidateSink& sink)
        : tables_(tables), selection_(selection), sink_(sink), modes_(modes_of(selection.allow)),
          masks_(masks_of(selection.allow)), biases_(biases_of(selection.allow)) {}

    void forward(DataType type, RuleBits failed) const {
        KernelConfig config = record(KernelFamily::fwd, type);
        config.algorithm.pad = {false, false, 0, 0};
        const auto pipelines = pipelines_of(selection_.allow);
        const auto blocks = blocks_of(selection_.allow);
        const auto lse = booleans(selection_.allow.lse, both);
        const auto dropout = booleans(selection_.allow.dropout, both);
        const auto logits = booleans(selection_.allow.logits, both);
        const auto sinks = booleans(selection_.allow.sink, only_false);
        for (const HeadDims head : heads_of(tables_, type))
            for (const Pipeline pipeline : pipelines)
                each_tile(config, failed, head, forward_tiles_of(type, head, pipeline), [&](RuleBits all) {
                    config.algorithm.pipeline = pipeline;
                    each_mask_and_bias(config, [&] {
                        for (const bool with_lse : lse)
                            for (const bool with_dropout : dropout)
                                for (const bool with_logits : logits)
                                    for (const bool with_sink : sinks)
                                        for (const std::int32_t block_per_cu : blocks) {
                                            config.signature.has_lse = with_lse;
                                            config.signature.has_dropout = with_dropout;
                                            config.signature.has_logits_soft_cap = with_logits;
                                            config.signature.has_sink = with_sink;
                                            config.algorithm.block_per_cu = block_per_cu;
                                            sink_(config, all);
                                        }
                    });
                });
    }

    void splitkv(DataType type, RuleBits failed) const {
        KernelConfig config = record(KernelFamily::fwd_splitkv, type);
        config.algorithm.pipeline = Pipeline::qr;
        config.signature.has_lse = true;
        const auto logits = booleans(selection_.allow.logits, both);
        const auto sinks = booleans(selection_.allow.sink, only_false);
        for (const HeadDims head : heads_of(tables_, type))
            each_tile(config, failed, head, paged_tiles_of(type, head), [&](RuleBits all) {
                each_mask_and_bias(config, [&] {
                    for (const bool with_logits : logits)
                        for (const bool with_sink : sinks) {
                            config.signature.has_logits_soft_cap = with_logits;
                            config.signature.has_sink = with_sink;
                            sink_(config, all);
                        }
                });
            });
    }

    void pagedkv(DataType type, RuleBits failed) const {
        KernelConfig config = record(KernelFamily::fwd_pagedkv, type);
        config.algorithm.pipeline = Pipeline::qr_pagedkv;
        config.signature.use_paged_kv = true;
        for (const HeadDims head : heads_of(tables_, type))
            each_tile(config, failed, head, paged_tiles_of(type, head),
                      [&](RuleBits all) { each_mask_and_bias(config, [&] { sink_(config, all); }); });
    }

    void backward(DataType type, RuleBits failed) const {
        dot_do_o(type, failed);
        for (const HeadDims head : heads_of(tables_, type)) dq_dk_dv(type, failed, head);
        convert_dq(type, failed);
    }

  private:
    KernelConfig record(KernelFamily family, DataType type) const {
        KernelConfig config = default_record(tables_.arch, -1);
        config.signature.family = family;
        config.signature.data_type = type;
        return config;
    }

    std::vector<SweepTile> forward_tiles_of(DataType type, HeadDims head, Pipeline pipeline) const {
        return forward_sweep_tiles(tables_, type, head, pipeline, TileChecks::exhaustive,
                                   selection_.keep_rejected);
    }
    std::vector<SweepTile> paged_tiles_of(DataType type, HeadDims head) const {
        return paged_sweep_tiles(tables_, type, head, TileChecks::exhaustive, selection_.keep_rejected);
    }

    template <class Use>
    void each_tile(KernelConfig& config, RuleBits failed, HeadDims head, const std::vector<SweepTile>& tiles,
                   Use&& use) const {
        const RuleBits of_head = failed | set_head(selection_, head, config);
        if (of_head != 0 && !selection_.keep_rejected) return;
        for (const SweepTile& tile : tiles) {
            config.algorithm.tile = tile.tile;
            config.algorithm.wave = tile.wave;
            config.algorithm.warp = tile.warp;
            use(of_head | tile.failed);
        }
    }

    /// mode × mask × bias.
    template <class Use>
    void each_mask_and_bias(KernelConfig& config, Use&& use) const {
        for (const Mode mode : modes_)
            for (const MaskValue& mask : masks_)
                for (const BiasType bias : biases_) {
                    config.signature.mode = mode;
                    config.signature.mask = mask.mask;
                    config.algorithm.constraint = Tag(mask.constraint);
                    config.signature.bias = bias;
                    use();
                }
    }

    void dot_do_o(DataType type, RuleBits failed) const {
        KernelConfig config = record(KernelFamily::bwd_dot_do_o, type);
        config.algorithm.tile.m0 = 64;
        for (const std::int64_t hdim : tables_.backward.dot_do_o) {
            const RuleBits all = failed | set_head(selection_, {hdim, hdim}, config);
            if (all != 0 && !selection_.keep_rejected) continue;
            for (const Mode mode : modes_) {
                config.signature.mode = mode;
                for (const Feature& feature : dot_do_o_features()) {
                    apply(feature, config);
                    sink_(config, all);
                }
            }
        }
    }

    void dq_dk_dv(DataType type, RuleBits failed, HeadDims head) const {
        KernelConfig config = record(KernelFamily::bwd_dq_dk_dv, type);
        config.algorithm.pipeline = Pipeline::qr;
        Tile previous;
        each_tile(config, failed, head, forward_tiles_of(type, head, Pipeline::qr), [&](RuleBits all) {
            // The warp tile of the tile loop does not show in these kernels: neighbours collide.
            if (config.algorithm.tile == previous && !selection_.keep_rejected) return;
            previous = config.algorithm.tile;
            set_backward_waves(tables_.backward, config.algorithm);
            each_mask_and_bias(config, [&] {
                const std::string mask_constraint = config.algorithm.constraint.str();
                for (const std::string_view variant :
                     {std::string_view(), dropout_p_constraint, dropout_rp_constraint})
                    for (const bool deterministic : both) {
                        std::string constraint = mask_constraint;
                        if (!constraint.empty() && !variant.empty()) constraint += ';';
                        constraint += variant;
                        config.algorithm.constraint = Tag(constraint);
                        config.signature.has_dropout = !variant.empty();
                        config.signature.is_store_randval = false;
                        config.signature.is_deterministic = deterministic;
                        sink_(config, all);
                    }
            });
        });
    }

    void convert_dq(DataType type, RuleBits failed) const {
        KernelConfig config = record(KernelFamily::bwd_convert_dq, type);
        config.algorithm.pipeline = Pipeline::qr;
        config.algorithm.tile.m0 = 64;
        for (const auto& convert : tables_.backward.convert_dq) {
            const RuleBits all = failed | set_head(selection_, {convert.hdim, convert.hdim}, config);
            if (all != 0 && !selection_.keep_rejected) continue;
            for (const Mode mode : modes_)
                for (const bool deterministic : both) {
                    config.signature.mode = mode;
                    config.signature.is_deterministic = deterministic;
                    sink_(config, all);
                }
        }
    }

    const SweepTables& tables_;
    const Selection& selection_;
    const CandidateSink& sink_;
    std::vector<Mode> modes_;
    std::vector<MaskValue> masks_;
    std::vector<BiasType> biases_;
};

} // namespace

void enumerate_exhaustive(const SweepTables& tables, const Selection& selection, const CandidateSink& sink) {
    if (selection.variant == SweepVariant::appendkv || selection.variant == SweepVariant::batch_prefill) {
        Selection rules_mode = selection;
        rules_mode.receipts = {};
        enumerate_sweep(tables, rules_mode, sink);
        return;
    }
    const ExhaustiveWalk walk(tables, selection, sink);
    for (const auto& [type, failed] : selected_types(tables, selection)) {
        switch (selection.variant) {
        case SweepVariant::fwd:
            walk.forward(type, failed);
            break;
        case SweepVariant::splitkv:
            walk.splitkv(type, failed);
            break;
        case SweepVariant::pagedkv:
            walk.pagedkv(type, failed);
            break;
        case SweepVariant::bwd:
            if (is_half(type)) walk.backward(type, failed);
            break;
        case SweepVariant::appendkv:
        case SweepVariant::batch_prefill:
            break;
        }
    }
}

} // namespace fmha::catalog::audit
