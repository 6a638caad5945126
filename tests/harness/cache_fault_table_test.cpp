// Lines of tests/hip_target/faults_kv.txt: a mistake in a program over a cache, and the case that notices it on Hopper.
// gpu_faults.sh runs them on a GPU; here they hold on the host.

#include "tests/harness/faulty_kernels.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
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

/// The rows from `first` on have every fault once. Returns the first row behind them.
template <class Fault>
std::size_t expect_every(const Rows& rows, std::size_t first) {
    for (const auto& [fault, name] : EnumTable<Fault>::names) {
        if (first >= rows.size()) {
            ADD_FAILURE() << "no line for " << name;
            return first;
        }
        EXPECT_EQ(rows[first].first, name);
        EXPECT_NE(first_red(cases_of(rows[first].second), launch_with(fault), "sm_90"), "")
            << rows[first].second << " does not notice " << name;
        ++first;
    }
    return first;
}

TEST(CacheFaultTable, HasEveryFaultOnceWithACaseThatNoticesIt) {
    const Rows rows = table();
    std::size_t next = expect_every<targets::CacheFault>(rows, 0);
    next = expect_every<targets::CombineFault>(rows, next);
    EXPECT_EQ(expect_every<targets::AppendFault>(rows, next), rows.size());
}

} // namespace
} // namespace fmha::harness::test
