#pragma once

#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/run/case_runner.hpp"
#include "tests/harness/kernels_for_tests.hpp"
#include "tests/harness/random_case.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <string>
#include <string_view>

namespace fmha::harness::test {

/// Seeds first … first + count − 1.
struct SeedRange {
    std::uint64_t first = 0, count = 0;
};

/// The whole of `text` as a number; throws InputError that begins with `name`.
inline std::uint64_t number_of(std::string_view text, std::string_view name) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        throw InputError(fmt::format("{}={}: allowed: 0 to 2^64 - 1", name, text));
    return value;
}

/// Seeds that nobody has looked at, `usual` of them from the clock on; or those that the environment's FMHA_SEED and
/// FMHA_SEEDS (their number) ask for, nullptr where it does not.
inline SeedRange seeds_to_try(const char* first, const char* count, std::uint64_t clock,
                              std::uint64_t usual) {
    return {first != nullptr ? number_of(first, "FMHA_SEED") : clock,
            count != nullptr ? number_of(count, "FMHA_SEEDS") : usual};
}

/// The command that runs `seeds` again in the test program `program`.
inline std::string replay_command(const SeedRange& seeds, std::string_view program) {
    return fmt::format("FMHA_SEED={} FMHA_SEEDS={} build/host/bin/{}", seeds.first, seeds.count, program);
}

/// What an alarm says: the report of the result, and how it alone is run again.
inline std::string alarm(std::uint64_t seed, const CaseResult& result, std::string_view program) {
    return fmt::format("seed {}: {}: {}\n  {}\n  {}\n  repeat   {}", seed, to_string(result.outcome),
                       result.message, result.pattern, to_problem(random_case(seed), "gfx950").to_string(),
                       replay_command({seed, 1}, program));
}

/// Runs the problems of `seeds` in the test program `program` and reports every alarm.
inline void expect_no_alarm(const SeedRange& seeds, std::string_view program) {
    const FittingHostKernel source;
    std::uint64_t executed = 0;
    for (std::uint64_t n = 0; n < seeds.count; ++n) {
        const std::uint64_t seed = seeds.first + n;
        for (const CaseResult& result : run_case(random_case(seed), source, {})) {
            executed += result.outcome == Outcome::passed ? 1 : 0;
            EXPECT_EQ(result.outcome, Outcome::passed) << alarm(seed, result, program);
        }
    }
    EXPECT_EQ(executed, seeds.count);
}

} // namespace fmha::harness::test
