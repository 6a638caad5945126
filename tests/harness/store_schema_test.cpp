// A store of an older program is brought up to date; another file, or a store of a newer program, is refused in a sentence.

#include "tests/harness/store_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace fmha::store {
namespace {

using namespace test;

/// The first schema, as it was written then.
constexpr const char* first_schema =
    "CREATE TABLE word(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
    "CREATE TABLE run(run INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, selection TEXT "
    "NOT NULL,"
    " command TEXT NOT NULL, version TEXT NOT NULL, commit_id TEXT NOT NULL, machine TEXT NOT NULL, compiler "
    "TEXT NOT "
    "NULL, driver TEXT NOT NULL, target TEXT NOT NULL, arch TEXT NOT NULL, started TEXT NOT NULL, seconds "
    "REAL NOT "
    "NULL, shard INTEGER NOT NULL, shards INTEGER NOT NULL, asked INTEGER NOT NULL, identity TEXT NOT NULL, "
    "verdict "
    "TEXT NOT NULL);"
    "CREATE TABLE result(result INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, "
    "name "
    "INTEGER NOT NULL REFERENCES word, nth INTEGER NOT NULL, kernel INTEGER NOT NULL REFERENCES word, family "
    "INTEGER "
    "NOT NULL REFERENCES word, tier INTEGER NOT NULL REFERENCES word, labels INTEGER NOT NULL REFERENCES "
    "word, about "
    "INTEGER NOT NULL REFERENCES word, outcome TEXT NOT NULL, reason TEXT NOT NULL, message INTEGER NOT NULL "
    "REFERENCES word, pattern INTEGER NOT NULL REFERENCES word, numerics INTEGER NOT NULL REFERENCES word, "
    "reproduce "
    "INTEGER NOT NULL REFERENCES word, worst TEXT NOT NULL, rows INTEGER NOT NULL, elements INTEGER NOT "
    "NULL, sampled "
    "INTEGER NOT NULL, seed INTEGER NOT NULL, kernel_seconds REAL, reference_seconds REAL, seconds REAL, "
    "UNIQUE(run, "
    "name, nth));"
    "CREATE TABLE margin(result INTEGER NOT NULL REFERENCES result ON DELETE CASCADE, nth INTEGER NOT NULL, "
    "gate "
    "INTEGER NOT NULL REFERENCES word, tensor INTEGER NOT NULL REFERENCES word, passed INTEGER NOT NULL, "
    "required "
    "INTEGER NOT NULL, ratio REAL, detail INTEGER NOT NULL REFERENCES word, PRIMARY KEY(result, nth)) "
    "WITHOUT ROWID;"
    "INSERT INTO word VALUES (1, ''), (2, 'old@1'), (3, 'kernel'), (4, 'fwd'), (5, 'smoke'), (6, '[]'), (7, "
    "'G1'), (8, "
    "'o');"
    "INSERT INTO run VALUES (1, 'old', 'verify', '', '', '0.1', 'abc', '', '', '', 'host', 'gfx950', "
    "'2025-01-01T00:00:00Z', 1.0, 1, 1, 1, '{}', 'green');"
    "INSERT INTO result VALUES (1, 1, 2, 0, 3, 4, 5, 6, 1, 'passed', 'none', 1, 1, 1, 1, '[]', 9, 9, 0, 1, "
    "0.1, 0.2, "
    "0.3);"
    "INSERT INTO margin VALUES (1, 0, 7, 8, 1, 1, 0.25, 1);"
    "PRAGMA application_id = 1718446177; PRAGMA user_version = 1;";

TEST(Store, BringsAnOldFileToTheNewestSchema) {
    for (const Access access : {Access::read, Access::write}) {
        const Scratch folder;
        const std::string file = folder / "runs.db";
        run_sql(file, first_schema);
        const Store store(file, access);
        EXPECT_EQ(store.database().number("PRAGMA user_version"), 5);
        const auto results = store.results("old");
        ASSERT_EQ(results.size(), 1U);
        EXPECT_EQ(results.front().name, "old@1");
        ASSERT_EQ(results.front().gates.size(), 1U);
        EXPECT_EQ(results.front().gates.front().ratio, 0.25);
        EXPECT_FALSE(results.front().device);
        EXPECT_EQ(store.database().number("SELECT count(*) FROM results WHERE device IS NULL"), 1);
        EXPECT_TRUE(store.times("old").empty());
        Recording recording(file, run_called("new"));
        recording.add(TimeRecord{"old@1", "kernel", 1, harness::BenchOutcome::measured, "", 1.0, 1.0, 1.0,
                                 1.0, 1, 1, 0.0, 0.0});
        EXPECT_EQ(recording.failure(), "");
        EXPECT_EQ(store.times("new").size(), 1U);
    }
}

TEST(Store, NamesItselfWhereItHoldsAnotherFamily) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    run_sql(file, first_schema);
    { const Store store(file, Access::write); }
    run_sql(file, "UPDATE word SET text = 'forward' WHERE text = 'fwd'");
    EXPECT_THAT(refusal([&] { Store(file, Access::read).results("old"); }),
                testing::StartsWith(file + ": is damaged: \"forward\" stands where fwd, "));
}

TEST(Store, NamesItselfWhereItHoldsNoJson) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    run_sql(file, first_schema);
    { const Store store(file, Access::write); }
    run_sql(file, "UPDATE run SET identity = '{'");
    EXPECT_THAT(refusal([&] { Store(file, Access::read).runs(); }),
                testing::StartsWith(file + ": is damaged: "));
    run_sql(file, "UPDATE run SET identity = '7'");
    EXPECT_EQ(refusal([&] { Store(file, Access::read).runs(); }),
              file + ": is damaged: the identity of a run is 7, expected an object");
    run_sql(file, "UPDATE run SET identity = '{\"kernels_sha256\": [1]}'");
    EXPECT_EQ(refusal([&] { Store(file, Access::read).runs(); }),
              file + ": is damaged: kernels_sha256 of the identity of a run is [1], expected a text");
    run_sql(file, "UPDATE result SET worst = '[1]'");
    EXPECT_THAT(refusal([&] { Store(file, Access::read).results("old"); }),
                testing::StartsWith(file + ": is damaged: "));
}

TEST(Store, TakesEveryNameOfAFileAsItIs) {
    const Scratch folder;
    const auto here = std::filesystem::current_path();
    std::filesystem::current_path(folder / "");
    for (const std::string name : {"file:a.db", "b?mode=memory", "c %41#.db", ":memory:"}) {
        { const Recording recording(name, run_called("one")); }
        EXPECT_TRUE(std::filesystem::exists(name)) << name;
        EXPECT_EQ(Store(name, Access::read).runs().size(), 1U) << name;
    }
    std::filesystem::current_path(here);
}

TEST(Store, IsKnownByItsFirstBytes) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    EXPECT_FALSE(looks_like_store(file)) << "there is none";
    { const Store store(file, Access::write); }
    EXPECT_TRUE(looks_like_store(file));
    std::filesystem::resize_file(file, 8);
    EXPECT_FALSE(looks_like_store(file)) << "its beginning is cut";
    EXPECT_FALSE(looks_like_store(std::filesystem::path(file).parent_path())) << "a folder";
}

TEST(Store, RefusesWhatIsNoneInASentence) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    const auto opened = [&](Access access = Access::write) {
        return refusal([&] { const Store store(file, access, std::chrono::milliseconds(100)); });
    };
    EXPECT_EQ(opened(Access::read), file + ": there is no such file");
    std::ofstream(file).close();
    EXPECT_EQ(opened(Access::read), file + ": is empty, it is no store");
    EXPECT_EQ(std::filesystem::file_size(file), 0U);
    run_sql(file, "CREATE TABLE mine(a); DROP TABLE mine");
    EXPECT_EQ(opened(Access::read), file + ": is empty, it is no store");
    std::filesystem::remove(file);
    std::ofstream(file) << std::string(5000, 'x');
    EXPECT_EQ(opened(), file + ": is no store of fmha: it is no SQLite file");
    EXPECT_EQ(opened(Access::read), file + ": is no store of fmha: it is no SQLite file");
    std::filesystem::remove(file);
    run_sql(file, "CREATE TABLE mine(a)");
    EXPECT_EQ(opened(), file + ": is no store of fmha: it is a database of something else");
    std::filesystem::remove_all(file);
    { const Store store(file, Access::write); }
    run_sql(file, "PRAGMA user_version = 99");
    EXPECT_EQ(opened(), file + ": was written by a newer fmha, with schema 99; this one knows 5");
    for (const char* version : {"0", "-3"}) {
        run_sql(file, std::string("PRAGMA user_version = ") + version);
        for (const Access access : {Access::read, Access::write})
            EXPECT_EQ(opened(access),
                      file + ": is damaged: it has tables, and schema " + version + ", which no fmha wrote");
    }
    std::filesystem::remove_all(file);
    std::filesystem::create_directory(file);
    EXPECT_EQ(opened(), file + ": a store must be a regular file");
}

} // namespace
} // namespace fmha::store
