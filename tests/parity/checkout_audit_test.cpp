#include "parity/checkout_audit.hpp"

#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "parity/facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace fmha::parity {
namespace {

using testing::HasSubstr;

/// A generator that lists the files beside itself: `<api>.<target>.<receipt>.<mask>.txt`.
constexpr std::string_view generator_text = R"(import argparse, os, sys
p = argparse.ArgumentParser()
p.add_argument("--targets", default="gfx9")
p.add_argument("-a", "--api")
p.add_argument("-l", "--list_blobs")
p.add_argument("-r", "--receipt")
p.add_argument("-m", "--mask", default="simplified")
a = p.parse_args()
here = os.path.dirname(os.path.abspath(__file__))
try:
    names = open(os.path.join(here, ".".join([a.api, a.targets, a.receipt, a.mask, "txt"]))).read().split()
except OSError as error:
    sys.exit("the generator has no such list: %s" % error)
with open(a.list_blobs, "w") as out:
    for name in names:
        out.write("/some/folder/" + name + "\n")
)";

/// The same before upstream had targets and mask vocabularies.
constexpr std::string_view old_generator_text = R"(import argparse, os
p = argparse.ArgumentParser()
p.add_argument("-a", "--api")
p.add_argument("-l", "--list_blobs")
p.add_argument("-r", "--receipt")
a = p.parse_args()
here = os.path.dirname(os.path.abspath(__file__))
with open(a.list_blobs, "w") as out:
    out.write(open(os.path.join(here, a.api + ".txt")).read())
)";

class FakeCheckout : public testing::Test {
  protected:
    FakeCheckout() { std::filesystem::create_directories(example()); }

    std::filesystem::path example() const { return root_.path() / "example/ck_tile/01_fmha"; }

    void write(const std::string& name, std::string_view text) const {
        std::ofstream(example() / name) << text;
    }

    void write_list(const std::string& file, const std::vector<std::string>& names) const {
        std::string text;
        for (const auto& name : names) text += name + "\n";
        write(file, text + "fmha_fwd_appendkv_api.cpp\n");
    }

    /// The list of our own rule set ck for append-KV.
    std::vector<std::string> ours(const char* arch) const {
        catalog::Request request;
        request.targets = {ArchName(arch)};
        request.families = catalog::families_of(ApiFamily::fwd_appendkv);
        return names_of(archs_, request);
    }

    AuditReport audit() const { return audit_checkout(archs_, scope_); }

    system::TemporaryDirectory root_;
    arch::ArchSet archs_ = arch::ArchSet::built_in();
    CheckoutScope scope_{.root = root_.path(),
                         .apis = {ApiFamily::fwd_appendkv},
                         .archs = {ArchName("gfx942")},
                         .profiles = {},
                         .masks = {}};
};

TEST_F(FakeCheckout, ThatAgreesIsFine) {
    write("generate.py", generator_text);
    write_list("fwd_appendkv.gfx942.0.simplified.txt", ours("gfx942"));
    const auto report = audit();
    EXPECT_TRUE(report.ok()) << to_text(report);
    EXPECT_EQ(report.compared(), 198);
}

TEST_F(FakeCheckout, ThatDropsAddsAndRenamesIsReportedNameByName) {
    auto names = ours("gfx942");
    const auto dropped = names[3];
    names.erase(names.begin() + 3);
    const std::string renamed = names[20];
    names[20].insert(names[20].find("_gfx9"), "_v2");
    names.push_back("fmha_fwd_appendkv_d512_fp16_b64x64x512x512_vr_psskddv_gfx9.cpp");
    write("generate.py", generator_text);
    write_list("fwd_appendkv.gfx942.0.simplified.txt", names);
    const auto report = audit();
    EXPECT_FALSE(report.ok());
    ASSERT_TRUE(report.checks.at(0).difference);
    const auto& found = *report.checks[0].difference;
    EXPECT_EQ(found.lost_count(), 1U);
    EXPECT_EQ(found.gained_count(), 1U);
    EXPECT_EQ(found.renamed_count(), 1U);
    const auto text = to_text(report);
    EXPECT_THAT(text, HasSubstr(dropped));
    EXPECT_THAT(text, HasSubstr("fmha_fwd_appendkv_d512"));
    EXPECT_THAT(text, HasSubstr("because tables: no entry gives \"d512"));
    EXPECT_THAT(text, HasSubstr(renamed));
}

TEST_F(FakeCheckout, WhoseGeneratorFailsShowsItsStderr) {
    write("generate.py", generator_text);
    const auto report = audit();
    EXPECT_FALSE(report.ok());
    EXPECT_THAT(to_text(report), HasSubstr("the generator has no such list"));
    EXPECT_THAT(to_text(report), HasSubstr("failed with exit code 1"));
}

TEST_F(FakeCheckout, WhoseGeneratorDoesNotStartIsAnInputError) {
    write("generate.py", "raise RuntimeError('no module named codegen')\n");
    EXPECT_THAT([&] { audit(); }, testing::ThrowsMessage<InputError>(HasSubstr("no module named codegen")));
}

TEST_F(FakeCheckout, WithoutTargetsIsComparedWithoutSuffixes) {
    auto names = ours("gfx942");
    for (auto& name : names) name.erase(name.find("_gfx9"), 5);
    write("generate.py", old_generator_text);
    write_list("fwd_appendkv.txt", names);
    auto report = audit();
    EXPECT_TRUE(report.ok()) << to_text(report);
    EXPECT_THAT(to_text(report), HasSubstr("has no --targets"));

    names.pop_back();
    write_list("fwd_appendkv.txt", names);
    EXPECT_FALSE(audit().ok());
}

TEST_F(FakeCheckout, IsAskedForEveryApiArchitectureAndReceipt) {
    write("generate.py", generator_text);
    for (const char* arch : {"gfx942", "gfx1100"})
        for (const char* receipt : {"0", "2"}) {
            catalog::Request request;
            request.targets = {ArchName(arch)};
            request.profile = catalog::parse_profile(receipt);
            request.families = catalog::families_of(ApiFamily::fwd_appendkv);
            write_list(std::string("fwd_appendkv.") + arch + "." + receipt + ".simplified.txt",
                       names_of(archs_, request));
        }
    scope_.archs = {ArchName("gfx942"), ArchName("gfx1100")};
    scope_.profiles = {catalog::parse_profile("0"), catalog::parse_profile("flash_fwd")};
    const auto report = audit();
    EXPECT_TRUE(report.ok()) << to_text(report);
    EXPECT_EQ(report.checks.size(), 4U);
}

TEST_F(FakeCheckout, WithoutGeneratorIsAnInputError) {
    EXPECT_THROW(audit(), InputError);
}

TEST_F(FakeCheckout, RefusesProfilesWithoutNumber) {
    write("generate.py", generator_text);
    scope_.profiles = {catalog::parse_profile("flash")};
    EXPECT_THAT([&] { audit(); }, testing::ThrowsMessage<InputError>(HasSubstr("\"flash\" has no number")));
}

} // namespace
} // namespace fmha::parity
