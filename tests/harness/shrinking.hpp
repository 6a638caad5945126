#pragma once

#include "harness/cases/load.hpp"
#include "harness/cases/plain_case.hpp"
#include "harness/shrink/isolated_judge.hpp"
#include "tests/harness/faulty_kernels.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fmha::harness::test {

/// A mistake, and the file whose cases notice it.
struct Seeded {
    const char* file;
    std::string_view name;
    Launch launch;
    const char* arch = "gfx950";
};

/// What is asked of every seeded mistake: the first red case of the file becomes one with at most `most` fields that are not
/// plain, in time, and the smaller one is red by the same mark when its name is read again. Each case runs in a process of its own,
/// because a mistake may read what does not exist.
inline void expect_small(const Seeded& seeded, std::size_t most = 3) {
    const auto cases = cases_of(seeded.file);
    const auto source = kernels_that(seeded.launch, cases, seeded.arch);
    CaseRunOptions options;
    options.arch = seeded.arch;
    const CaseJudge judge = isolated_judge(*source, options, std::chrono::minutes(1));
    std::optional<Shrunk> shrunk;
    for (const Case& c : cases)
        if (!shrunk) shrunk = shrink(c, plain_case(c.family, FMHA_CASES_DIR), judge, {});
    ASSERT_TRUE(shrunk) << "no case of " << seeded.file << " is red";
    fmt::print("{}", to_text(*shrunk, ""));
    EXPECT_LE(shrunk->needed.size(), most) << to_text(*shrunk, "");
    EXPECT_TRUE(shrunk->complete);
    EXPECT_LE(shrunk->seconds, 30.0);
    EXPECT_NE(find_marked(judge(load_case(shrunk->smallest.id, FMHA_CASES_DIR)), shrunk->mark), nullptr)
        << shrunk->smallest.id;
}

} // namespace fmha::harness::test
