#include "dispatcher/system/parallel.hpp"
#include "harness/run/emulated_target.hpp"
#include "tests/mutation/subject.hpp"

namespace fmha::harness::test {

Subject subject(const std::string& arch) {
    TargetOptions emulated;
    emulated.arch = arch;
    emulated.jobs = system::hardware_threads();
    const auto original = make_emulated_target(emulated);
    // A case of so much work takes about a second.
    constexpr double most_work = 2e7;
    return {mutated_target(original), original,
            // A mistake cannot spoil an operation that one machine does not have.
            arch.starts_with("gfx") ? "emulated_survivors_amd.txt" : "emulated_survivors_nvidia.txt",
            "survivors.txt", most_work, false, false};
}

} // namespace fmha::harness::test
