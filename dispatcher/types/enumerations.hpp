#pragma once

#include "dispatcher/types/family_table.hpp"

#include <cstdint>

/// Enumerations of the dispatcher (numeric values are those that the C interface and upstream use). Device code includes
/// this; the names of their members stand apart, in enums.hpp.
namespace fmha {

#define FMHA_MEMBER(name, ...) name,
enum class ApiFamily : std::uint8_t { FMHA_API_FAMILIES(FMHA_MEMBER) };
enum class KernelFamily : std::uint8_t { FMHA_KERNEL_FAMILIES(FMHA_MEMBER) };
#undef FMHA_MEMBER

enum class DataType : std::uint8_t { fp32, fp16, bf16, fp8, bf8, fp8bf16, fp8fp32, mxfp8, mxfp4 };

enum class Mode : std::uint8_t { batch, group };

enum class VLayout : std::uint8_t { row, column };

/// The mask of a problem (M-4).
enum class MaskType : std::uint8_t { no_mask = 0, top_left = 1, bottom_right = 2, window_generic = 3 };

/// The masks of a kernel (M-6): `causal` needs no lower bound, `generic` applies both bounds.
enum class MaskClass : std::uint8_t { none, causal, generic };

enum class BiasType : std::uint8_t { no_bias = 0, elementwise = 1, alibi = 2 };

enum class QScale : std::uint8_t {
    no_scale = 0,
    pertensor = 1,
    blockscale = 2,
    kv_blockscale = 3,
    mx = 4,
    per_token_head = 5,
};

enum class Rope : std::uint8_t { none = 0, interleaved = 1, half_rotated = 2 };

/// `unset` stands for "this family has none": batch prefill must state a layout, nothing supplies a default.
enum class KvLayout : std::int8_t { unset = -1, vectorized = 0, linear = 1 };
enum class KvLookup : std::int8_t { unset = -1, vllm_2d = 0, sglang_1d = 1 };

enum class Pipeline : std::uint8_t {
    qr,
    qr_hpad,
    qr_async,
    qs,
    qr_async_trload,
    qr_async_trload_v3,
    v3,
    qr_pagedkv,
    qr_nwarp_sshuffle,
    splitkv_combine,
    appendkv,
    bwd,
    ws, ///< warp-specialised: one part of a block copies, others multiply
};

/// Batch prefill only: `bload` reads through a descriptor with 32-bit offsets, from the pool's first byte where pages are smaller than the
/// key tile and from the page's otherwise; `gload` has 64-bit addresses.
enum class LoadMode : std::uint8_t { none, bload, gload };

/// Backward only: tile shape of the random generator and whether its bytes are stored.
enum class DropoutVariant : std::uint8_t {
    none,
    dropout_wg32,
    dropout_wg32_storerandval,
    dropout_wg16,
    dropout_wg16_storerandval,
};

enum class SelectionStrategy : std::uint8_t { first_fit, heuristic };

enum class Priority : std::uint8_t { low, normal, high };

} // namespace fmha
