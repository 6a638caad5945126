#pragma once

#include <type_traits>

/// Mistakes at the places that write_mutants.py marks in copies of the programs' headers. The headers themselves know nothing
/// of it.
namespace fmha::test {

/// The mistake that the copies make, and where they note what they come through.
struct Mutation {
    int place = -1;
    int by = 0;
    unsigned char* visited = nullptr; ///< one for each place; nullptr: nothing is noted
};
inline Mutation& mutation() {
    static Mutation mutation;
    return mutation;
}

/// Whether the mistake of this place is made now. Never where the compiler computes.
constexpr bool on(int place) {
    if (std::is_constant_evaluated()) return false;
    Mutation& planted = mutation();
    if (planted.visited != nullptr) planted.visited[place] = 1;
    return planted.place == place;
}

/// What is added at a place.
constexpr int by(int place) {
    return on(place) ? mutation().by : 0;
}

/// What is multiplied at a place.
constexpr int factor(int place) {
    return on(place) ? 2 : 1;
}

} // namespace fmha::test
