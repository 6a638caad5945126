#pragma once

#include "dispatcher/system/process.hpp"
#include "harness/cases/case.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace fmha::parity {

/// How the example programs of a Composable Kernel checkout are asked to compute and validate a case.
struct TileExample {
    std::string program; ///< tile_example_fmha_fwd or tile_example_fmha_bwd
    std::vector<std::string> arguments;
    std::string
        cannot; ///< one sentence when the programs have no option for something in the case, else empty
};

/// Shapes, types and features come from the case. Data do not: the programs draw their own, seeded by the case, and compare
/// with a reference of their own. Paddings between rows are not asked for, since the programs pack their tensors.
TileExample tile_example(const harness::Case& c);

enum class Verdict : std::uint8_t {
    right,
    wrong,
    declined, ///< no kernel for it, or the options were refused
    silent,   ///< ended well without a verdict
    crashed,
    timed_out,
};

/// The output of a program.
struct Answer {
    Verdict verdict = Verdict::silent;
    double milliseconds = -1.0; ///< −1 when it did not say
    std::string line;           ///< the last line of its output, as it stands
    std::string sentence;       ///< why, for every verdict but right
};

/// Reads verdict and time from the output of an example program that was given `limit` seconds.
Answer read_answer(const system::ProcessResult& result, std::chrono::seconds limit);

} // namespace fmha::parity

namespace fmha {

template <>
struct EnumTable<parity::Verdict> {
    using enum parity::Verdict;
    static constexpr std::array<EnumName<parity::Verdict>, 6> names{{{right, "right"},
                                                                     {wrong, "wrong"},
                                                                     {declined, "declined"},
                                                                     {silent, "silent"},
                                                                     {crashed, "crashed"},
                                                                     {timed_out, "timed_out"}}};
    static constexpr auto& aliases = no_aliases<parity::Verdict>;
};

} // namespace fmha
