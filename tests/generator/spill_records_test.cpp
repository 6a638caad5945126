// Recorded spills: nothing grows unseen.

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/generator/audit.hpp"
#include "kernels/generator/spill_records.hpp"

#include <gmock/gmock.h>

namespace fmha::generator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RecordedSpills : public testing::Test {
  protected:
    /// A build of kernel `k` with so many bytes of scratch, and of one without.
    static built::Manifest spilling(std::int64_t bytes) {
        KernelConfig config;
        config.arch = "sm_90";
        built::Resources used, none;
        used.scratch_bytes = bytes;
        built::Manifest manifest;
        manifest.objects.push_back(
            {"o", "sm_90", "nvcc", "k", {{"k", config, "s", used}, {"l", config, "t", none}}});
        return manifest;
    }
    /// The audit's verdict on such a kernel, by the records.
    std::vector<std::string> wrong(std::int64_t bytes) const {
        KernelConfig config;
        config.signature.family = KernelFamily::fwd_splitkv_combine; // multiplies nothing
        built::Resources used;
        used.scratch_bytes = bytes;
        return violations(used, arch::ArchSet::built_in().at("sm_90").hardware(), config,
                          read_spills(folder_.path(), "sm_90").allowed("k"));
    }
    void write(const std::string& text) const { system::write_file(folder_.path() / "sm_90.txt", text); }
    system::TemporaryDirectory folder_;
};

TEST_F(RecordedSpills, AreAllowedAndNothingMore) {
    EXPECT_THAT(wrong(0), IsEmpty());
    EXPECT_THAT(wrong(8), ElementsAre("8 bytes of scratch a lane, allowed: 0"));
    EXPECT_THAT(accept_spills(spilling(104), folder_.path(), "as ever", "2026-05-17"),
                ElementsAre("sm_90: 1 spills changed or are new"));
    EXPECT_THAT(wrong(104), IsEmpty());
    EXPECT_THAT(wrong(96), IsEmpty());
    EXPECT_THAT(wrong(108), ElementsAre("108 bytes of scratch a lane, allowed: 104"));
    EXPECT_EQ(read_spills(folder_.path(), "sm_90").allowed("l"), 0);
}

TEST_F(RecordedSpills, ComeBackAsTheyWereAndGoWhereNothingSpills) {
    accept_spills(spilling(104), folder_.path(), "first", "2026-05-17");
    EXPECT_EQ(system::read_file(folder_.path() / "sm_90.txt"), "# 2026-05-17: first\n104 k\n");
    EXPECT_THAT(accept_spills(spilling(104), folder_.path(), "again", "2026-05-18"),
                ElementsAre("sm_90: 0 spills changed or are new"));
    accept_spills(spilling(0), folder_.path(), "mended", "2026-05-19");
    EXPECT_EQ(system::read_file(folder_.path() / "sm_90.txt"), "# 2026-05-17: first\n# 2026-05-19: mended\n");
}

TEST_F(RecordedSpills, ThatCannotBeReadAreRefused) {
    for (const char* text : {"k\n", "x k\n", "-4 k\n", "0 k\n", "4 \n", "4 k\n8 k\n", "\n"}) {
        write(text);
        EXPECT_THAT([&] { read_spills(folder_.path(), "sm_90"); },
                    testing::ThrowsMessage<InputError>(HasSubstr("sm_90.txt:")))
            << text;
    }
}

} // namespace
} // namespace fmha::generator
