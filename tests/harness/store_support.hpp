#pragma once

#include "dispatcher/types/error.hpp"
#include "harness/store/store.hpp"
#include "tests/harness/command_support.hpp"
#include "tests/support/sentence_of.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <limits>
#include <string>

/// Runs and results that tests append to a store.
namespace fmha::store::test {

using cli::test::Scratch;
using harness::CaseResult;
using harness::Outcome;

inline constexpr double infinity = std::numeric_limits<double>::infinity();

inline RunRecord run_called(const std::string& id) {
    RunRecord run;
    run.id = id;
    run.kind = RunKind::verify;
    run.target = "host";
    run.arch = "gfx950";
    run.commit = "0123456789abcdef";
    run.started = "2026-01-02T03:04:05Z";
    run.identity = Json{{"cases", 3}};
    return run;
}

inline CaseResult result_called(const std::string& name, double ratio = 0.5) {
    CaseResult r;
    r.name = name;
    r.about = "about";
    r.family = ApiFamily::fwd;
    r.tier = harness::Tier::smoke;
    r.labels = {"mask", "tails"};
    r.kernel = "kernel";
    r.outcome = ratio <= 1.0 ? Outcome::passed : Outcome::failed;
    r.gates = {{"G1", "o", ratio <= 1.0, true, ratio, ratio <= 1.0 ? "" : "too far"},
               {"G4", "o", false, false, 7.0}};
    r.seed = 18'000'000'000'000'000'000U;
    r.kernel_seconds = 0.25;
    return r;
}

inline void add(Recording& recording, const CaseResult& result) {
    recording.add(result.name, {&result, 1});
}

/// The sentence with which `work` refuses.
template <class Work>
std::string refusal(const Work& work) {
    return fmha::test::sentence_of<InputError>(work);
}

inline void run_sql(const std::string& file, const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
}

} // namespace fmha::store::test
