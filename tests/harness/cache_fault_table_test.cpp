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

/// Whether the kernel that Hopper plans for a case is a warp-specialised one.
bool plans_teams(const std::string& name) {
    bool has_teams = false;
    const auto noted = [&](const KernelConfig& config, const Invocation&) {
        has_teams = config.algorithm.pipeline == Pipeline::ws;
    };
    first_red(cases_of(name), noted, "sm_90");
    return has_teams;
}

/// The rows from `first` on have every fault of programs over a cache that paged-KV can make, once: it has neither splits nor slots.
/// `with_teams`: of the warp-specialised program, which packs no heads, in cases that plan it.
std::size_t expect_paged(const Rows& rows, std::size_t first, bool with_teams) {
    using enum targets::CacheFault;
    for (const auto& [fault, name] : EnumTable<targets::CacheFault>::names) {
        if (fault >= split_edge_late || fault == cache_slot_ignored) continue;
        if (with_teams && (fault == packed_heads_are_one || fault == last_packed_head_missing)) continue;
        EXPECT_TRUE(first < rows.size() && plans_teams(rows[first].second) == with_teams) << name;
        first = expect_row(rows, first, fault, name);
    }
    return first;
}

TEST(CacheFaultTable, HasEveryFaultOnceWithACaseThatNoticesIt) {
    const Rows rows = table();
    std::size_t next = expect_every<targets::CacheFault>(rows, 0);
    next = expect_every<targets::CombineFault>(rows, next);
    next = expect_every<targets::AppendFault>(rows, next);
    next = expect_paged(rows, next, false);
    next = expect_paged(rows, next, true);
    EXPECT_EQ(expect_every<targets::PrefillFault>(rows, next), rows.size());
}

} // namespace
} // namespace fmha::harness::test
