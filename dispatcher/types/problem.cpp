#include "dispatcher/types/problem.hpp"

namespace fmha {

MaskClass mask_class(MaskType type, std::int64_t window_left) {
    switch (type) {
    case MaskType::no_mask: return MaskClass::none;
    case MaskType::window_generic: return MaskClass::generic;
    case MaskType::top_left:
    case MaskType::bottom_right: break;
    }
    return window_left < 0 ? MaskClass::causal : MaskClass::generic;
}

} // namespace fmha
