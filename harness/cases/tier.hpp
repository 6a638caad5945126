#pragma once

#include "dispatcher/types/enums.hpp"

#include <array>
#include <cstdint>

namespace fmha::harness {

/// How often a case runs: always, in a full run, or at night alone.
enum class Tier : std::uint8_t { smoke, full, nightly };

} // namespace fmha::harness

namespace fmha {

template <>
struct EnumTable<harness::Tier> {
    using enum harness::Tier;
    static constexpr std::array<EnumName<harness::Tier>, 3> names{
        {{smoke, "smoke"}, {full, "full"}, {nightly, "nightly"}}};
    static constexpr auto& aliases = no_aliases<harness::Tier>;
};

} // namespace fmha
