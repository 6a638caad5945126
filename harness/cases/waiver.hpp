#pragma once

#include "dispatcher/types/enums.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fmha::harness {

/// The bad end that a waiver expects.
enum class KnownEnd : std::uint8_t { failed, crashed, timed_out };

/// An entry of a waiver file: cases that are known to end badly, on which runs, and where somebody follows it up.
struct Waiver {
    std::string place; ///< "waivers.yaml: line 12", for messages
    std::string
        cases; ///< what `fmha verify` would be told: a folder, a file or a name, with * for any characters
    std::vector<std::string> archs, targets; ///< of the runs that it is for; empty: all
    std::string kernel;                      ///< glob on a name among the kernels of a result; empty: any
    KnownEnd expect = KnownEnd::failed;
    std::string tracker; ///< "1234", "#1234", "SWDEV-1234" or an address
    std::string reason;
    std::string expires; ///< the last day on which it holds, "2027-01-31"; empty: it has none
};

/// The entries of the text of a waiver file (form: docs/gates.md). A file of comments alone has none. Throws InputError with
/// file, line, key, value and what is allowed, among others for architectures and targets that are not in `archs` and `targets`.
std::vector<Waiver> read_waivers(const std::string& text, const std::string& file,
                                 std::span<const std::string> archs, std::span<const std::string> targets);

} // namespace fmha::harness

namespace fmha {

template <>
struct EnumTable<harness::KnownEnd> {
    using enum harness::KnownEnd;
    static constexpr std::array<EnumName<harness::KnownEnd>, 3> names{
        {{failed, "failed"}, {crashed, "crashed"}, {timed_out, "timed_out"}}};
    static constexpr auto& aliases = no_aliases<harness::KnownEnd>;
};

} // namespace fmha
