// Lines of tests/hip_target/faults_kv.txt: a mistake in a program over a cache, and the case that notices it on Hopper.
// gpu_faults.sh runs them on a GPU; here they hold on the host.

#include "tests/harness/faulty_kernels.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fmha::harness::test {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

Rows table() {
    std::ifstream file(FMHA_FAULTS_FILE);
    Rows rows;
    for (std::string fault, name; file >> fault >> name;) rows.emplace_back(fault, name);
    return rows;
}

/// Row `at` has that fault. Returns the row behind it.
template <class Fault>
std::size_t expect_row(const Rows& rows, std::size_t at, Fault fault, std::string_view name) {
    if (at >= rows.size()) {
        ADD_FAILURE() << "no line for " << name;
        return at;
    }
    EXPECT_EQ(rows[at].first, name);
    EXPECT_NE(first_red(cases_of(rows[at].second), launch_with(fault), "sm_90"), "")
        << rows[at].second << " does not notice " << name;
    return at + 1;
}

/// The rows from `first` on have every fault once. Returns the first row behind them.
template <class Fault>
std::size_t expect_every(const Rows& rows, std::size_t first) {
    for (const auto& [fault, name] : EnumTable<Fault>::names) first = expect_row(rows, first, fault, name);
    return first;
}

/// The rows from `first` on have every fault of programs over a cache that paged-KV can make, once: it has neither splits nor slots.
std::size_t expect_paged(const Rows& rows, std::size_t first) {
    using targets::CacheFault;
    for (const auto& [fault, name] : EnumTable<CacheFault>::names) {
        if (fault >= CacheFault::split_edge_late || fault == CacheFault::cache_slot_ignored) continue;
        first = expect_row(rows, first, fault, name);
    }
    return first;
}

TEST(CacheFaultTable, HasEveryFaultOnceWithACaseThatNoticesIt) {
    const Rows rows = table();
    std::size_t next = expect_every<targets::CacheFault>(rows, 0);
    next = expect_every<targets::CombineFault>(rows, next);
    next = expect_every<targets::AppendFault>(rows, next);
    next = expect_paged(rows, next);
    EXPECT_EQ(expect_every<targets::PrefillFault>(rows, next), rows.size());
}

} // namespace
} // namespace fmha::harness::test
