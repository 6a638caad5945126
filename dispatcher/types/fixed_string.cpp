#include "dispatcher/types/long_name.hpp"

namespace fmha {

template void throw_name_too_long(std::string_view);

} // namespace fmha
