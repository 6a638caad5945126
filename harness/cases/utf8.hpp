#pragma once

#include "dispatcher/types/json.hpp"

#include <string_view>

namespace fmha::harness {

/// Whether journals, stores and reports keep `text` as it is: they replace bytes that are no UTF-8.
inline bool is_utf8(std::string_view text) {
    return Json::parse(Json(text).dump()) == Json(text);
}

} // namespace fmha::harness
