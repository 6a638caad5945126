#pragma once

#include "dispatcher/types/field_list.hpp"
#include "dispatcher/types/fixed_string.hpp"
#include "dispatcher/types/signature.hpp"

#include <compare>
#include <cstdint>
#include <type_traits>

/// Kernels as values. Device code includes this; kernel_config.hpp adds what follows from field lists.

namespace fmha {

/// Block tile. Forward families: (m0 query rows, n0 keys, k0 step of QKᵀ over hdim_q, n1 columns of O,
/// k1 step of PV over keys, k0max padded hdim_q). `bwd_dq_dk_dv` uses nine numbers in the order
/// (m0, n0, k0, n1, k1, k0max, b6, b7, b8) = (m0, n0, k0, k1, k2, k3, k4, max hdim_q, max hdim_v) of the
/// specification. Families without a matrix product use some of them and leave the rest 0.
struct Tile {
    std::int16_t m0 = 0, n0 = 0, k0 = 0, n1 = 0, k1 = 0, k0max = 0, b6 = 0, b7 = 0, b8 = 0;
    friend bool operator==(const Tile&, const Tile&) = default;
    friend auto operator<=>(const Tile&, const Tile&) = default;
};
FMHA_FIELDS(Tile, m0, n0, k0, n1, k1, k0max, b6, b7, b8)

/// Three (m, n, k) triples, one per matrix product of the kernel: waves along each axis, or the shape of the
/// matrix instruction.
struct GemmTriples {
    std::int16_t m0 = 0, n0 = 0, k0 = 0, m1 = 0, n1 = 0, k1 = 0, m2 = 0, n2 = 0, k2 = 0;
    friend bool operator==(const GemmTriples&, const GemmTriples&) = default;
    friend auto operator<=>(const GemmTriples&, const GemmTriples&) = default;
};
FMHA_FIELDS(GemmTriples, m0, n0, k0, m1, n1, k1, m2, n2, k2)

/// Which ragged extents a kernel handles. `d` and `dv`: 0 none, 8 multiples of 8, 1 any head dimension.
struct Padding {
    bool s = false, sk = false;
    std::int8_t d = 0, dv = 0;
    friend bool operator==(const Padding&, const Padding&) = default;
    friend auto operator<=>(const Padding&, const Padding&) = default;
};
FMHA_FIELDS(Padding, s, sk, d, dv)

/// How a kernel computes its signature.
struct Algorithm {
    Tile tile;
    GemmTriples wave;
    GemmTriples warp;
    Pipeline pipeline = Pipeline::qr;
    Padding pad;
    LoadMode load_mode = LoadMode::none;
    DropoutVariant dropout_variant = DropoutVariant::none;
    Tag tile_tag;
    bool use_trload = false;
    std::int32_t block_per_cu = -1;
    std::int32_t num_wave_groups = 1;
    std::int32_t max_splits_log2 = 0;
    std::int64_t max_seq_len_q = 0;
    std::int32_t hdim_q_alignment = 0;
    std::int32_t hdim_v_alignment = 0;
    std::int32_t selection_rank = 0;
    Tag constraint;

    friend bool operator==(const Algorithm&, const Algorithm&) = default;
    friend auto operator<=>(const Algorithm&, const Algorithm&) = default;
};
FMHA_FIELDS(Algorithm, tile, wave, warp, pipeline, pad, load_mode, dropout_variant, tile_tag, use_trload,
            block_per_cu, num_wave_groups, max_splits_log2, max_seq_len_q, hdim_q_alignment, hdim_v_alignment,
            selection_rank, constraint)

/// A kernel is a value: identity is the whole of it. Trivially copyable, so that millions can be enumerated.
struct KernelConfig {
    ArchName arch;
    Signature signature;
    Algorithm algorithm;

    friend bool operator==(const KernelConfig&, const KernelConfig&) = default;
    friend auto operator<=>(const KernelConfig&, const KernelConfig&) = default;
};
FMHA_FIELDS(KernelConfig, arch, signature, algorithm)

static_assert(std::is_trivially_copyable_v<KernelConfig>);

} // namespace fmha
