#pragma once

#include "dispatcher/upstream/ck/basics.hpp"

#if __has_include(<mask.hpp>) && __has_include(<bias.hpp>) && __has_include(<ck_tile/core.hpp>)
#define FMHA_CK_CHECKOUT 1
#include <bias.hpp>
#include <mask.hpp>
#else
#define FMHA_CK_CHECKOUT 0
#endif

namespace fmha::ck {

#if FMHA_CK_CHECKOUT
using index_t = ck_tile::index_t;
using ::bias_enum;
using ::mask_enum;
#else
using index_t = std::int32_t;
enum class mask_enum { no_mask = 0, mask_top_left = 1, mask_bottom_right = 2, window_generic = 3 };
enum class bias_enum { no_bias = 0, elementwise_bias = 1, alibi = 2 };
#endif

static_assert(std::is_same_v<index_t, std::int32_t>, "this checkout's index_t is no 32-bit integer");
static_assert(int(mask_enum::no_mask) == 0 && int(mask_enum::mask_top_left) == 1 &&
                  int(mask_enum::mask_bottom_right) == 2 && int(mask_enum::window_generic) == 3,
              "this checkout numbers its masks otherwise than M-4");
static_assert(int(bias_enum::no_bias) == 0 && int(bias_enum::elementwise_bias) == 1 &&
                  int(bias_enum::alibi) == 2,
              "this checkout numbers its biases otherwise than no_bias, elementwise_bias, alibi");

} // namespace fmha::ck
