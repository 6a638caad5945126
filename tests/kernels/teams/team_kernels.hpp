#pragma once

#include "fwd_problem.hpp"
#include "kernels/programs/ws_sums.hpp"

/// Warp-specialised kernels and problems for them.
namespace fmha::hip_target::test {

using host_target::test::FwdProblem;
using host_target::test::Shape;

/// The kernel of `teams` teams and `keys` keys a tile, up to `channels` channels; `config_of(tile)` has the rest.
template <class ConfigOf>
KernelConfig team_config(int teams, int keys, int channels, ConfigOf config_of) {
    const auto narrow = [](int number) { return static_cast<std::int16_t>(number); };
    const std::int16_t rows = narrow(64 * teams), count = narrow(teams), n = narrow(keys),
                       d = narrow(channels);
    KernelConfig config = config_of(Tile{.m0 = rows, .n0 = n, .k0 = 16, .n1 = d, .k1 = 16, .k0max = d});
    config.algorithm.pipeline = Pipeline::ws;
    config.algorithm.wave = {.m0 = count, .n0 = 1, .k0 = 1, .m1 = count, .n1 = 1, .k1 = 1};
    const bool e4m3 = kernels::adds_tiles_apart(config.signature.data_type);
    const auto depth = narrow(e4m3 ? 32 : 16);
    config.algorithm.tile.k0 = config.algorithm.tile.k1 = depth;
    config.algorithm.warp = {.m0 = 64, .n0 = n, .k0 = depth, .m1 = 64, .n1 = d, .k1 = depth};
    return config;
}

/// The same that runs `problem`.
inline KernelConfig team_kernel(const FwdProblem& problem, int teams, int keys, int channels) {
    return team_config(teams, keys, channels, [&](const Tile& tile) { return problem.config(tile); });
}

/// More than one tile of queries and of keys, the last ones not whole.
inline Shape team_shape(DataType type, std::int64_t channels) {
    Shape shape;
    shape.arch = "sm_90";
    shape.data_type = type;
    shape.batch = 1;
    shape.nhead_q = 2;
    shape.nhead_k = 1;
    shape.hdim_q = shape.hdim_v = channels;
    shape.seqlen_q = {150};
    shape.seqlen_k = {333};
    shape.extra = 5;
    return shape;
}

/// Two entries in pages, of a part of a tile of keys and of whole ones. `change` adds the features.
inline Shape paged_team_shape(int teams, int channels, void (*change)(Shape&)) {
    Shape shape = team_shape(DataType::bf16, channels);
    shape.extra = 0;
    shape.batch = 2;
    shape.seqlen_k = {333, 128};
    shape.sink_logit = teams == 2;
    change(shape);
    return shape;
}

/// A problem and a kernel for it.
struct TeamVariant {
    const char* name;
    int teams, keys, channels;
    DataType type;
    void (*change)(Shape&);
};

inline KernelConfig team_kernel(const FwdProblem& problem, const TeamVariant& variant) {
    return team_kernel(problem, variant.teams, variant.keys, variant.channels);
}
inline Shape shape_of(const TeamVariant& variant) {
    Shape shape = team_shape(variant.type, variant.channels);
    variant.change(shape);
    return shape;
}

/// Changes that kernels of several types are tried with.
namespace changes {
inline void none(Shape&) {}
inline void causal_in_groups_of_heads(Shape& s) {
    s.nhead_q = 4;
    s.nhead_k = 2;
    s.mask = {MaskType::top_left, -1, 0, 0};
}
inline void soft_cap_and_sink_logits(Shape& s) {
    s.soft_cap = 2.0F;
    s.sink_logit = true;
}
inline void elementwise_bias(Shape& s) {
    s.bias = BiasType::elementwise;
}
/// `keys` are fewer than a tile of 128.
template <std::int64_t keys>
void alibi_in_one_tile(Shape& s) {
    s.bias = BiasType::alibi;
    s.seqlen_k = {keys};
}
template <std::int64_t keys>
void window_and_sink_tokens(Shape& s) {
    s.seqlen_q = {400};
    s.seqlen_k = {keys};
    s.mask = {MaskType::top_left, 100, 0, 4};
}
} // namespace changes

} // namespace fmha::hip_target::test
