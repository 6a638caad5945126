// Plants the mistake "place:by" of FMHA_MUTANT in a test program that is linked with mutated sources.

#include "tests/mutation/planted.hpp"

#include <cstdio>
#include <cstdlib>

namespace fmha::test {
namespace {

[[maybe_unused]] const bool planted = [] {
    const char* const wanted = std::getenv("FMHA_MUTANT");
    return wanted != nullptr && std::sscanf(wanted, "%d:%d", &mutation().place, &mutation().by) == 2;
}();

} // namespace
} // namespace fmha::test
