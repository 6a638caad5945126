#pragma once

#include <span>
#include <string_view>
#include <type_traits>

/// Mistakes by one, put into copies of the program's headers that write_seeds makes. The headers themselves know nothing
/// of it.
namespace fmha::test {

/// A place where a copy can be wrong by one: the right side of a comparison of numbers, or the dividend of a quotient.
struct SeedPlace {
    int number = 0;
    std::string_view header, expression;
};

/// Every place of every header, numbered from 0.
std::span<const SeedPlace> seed_places();

/// The mistake that the copies make; no place has the number −1.
struct Seed {
    int place = -1;
    int by = 0;
};
inline Seed& planted() {
    static Seed seed;
    return seed;
}

/// What is added at the place of this number.
constexpr int seeded(int place) {
    if (std::is_constant_evaluated())
        return 0;
    else
        return planted().place == place ? planted().by : 0;
}

} // namespace fmha::test
