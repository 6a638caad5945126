// Filters in Python: `--filter-file` of the command, and the limits of the process that runs one.

#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/catalog/query/python_filter.hpp"
#include "tests/support/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace fmha::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* ci_sweep = FMHA_CASES_DIR "/sweeps/fwd_ci.json";

/// A filter file in a folder of its own.
class FilterFile {
  public:
    explicit FilterFile(const std::string& text) { std::ofstream(path()) << text; }
    std::string path() const { return (folder_.path() / "filter.py").string(); }

  private:
    system::TemporaryDirectory folder_;
};

TEST(PythonFilter, RunsAPythonFilterAsUpstreamHasIt) {
    const FilterFile filter(
        "def filter_config(c):\n"
        "    print('noise')\n"
        "    return c.hdim_q == 128 and c.tile[0] == 128 and c.padding[2] == 1 and not c.dropout\n");
    const auto by_python =
        test::run({"enumerate", "--variant", "fwd", "--names", "--filter-file", filter.path()});
    const auto by_expression =
        test::run({"enumerate", "--variant", "fwd", "--names", "--filter",
                   "c.hdim_q == 128 and c.tile_m0 == 128 and c.pad_d == 1 and not c.dropout"});
    EXPECT_EQ(by_python.code, all_well) << by_python.err;
    EXPECT_THAT(by_python.out, StartsWith("fmha_fwd_"));
    EXPECT_EQ(by_python.out, by_expression.out);
    EXPECT_EQ(by_python.err, by_expression.err) << "N (filtered F, kept K)";
}

TEST(PythonFilter, BothFiltersMustAcceptAndTheLineSaysHowManyDid) {
    const FilterFile filter("def filter_config(c): return c.hdim_q == 128\n");
    const auto counted = test::run({"enumerate", ci_sweep, "--filter-file", filter.path(), "--filter",
                                    "c.tile_m0 == 128", "--count-only"});
    const std::string head = std::string("Expanded ") + ci_sweep + " -> 32 configs (filtered ";
    EXPECT_THAT(counted.out, StartsWith(head));
    const auto number_after = [&](const std::string& words) {
        return std::stoi(counted.out.substr(counted.out.find(words) + words.size()));
    };
    const int filtered = number_after("(filtered "), kept = number_after("kept ");
    EXPECT_EQ(filtered + kept, 32);
    const auto listed = test::run(
        {"enumerate", "--config", ci_sweep, "--where", "c.hdim_q == 128 and c.tile_m0 == 128", "--list"});
    EXPECT_GT(kept, 0);
    EXPECT_EQ(std::count(listed.out.begin(), listed.out.end(), '\n'), kept + 1);
    EXPECT_THAT(listed.out, HasSubstr("\n  [0] fmha_fwd_fp16_"));
    EXPECT_THAT(test::run({"enumerate", ci_sweep, "--count-only"}).out,
                testing::EndsWith(" -> 32 configs\n"));
}

TEST(PythonFilter, SaysWhatIsWrongWithAPythonFilter) {
    const auto said = [](const std::string& text) {
        const FilterFile filter(text);
        const auto ran = test::run({"enumerate", ci_sweep, "--filter-file", filter.path()});
        EXPECT_EQ(ran.code, bad_input);
        EXPECT_THAT(ran.err, HasSubstr("filter.py: "));
        return ran.err;
    };
    EXPECT_THAT(said("filter_config = 3\n"), HasSubstr("it defines no function filter_config(c)"));
    EXPECT_THAT(said("def filter_config(c): return c.colour\n"),
                HasSubstr("AttributeError: 'Kernel' object has no attribute 'colour'"));
    EXPECT_THAT(said("def filter_config(c) return 1\n"), HasSubstr("SyntaxError"));
    EXPECT_THAT(said("import os\ndef filter_config(c): os._exit(7)\n"),
                HasSubstr("python3 ended with 7: it said nothing"));
    EXPECT_THAT(said("import os\ndef filter_config(c): os._exit(0)\n"),
                HasSubstr("python3 ended without an answer"));
    EXPECT_THAT(said("import sys\ndef filter_config(c): sys.exit(0)\n"), HasSubstr("): SystemExit: 0\n"));
    EXPECT_THAT(said("raise KeyboardInterrupt\ndef filter_config(c): pass\n"),
                HasSubstr(": KeyboardInterrupt\n"));
    EXPECT_THAT(said("def filter_config(c): raise ValueError('one\\ntwo')\n"),
                HasSubstr("): ValueError: one two\n"));
    const FilterFile good("def filter_config(c): return True\n");
    EXPECT_THAT(
        test::run({"enumerate", ci_sweep, "--filter-file", good.path(), "--python", "/no/python"}).err,
        HasSubstr("/no/python: cannot be started"));
}

TEST(PythonFilter, EndsAPythonFilterThatHangs) {
    const FilterFile filter("def filter_config(c):\n    while True: pass\n");
    catalog::PythonFilter hanging(filter.path(), [](const KernelConfig&, std::string&) {},
                                  {.time = std::chrono::milliseconds(300)});
    const std::vector<KernelConfig> one(1);
    try {
        hanging.select(one, [](std::size_t) {});
        FAIL() << "it did not end";
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(), HasSubstr("filter_config needs more than the 0.3 s that are allowed"));
    }
}

/// The sentence for a filter with these lines before its only answer, within narrow limits; "" when it answers.
std::string limited(const std::string& lines) {
    const FilterFile filter("import os\ndef filter_config(c):\n" + lines + "    return True\n");
    catalog::PythonFilter python(filter.path(), [](const KernelConfig&, std::string& name) { name += "k"; },
                                 {.memory = std::int64_t{1} << 29, .file_size = 1 << 20, .output = 1 << 16});
    const std::vector<KernelConfig> one(1);
    try {
        python.select(one, [](std::size_t) {});
        return {};
    } catch (const InputError& error) {
        return error.what();
    }
}

TEST(PythonFilter, APythonFilterDoesNotReachBeyondItsLimits) {
    EXPECT_EQ(limited(""), "");
    EXPECT_THAT(limited("    bytearray(1 << 30)\n"), HasSubstr("filter_config(k): MemoryError"));
    EXPECT_THAT(limited("    while True: print('x' * 1000)\n"),
                HasSubstr("stopped, it printed more than 65536 bytes"));
    const system::TemporaryDirectory folder;
    const std::string file = (folder.path() / "large").string();
    EXPECT_THAT(limited("    open('" + file + "', 'wb').write(b'x' * (2 << 20))\n"),
                HasSubstr("File too large"));
    EXPECT_LE(std::filesystem::file_size(file), 1U << 20);
}

TEST(PythonFilter, APythonFilterGetsNeitherSecretsNorOpenFiles) {
    const system::TemporaryDirectory folder;
    const std::string file = (folder.path() / "of this process").string();
    std::FILE* const open_file = std::fopen(file.c_str(), "w"); // which a program that it starts inherits
    setenv("FMHA_SECRET", "of this process", 1);
    EXPECT_EQ(limited("    assert 'PATH' in os.environ\n    assert 'FMHA_SECRET' not in os.environ\n"), "");
    EXPECT_EQ(limited("    for n in os.listdir('/proc/self/fd'):\n"
                      "        at = '/proc/self/fd/' + n\n"
                      "        assert not os.path.exists(at) or 'of this' not in os.readlink(at)\n"),
              "");
    unsetenv("FMHA_SECRET");
    std::fclose(open_file);
}

} // namespace
} // namespace fmha::cli
