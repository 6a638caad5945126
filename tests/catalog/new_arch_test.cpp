// The worked example of kernels/arch/README.md: an architecture that is two kinds of files and no code.

#include "dispatcher/types/error.hpp"
#include "tests/catalog/catalog_support.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace fmha::catalog::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

/// A folder as a user would lay it out: the shipped files and three new ones.
class NewArch : public testing::Test {
  protected:
    // CTest runs the tests of a program at the same time, each in a process of its own.
    NewArch() : folder_(fs::path(testing::TempDir()) / fmt::format("fmha_new_arch_{}", ::getpid())) {
        fs::remove_all(folder_);
        for (const arch::ArchSet::File& file : arch::ArchSet::built_in_files()) {
            if (file.path.starts_with("schema/")) continue;
            fs::create_directories((folder_ / file.path).parent_path());
            std::ofstream(folder_ / file.path) << file.text;
        }
        const fs::path data(FMHA_TEST_DATA);
        fs::copy_file(data / "gfx1300.json", folder_ / "gfx1300.json");
        fs::copy_file(data / "ck_gfx13.json", folder_ / "tables/ck/gfx13.json");
        fs::copy_file(data / "house_gfx13.json", folder_ / "tables/house/gfx13.json");
    }
    ~NewArch() override { fs::remove_all(folder_); }

    fs::path folder_;
};

TEST_F(NewArch, IsListedByItsTables) {
    const arch::ArchSet archs = arch::ArchSet::load(folder_);
    EXPECT_EQ(archs.at("gfx1300").hardware().limits.compute_units, 80);
    // cap (t, f) x mask x bias without cap-and-alibi, in both modes: 2 x (2 + 4).
    Request r = request(RuleSet::ck, {"gfx1300"});
    r.families = only({KernelFamily::fwd});
    const std::string stem = "_b64x64x32x128x32x128_r4x1x1_r4x1x1_w16x16x16_w16x16x16_o2_qr_vr_pssk_";
    const auto named = [&](const char* mode, const char* features) {
        return std::string("fmha_fwd_d128_bf16_") + mode + stem + features +
               "_nlse_ndropout_nskip_nqscale_ntrload_nsink_gfx13.cpp";
    };
    EXPECT_THAT(names(archs, r),
                ElementsAre(named("batch", "logits_nbias_nmask"), named("batch", "logits_nbias_mask"),
                            named("batch", "nlogits_nbias_nmask"), named("batch", "nlogits_alibi_nmask"),
                            named("batch", "nlogits_nbias_mask"), named("batch", "nlogits_alibi_mask"),
                            named("group", "logits_nbias_nmask"), named("group", "logits_nbias_mask"),
                            named("group", "nlogits_nbias_nmask"), named("group", "nlogits_alibi_nmask"),
                            named("group", "nlogits_nbias_mask"), named("group", "nlogits_alibi_mask")));
    r.rules = RuleSet::house;
    EXPECT_THAT(names(archs, r), ElementsAre("fwd_gfx1300_bf16_batch_h128x128_qr_t64x64x32x128x32x128_"
                                             "w4x1x1x4x1x1_i16x16x16x16x16x16_pssk_sink_o2",
                                             "fwd_gfx1300_bf16_batch_h128x128_qr_t64x64x32x128x32x128_"
                                             "w4x1x1x4x1x1_i16x16x16x16x16x16_pssk_causal_o2",
                                             "fwd_gfx1300_bf16_group_h128x128_qr_t64x64x32x128x32x128_"
                                             "w4x1x1x4x1x1_i16x16x16x16x16x16_pssk_skip_sink_o2",
                                             "fwd_gfx1300_bf16_group_h128x128_qr_t64x64x32x128x32x128_"
                                             "w4x1x1x4x1x1_i16x16x16x16x16x16_pssk_causal_skip_o2"));
}

TEST_F(NewArch, ChangesNoOtherList) {
    const arch::ArchSet archs = arch::ArchSet::load(folder_);
    const arch::ArchSet shipped = arch::ArchSet::built_in();
    for (const arch::ArchTables& arch : shipped.all()) {
        const Request r = request(RuleSet::house, {arch.name()});
        EXPECT_EQ(names(archs, r), names(shipped, r)) << arch.name().view();
    }
}

TEST_F(NewArch, ABrokenFileIsNamed) {
    std::ofstream(folder_ / "gfx1300.json") << "{\"arch\": }";
    EXPECT_THAT([&] { arch::ArchSet::load(folder_); },
                testing::ThrowsMessage<InputError>(testing::HasSubstr("gfx1300.json")));
    EXPECT_THAT([&] { arch::ArchSet::load(folder_ / "absent"); },
                testing::ThrowsMessage<InputError>(testing::HasSubstr("absent")));
}

} // namespace
} // namespace fmha::catalog::test
