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

} // namespace fmha::hip_target::test
