// A run that was killed, at any moment, continues and ends in the report of a run that was not; a journal that is
// not this run's is refused.

#include "tests/harness/spoiled_tail.hpp"
#include "tests/support/another_process.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {
bool disk_is_broken = false;
} // namespace

/// Stands before the system's, because no disk can be broken here.
extern "C" int fdatasync(int descriptor) {
    if (!disk_is_broken) return fsync(descriptor);
    errno = EIO;
    return -1;
}

namespace fmha::cli {
namespace {

using Json = nlohmann::ordered_json;
using fmha::test::in_another_process;
using fmha::test::wait_until;
using test::case_with;
using test::Ran;
using test::Scratch;
using testing::HasSubstr;
using testing::Not;

/// The third of five is wrong.
Ran verify(const std::vector<std::string>& more, const test::Spoil& spoil = test::spoil_33) {
    return test::verify_tails({15, 31, 33, 63, 129}, more, spoil);
}

std::string text_of(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

void write(const std::string& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
}

std::size_t lines_of(const std::string& file) {
    const std::string text = text_of(file);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Ledger and results of a report; how long things took is not the same twice.
Json findings(const std::string& file) {
    Json document = Json::parse(text_of(file));
    for (Json& result : document["results"])
        for (const char* key : {"kernel_seconds", "reference_seconds", "seconds"}) result.erase(key);
    return {{"ledger", document["ledger"]}, {"results", document["results"]}};
}

Json uninterrupted(const Scratch& folder, const std::string& jobs = "1") {
    EXPECT_EQ(verify({"--jobs", jobs, "--json", folder / "whole.json"}).code, 1);
    return findings(folder / "whole.json");
}

TEST(Journal, AKilledRunContinuesAndReportsTheSame) {
    const Scratch folder;
    const std::string journal = folder / "run.jsonl";
    const auto hangs_on_the_fourth = [](const FwdArgs& args) {
        test::spoil_33(args);
        while (args.shape.seqlen_k == 63) pause();
    };
    const int status = in_another_process(
        [&] {
            return verify({"--jobs", "2", "--journal", journal}, hangs_on_the_fourth).code;
        },
        [&](pid_t child) {
            wait_until([&] { return lines_of(journal) == 5; }); // the header and all but the hanging case
            kill(child, SIGKILL);
        });
    ASSERT_TRUE(WIFSIGNALED(status));
    const Ran ran = verify({"--jobs", "2", "--journal", journal, "--json", folder / "resumed.json"});
    EXPECT_EQ(ran.code, 1) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("continued: 4 cases had finished in earlier processes, says " + journal));
    EXPECT_THAT(ran.out, HasSubstr("5 asked   4 passed   1 failed"));
    EXPECT_EQ(findings(folder / "resumed.json"), uninterrupted(folder, "2"));
    EXPECT_EQ(Json::parse(text_of(folder / "resumed.json"))["run"]["resumed"], 4);
}

TEST(Journal, ContinuesFromEveryByteAtWhichItMayEnd) {
    const Scratch folder;
    const std::string journal = folder / "run.jsonl";
    const Json whole = uninterrupted(folder);
    EXPECT_EQ(verify({"--jobs", "1", "--journal", journal}).code, 1);
    const std::string text = text_of(journal);
    const auto header = text.find('\n');
    std::vector<std::size_t> ends{0, 1, header - 1, header, header + 1, header + 2, text.size() - 1};
    for (std::size_t at = header + 3; at < text.size(); at += text.size() / 7) ends.push_back(at);
    for (const std::size_t end : ends) {
        write(journal, text.substr(0, end));
        const Ran ran = verify({"--jobs", "1", "--journal", journal, "--json", folder / "resumed.json"});
        EXPECT_EQ(ran.code, 1) << ran.err;
        EXPECT_EQ(findings(folder / "resumed.json"), whole) << "cut off after byte " << end;
        EXPECT_EQ(lines_of(journal), 6U);
    }
}

TEST(Journal, ALossOfPowerMayLeaveRubbishAtTheEnd) {
    const Scratch folder;
    const std::string journal = folder / "run.jsonl";
    EXPECT_EQ(verify({"--jobs", "1", "--journal", journal}).code, 1);
    const std::string text = text_of(journal);
    for (const std::string& rubbish : {std::string(5000, '\0'), std::string("{\"case\": 0, \0\0\n", 15)}) {
        write(journal, text + rubbish);
        EXPECT_EQ(verify({"--jobs", "1", "--journal", journal}).code, 1);
        EXPECT_EQ(text_of(journal), text);
    }
}

TEST(Journal, AFinishedOneRunsNothingAndReportsTheSame) {
    const Scratch folder;
    const std::string journal = folder / "run.jsonl";
    int launches = 0;
    const auto counting = [&](const FwdArgs& args) {
        ++launches;
        test::spoil_33(args);
    };
    EXPECT_EQ(verify({"--jobs", "0", "--journal", journal}, counting).code, 1);
    EXPECT_GE(launches, 10);
    launches = 0;
    const Ran again =
        verify({"--jobs", "0", "--journal", journal, "--json", folder / "again.json"}, counting);
    EXPECT_EQ(launches, 0);
    EXPECT_EQ(again.code, 1);
    EXPECT_THAT(again.out, HasSubstr("FAILED " + case_with(33)));
    EXPECT_EQ(findings(folder / "again.json"), uninterrupted(folder));
}

TEST(Journal, AnInterruptedRunIsRedAndContinues) {
    const Scratch folder;
    const std::string journal = folder / "run.jsonl";
    const Ran stopped = verify({"--jobs", "1", "--journal", journal}, [](const FwdArgs& args) {
        test::spoil_33(args);
        if (args.shape.seqlen_k == 63) kill(getppid(), SIGTERM);
        while (args.shape.seqlen_k == 63) pause();
    });
    EXPECT_EQ(stopped.code, 1);
    EXPECT_THAT(stopped.out, HasSubstr("RED: interrupted\nthe same command continues it"));
    const Ran ran = verify({"--jobs", "1", "--journal", journal, "--json", folder / "resumed.json"});
    EXPECT_THAT(ran.out, Not(HasSubstr("interrupted")));
    EXPECT_EQ(findings(folder / "resumed.json"), uninterrupted(folder));
}

TEST(Journal, ACrashIsAnOutcomeAndAKillFromOutsideIsNone) {
    const Scratch folder;
    const std::string journal = folder / "run.jsonl";
    const Ran first = verify({"--jobs", "1", "--journal", journal}, [](const FwdArgs& args) {
        if (args.shape.seqlen_k == 31) std::abort();
        if (args.shape.seqlen_k == 63) std::raise(SIGKILL);
    });
    EXPECT_THAT(first.out, HasSubstr("2 crashed"));
    // The kernel is as it should be now, and its past is not forgotten.
    const Ran second = verify({"--jobs", "1", "--journal", journal}, [](const FwdArgs&) {});
    EXPECT_EQ(second.code, 1);
    EXPECT_THAT(second.out, HasSubstr("5 asked   4 passed   0 failed"));
    EXPECT_THAT(second.out, HasSubstr("1 crashed"));
    EXPECT_THAT(second.out, HasSubstr("CRASHED " + case_with(31)));
}

TEST(Journal, NothingExecutedStaysRed) {
    const Scratch folder;
    for (int i = 0; i < 2; ++i) {
        const Ran ran = verify({"--shard", "6/6", "--journal", folder / "run.jsonl"});
        EXPECT_EQ(ran.code, 1);
        EXPECT_THAT(ran.out, HasSubstr("RED: nothing was executed"));
    }
}

TEST(Journal, OfAnotherRunIsRefusedAndLeftAlone) {
    const Scratch folder;
    const std::string journal = folder / "run.jsonl";
    EXPECT_EQ(verify({"--jobs", "1", "--journal", journal}).code, 1);
    const std::string text = text_of(journal);
    const auto refused = [&](const std::vector<std::string>& more, const std::string& sentence) {
        std::vector<std::string> arguments{"--jobs", "1", "--journal", journal};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const Ran ran = verify(arguments);
        EXPECT_EQ(ran.code, 2);
        EXPECT_THAT(ran.err, HasSubstr(journal + ": belongs to another run: "));
        EXPECT_THAT(ran.err, HasSubstr(sentence));
        EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1);
        EXPECT_EQ(ran.out, "");
    };
    refused({"--shard", "1/2"}, "shards is 1 there and 2 here");
    refused({case_with(16)}, "cases is 5 there and 6 here");
    refused({"--seed", "7"}, "cases_sha256 is ");
    refused({"--arch", "gfx942"}, "arch is \"gfx950\" there and \"gfx942\" here");
    refused({"--repeats", "3"}, "repeats is 0 there and 3 here");
    refused({"--warmup", "1"}, "warmup is 0 there and 1 here");
    refused({"--kernels", "all"}, "kernels is \"planned\" there and \"all\" here");
    refused({"--timeout", "7"}, "timeout is 600 there and 7 here");
    refused({"--kernels", "all", "--repeats", "3"},
            " here, repeats is 0 there and 3 here; name another file, or ");
    EXPECT_EQ(text_of(journal), text);
    // Written by another build of this program.
    const auto digest = text.find("program_sha256\":\"") + 17;
    std::string other = text;
    other[digest] = other[digest] == '0' ? '1' : '0';
    write(journal, other);
    refused({}, "program_sha256 is ");
    // Neither the number of processes nor the definition of green changes an outcome.
    write(journal, text);
    EXPECT_EQ(verify({"--jobs", "2", "--not-run-budget", "3", "--journal", journal}).code, 1);
}

TEST(Journal, WhatIsNoneIsRefusedAndLeftAlone) {
    const Scratch folder;
    const std::string file = folder / "file";
    const auto refused = [&](const std::string& name, const std::string& sentence) {
        const Ran ran = verify({"--journal", name});
        EXPECT_EQ(ran.code, 2);
        EXPECT_THAT(ran.err, HasSubstr(sentence));
        EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1);
    };
    for (const char* text : {"precious", "precious\nlines\n", "{\"journey", "{}\n", "[1]\n"}) {
        write(file, text);
        refused(file, file + ": is not a journal of fmha verify");
        EXPECT_EQ(text_of(file), text);
    }
    write(file, "{\"journal\":\"fmha-bench-journal-1\",\"cases\":4}\n");
    refused(file, file + ": is another kind of journal, \"fmha-bench-journal-1\"; that of fmha verify is "
                         "\"fmha-verify-journal-1\"\n");
    refused(folder / "no/such/file", "no/such/file: cannot be written: No such file or directory");
    refused(FMHA_CASES_DIR, "cannot be written: Is a directory");
    refused("/dev/null", "/dev/null: a journal must be a regular file");
}

TEST(Journal, IsNoReportByAnyName) {
    const Scratch folder;
    const std::string journal = folder / "run.jsonl", link = folder / "link", other = folder / "./run.jsonl";
    std::filesystem::create_symlink("run.jsonl", link);
    for (const std::string& name : {journal, link, other}) {
        const Ran ran = verify({"--jobs", "1", "--journal", journal, "--json", name});
        EXPECT_EQ(ran.code, 2) << name;
        EXPECT_EQ(ran.err, "fmha verify: --json " + name + ": --journal names the same file\n");
        write(journal, "");
    }
    const Ran relative = verify({"--journal", "not_there.jsonl", "--json", "./not_there.jsonl"});
    EXPECT_EQ(relative.err, "fmha verify: --json ./not_there.jsonl: --journal names the same file\n");
    EXPECT_EQ(verify({"--json", "/dev/null", "--junit", "/dev/null"}).code, 1);
}

TEST(Journal, ADiskThatDoesNotKeepItTakesNoVerdictAway) {
    const Scratch folder;
    // From the third outcome on, and before the first.
    const auto breaking = [](const FwdArgs& args) { disk_is_broken = args.shape.seqlen_k == 33; };
    const Ran late = verify({"--jobs", "0", "--journal", folder / "run.jsonl"}, breaking);
    EXPECT_EQ(late.code, 2);
    EXPECT_THAT(late.out, HasSubstr("5 asked   5 passed"));
    EXPECT_THAT(late.err,
                HasSubstr("run.jsonl: outcomes may be missing from it, it cannot be synchronised with the "
                          "disk: Input/output error\n"));
    disk_is_broken = true;
    const Ran at_once = verify({"--jobs", "0", "--journal", folder / "new.jsonl"});
    disk_is_broken = false;
    EXPECT_EQ(at_once.code, 2);
    EXPECT_EQ(at_once.out, "");
    EXPECT_THAT(at_once.err, HasSubstr("new.jsonl: cannot be written: Input/output error\n"));
}

TEST(Journal, WhatHadNoMemoryIsTriedAgain) {
    const Scratch folder;
    const std::string journal = folder / "run.jsonl";
    const std::vector<std::string> arguments{
        "fwd/offsets_2_31[wide_tensor=o,wide_batch_stride=2147483712,fill=indexed]@1", "--jobs", "1",
        "--journal", journal};
    const test::Spoil correct = [](const FwdArgs&) {};
    const int status = in_another_process(
        [&] {
            const rlimit small{rlim_t{1} << 30, rlim_t{1} << 30};
            setrlimit(RLIMIT_AS, &small);
            const Ran ran = verify(arguments, correct);
            const bool said = ran.out.find("not run because of no_memory: 1, for example fwd/offsets_2_31") !=
                              std::string::npos;
            return said && ran.err.empty() ? ran.code : 99;
        },
        [](pid_t) {});
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 1);
    const Ran ran = verify(arguments, correct);
    EXPECT_THAT(ran.out, HasSubstr("continued: 5 cases had finished"));
    EXPECT_THAT(ran.out, HasSubstr("6 asked   6 passed"));
}

TEST(Journal, ADamagedLineInTheMiddleIsRefused) {
    const Scratch folder;
    const std::string journal = folder / "run.jsonl";
    EXPECT_EQ(verify({"--jobs", "1", "--journal", journal}).code, 1);
    std::string text = text_of(journal);
    text[text.find("\"outcome\"")] = '!';
    write(journal, text);
    const Ran ran = verify({"--journal", journal});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr(journal + ": line 2 is damaged; remove the file to begin anew"));
    EXPECT_EQ(text_of(journal), text);
}

TEST(Journal, TwoRunsAtOnceAreRefused) {
    const Scratch folder;
    const std::string journal = folder / "run.jsonl";
    const auto hang = [](const FwdArgs&) { pause(); };
    in_another_process(
        [&] {
            return verify({"--jobs", "1", "--journal", journal}, hang).code;
        },
        [&](pid_t child) {
            wait_until([&] { return lines_of(journal) == 1; });
            const Ran second = verify({"--jobs", "1", "--journal", journal});
            EXPECT_EQ(second.code, 2);
            EXPECT_THAT(second.err,
                        HasSubstr(fmt::format("{}: is in use by another run, process {}", journal, child)));
            kill(child, SIGKILL);
        });
    EXPECT_EQ(verify({"--jobs", "1", "--journal", journal}).code, 1);
}

TEST(Journal, AFullDiskTakesNoVerdictAway) {
    const Scratch folder;
    const std::string journal = folder / "run.jsonl", out = folder / "out", err = folder / "err";
    const int status = in_another_process(
        [&] {
            std::signal(SIGXFSZ, SIG_IGN);
            const rlimit small{4000, 4000};
            setrlimit(RLIMIT_FSIZE, &small);
            const Ran ran =
                verify({"--jobs", "1", "--journal", journal, "--format", "json", "--html", "/dev/null"});
            const bool all_there = Json::parse(ran.out)["ledger"]["asked"] == 5;
            const bool said =
                ran.err.find("run.jsonl: cannot be written from fwd/ragged_tail") != std::string::npos;
            return all_there && said ? ran.code : 99;
        },
        [](pid_t) {});
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 2);
    // The lines before are whole, and good for continuing.
    EXPECT_EQ(text_of(journal).back(), '\n');
    EXPECT_EQ(verify({"--jobs", "1", "--journal", journal}).code, 1);
    EXPECT_EQ(lines_of(journal), 6U);
}

} // namespace
} // namespace fmha::cli
