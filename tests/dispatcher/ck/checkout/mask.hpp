#pragma once
#include "ck_tile/core.hpp"
#ifdef FAULT_MASK_NUMBERS
enum class mask_enum { no_mask, mask_bottom_right, mask_top_left, window_generic };
#else
enum class mask_enum { no_mask, mask_top_left, mask_bottom_right, window_generic };
#endif
