// Where the entries of a gappy cache begin, exchanged with other programs.

#include "harness/npy/npy.hpp"
#include "tests/harness/command_support.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace fmha::cli {
namespace {

using test::Ran;
using test::run;
using test::Scratch;
using testing::HasSubstr;

/// Where an entry begins among the slots of its pages follows from no length. A start that leads out of the table is a sentence.
TEST(Exchange, GapsAreGivenAndTaken) {
    const Scratch folder;
    const std::string one = "pagedkv/plain[batch=2,seqlen_k=[40,50],length_form_k=seqlen,gappy=true]@1";
    const std::string tensors = folder / "given", file = tensors + "/seqstart_k.npy";
    const std::vector<std::string> again{"reference", "--case", one,     "--cases-root", FMHA_CASES_DIR,
                                         "--tensors", tensors,  "--out", folder / "out"};
    ASSERT_EQ(run({"reference", "--case", one, "--cases-root", FMHA_CASES_DIR, "--out", tensors}).code, 0);
    ASSERT_TRUE(std::filesystem::exists(file)) << "no other program can know where entries begin";
    harness::NpyArray starts = harness::read_npy(file);
    ASSERT_EQ(starts.shape, std::vector<std::int64_t>{3});
    std::int32_t second = 0;
    std::memcpy(&second, starts.bytes.data() + 4, 4);
    EXPECT_GT(second, 40) << "the first entry has 40 keys, and a gap follows";
    const auto put = [&](std::int32_t start) {
        std::memcpy(starts.bytes.data() + 4, &start, 4);
        harness::write_npy(file, starts);
    };
    const auto o = [&] { return harness::read_npy(folder / "out/o.npy").bytes; };
    ASSERT_EQ(run(again).code, 0) << run(again).err;
    const auto right = o();
    put(second - 1); // a slot of the gap comes first, the last key is left out
    EXPECT_TRUE(run(again).code != 0 || o() != right);
    put(1 << 30);
    const Ran refused = run(again);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("P-3: entry 1 has 50 keys from slot 1073741824 on"));
}

} // namespace
} // namespace fmha::cli
