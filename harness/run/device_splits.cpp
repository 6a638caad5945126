#include "harness/run/device_splits.hpp"

#include "dispatcher/plan/workspace.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "harness/cases/case_problem.hpp"

namespace fmha::harness {

Case with_device_splits(Case c, const std::string& arch, const arch::ArchSet& archs) {
    if (!traits_of(c.family).splits_keys || c.split.num_splits >= 1) return c;
    const arch::Hardware& hardware = archs.at(arch).hardware();
    try {
        c.split.num_splits =
            choose_num_splits(to_problem(c, arch), hardware.limits.compute_units, hardware.wave_size);
    } catch (const ProblemError&) {
        // Nothing runs of a problem that is refused.
    }
    return c;
}

} // namespace fmha::harness
