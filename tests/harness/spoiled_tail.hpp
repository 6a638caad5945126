#pragma once

#include "tests/harness/command_support.hpp"
#include "tests/harness/kernels_for_tests.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Cases of one file by their number of keys, on a kernel that is wrong with 33, so that a report without the failure would not do.
namespace fmha::cli::test {

using Spoil = std::function<void(const FwdArgs&)>;

inline std::string case_with(int seqlen_k) {
    return fmt::format("fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k={},mask=0,fill=indexed]@1", seqlen_k);
}

inline void spoil_33(const FwdArgs& args) {
    if (args.shape.seqlen_k == 33)
        static_cast<std::uint16_t*>(args.o.data)[args.o.offset(0, 1, 3, 5)] ^= 0x1000U;
}

/// `fmha verify` on the cases with so many keys.
inline Ran verify_tails(const std::vector<int>& keys, const std::vector<std::string>& more,
                        const Spoil& spoil = spoil_33) {
    std::vector<std::string> arguments;
    for (const int seqlen_k : keys) arguments.push_back(case_with(seqlen_k));
    arguments.insert(arguments.end(), more.begin(), more.end());
    return verify_on<harness::test::SpoiledKernel>(arguments, spoil);
}

} // namespace fmha::cli::test
