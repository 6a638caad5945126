#include "dispatcher/system/parallel.hpp"
#include "harness/run/host_target.hpp"
#include "tests/mutation/subject.hpp"

#include <limits>

namespace fmha::harness::test {

Subject subject(const std::string& arch) {
    TargetOptions host;
    host.arch = arch;
    // One thread a launch: the sums of backward's atomics depend on the order of blocks.
    host.jobs = system::hardware_threads();
    const auto original = make_host_target(host);
    return {mutated_target(original),
            original,
            "survivors.txt",
            "",
            std::numeric_limits<double>::infinity(),
            true,
            true};
}

} // namespace fmha::harness::test
