// A case that a seeded mistake turns red becomes small: every known mistake of every family, in a house kernel on the host.

#include "kernels/targets/host/faults/fault.hpp"
#include "tests/harness/shrinking.hpp"

#include <algorithm>

namespace fmha::harness::test {
namespace {

using targets::CacheFault;

template <class Fault>
void add(std::vector<Seeded>& all, const char* file, const char* arch = "gfx950") {
    for (const Fault fault : every<Fault>())
        all.push_back({file, to_string(fault), launch_with(fault), arch});
}

std::vector<Seeded> all_seeded() {
    std::vector<Seeded> all;
    for (const targets::Fault fault : every<targets::Fault>())
        all.push_back(
            {"fwd/faults", to_string(fault), [fault](const KernelConfig& config, const Invocation& args) {
                 host_target::run_fwd_with_fault(config, std::get<FwdArgs>(args), fault, {.threads = 1});
             }});
    add<CacheFault>(all, "pagedkv/faults");
    // Paged-KV has neither splits nor slots.
    std::erase_if(all, [](const Seeded& seeded) {
        const auto fault = parse_enum<CacheFault>(seeded.name);
        return fault && (*fault >= CacheFault::split_edge_late || *fault == CacheFault::cache_slot_ignored);
    });
    add<CacheFault>(all, "splitkv/faults");
    add<targets::CombineFault>(all, "splitkv/combine_faults");
    add<targets::AppendFault>(all, "appendkv/faults");
    add<targets::PrefillFault>(all, "batch_prefill/faults");
    add<targets::BackwardFault>(all, "bwd/faults", "gfx942");
    return all;
}

class EverySeededFault : public testing::TestWithParam<Seeded> {};

/// Backward's dbias of a tile whose keys no row sees: a gradient needs its bias (W-12), a mask to hide the keys, and one key more
/// than a tile has, because each row and each key of a single tile are seen by somebody.
bool needs_four(const Seeded& seeded) {
    return seeded.name == to_string(targets::BackwardFault::dbias_only_where_seen);
}

TEST_P(EverySeededFault, ShrinksToThreeFields) {
    expect_small(GetParam(), needs_four(GetParam()) ? 4 : 3);
}

INSTANTIATE_TEST_SUITE_P(Host, EverySeededFault, testing::ValuesIn(all_seeded()), [](const auto& seeded) {
    std::string name = fmt::format("{}_{}", seeded.param.file, seeded.param.name);
    std::ranges::replace(name, '/', '_');
    return name;
});

} // namespace
} // namespace fmha::harness::test
