#include "tests/mutation/mutants.hpp"

#include <fmt/format.h>

namespace fmha::test {

std::string Mutant::name() const {
    return fmt::format("{}: {} {:+}: {}", header, operation, by, expression);
}

std::span<const Mutant> mutants() {
    static constexpr Mutant all[] = {
#include "mutants.inc"
    };
    return all;
}

} // namespace fmha::test
