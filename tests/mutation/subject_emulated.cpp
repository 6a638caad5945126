#include "dispatcher/system/parallel.hpp"
#include "harness/run/emulated_target.hpp"
#include "tests/mutation/checks.hpp"
#include "tests/mutation/subject.hpp"

namespace fmha::harness::test {

Subject subject(const std::string& arch) {
    TargetOptions emulated;
    emulated.arch = arch;
    emulated.jobs = system::hardware_threads();
    const auto original = make_emulated_target(emulated);
    // A case of so much work takes about a tenth of a second.
    constexpr double most_work = 2e6;
    return {mutated_target(original),
            original,
            "emulated_survivors.txt",
            "survivors.txt",
            most_work,
            false,
            false};
}

} // namespace fmha::harness::test

/// The checks ask the programs on the host's context.
std::span<const fmha::test::Check> fmha::test::checks() {
    return {};
}
