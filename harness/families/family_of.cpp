#include "dispatcher/types/error.hpp"
#include "harness/families/all_families.hpp"

#include <fmt/format.h>

namespace fmha::harness {

const Family& family_of(ApiFamily api) {
    switch (api) {
#define FMHA_FAMILY(name, ...)                                                                               \
    case ApiFamily::name:                                                                                    \
        return name##_family();
        FMHA_API_FAMILIES(FMHA_FAMILY)
#undef FMHA_FAMILY
    }
    throw InputError(fmt::format("{} is not an API family", static_cast<int>(api)));
}

} // namespace fmha::harness
