// Facts of whole lists: a kernel, a spill or a register more or less is seen.

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/generator/list_facts.hpp"

#include <gmock/gmock.h>

namespace fmha::generator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FactsOfLists : public testing::Test {
  protected:
    static built::BuiltKernel kernel(KernelFamily family, std::int64_t vgprs, std::int64_t scratch = 0) {
        KernelConfig config;
        config.arch = "gfx942";
        config.signature.family = family;
        built::Resources used;
        used.vgprs = vgprs;
        used.scratch_bytes = scratch;
        return {"k", config, "s", used};
    }
    static built::Manifest build(std::vector<built::BuiltKernel> kernels,
                                 const std::string& compiler = "clang 22") {
        built::Manifest manifest;
        manifest.objects.push_back({"o", "gfx942", compiler, "k", std::move(kernels)});
        return manifest;
    }
    /// Two kernels of forward and one of the combine, as accepted.
    static built::Manifest whole() {
        return build({kernel(KernelFamily::fwd, 100), kernel(KernelFamily::fwd, 90),
                      kernel(KernelFamily::fwd_splitkv_combine, 40)});
    }
    std::vector<std::string> accept(const built::Manifest& manifest) const {
        return accept_facts(manifest, folder_.path(), "first", "2026-05-17");
    }
    std::vector<std::string> wrong(const built::Manifest& manifest, bool whole_families = true) const {
        std::vector<std::string> sentences;
        for (const auto& finding : against_facts(manifest, folder_.path(), whole_families).findings)
            sentences.push_back(finding.name.substr(0, finding.name.find(" fp16")) + ": " + finding.sentence);
        return sentences;
    }
    system::TemporaryDirectory folder_;
};

TEST_F(FactsOfLists, HoldForTheListThatTheyAreOf) {
    EXPECT_THAT(wrong(whole()), ElementsAre(HasSubstr("gfx942 fwd: no facts in "),
                                            HasSubstr("gfx942 fwd_splitkv_combine: no facts in ")));
    EXPECT_THAT(accept(whole()), ElementsAre("gfx942: 2 groups changed or are new"));
    EXPECT_THAT(wrong(whole()), IsEmpty());
    EXPECT_THAT(system::read_file(folder_.path() / "gfx942.txt"),
                testing::StartsWith("compiler clang 22\n# 2026-05-17: first\n2 0 0 100 0 0 fwd fp16 h"));
}

TEST_F(FactsOfLists, SeeAKernelASpillOrARegisterMore) {
    accept(whole());
    using enum KernelFamily;
    EXPECT_THAT(wrong(build({kernel(fwd, 100), kernel(fwd, 101)})),
                ElementsAre("gfx942 fwd: 101 vector registers, the facts have 100"));
    EXPECT_THAT(wrong(build({kernel(fwd, 100), kernel(fwd, 90), kernel(fwd, 80)})),
                ElementsAre("gfx942 fwd: 3 kernels, the facts have 2"));
    EXPECT_THAT(wrong(build({kernel(fwd, 100), kernel(fwd, 90, 8)})),
                ElementsAre("gfx942 fwd: 1 spilling kernels, the facts have 0",
                            "gfx942 fwd: 8 bytes of scratch a lane, the facts have 0"));
}

TEST_F(FactsOfLists, MissLostKernelsOfWholeFamiliesOnly) {
    accept(whole());
    const auto one = build({kernel(KernelFamily::fwd, 100)});
    EXPECT_THAT(wrong(one, true), ElementsAre("gfx942 fwd: 1 kernels, the facts have 2"));
    EXPECT_THAT(wrong(one, false), IsEmpty());
    auto other = kernel(KernelFamily::fwd, 100);
    other.config.signature.hdim_q = 64;
    accept(build({kernel(KernelFamily::fwd, 100), other}));
    EXPECT_THAT(wrong(one, true), ElementsAre("gfx942 fwd: lost, the facts have 1 kernels"));
}

TEST_F(FactsOfLists, OfOneFamilyReplaceThoseOfThatFamily) {
    accept(whole());
    EXPECT_THAT(accept(build({kernel(KernelFamily::fwd, 96)})),
                ElementsAre("gfx942: 1 groups changed or are new"));
    EXPECT_THAT(wrong(build({kernel(KernelFamily::fwd, 96)})), IsEmpty());
    EXPECT_THAT(wrong(build({kernel(KernelFamily::fwd_splitkv_combine, 40)})), IsEmpty());
}

TEST_F(FactsOfLists, OfAnotherCompilerAreNumbersOfKernelsAlone) {
    accept(whole());
    const auto newer = build({kernel(KernelFamily::fwd, 120)}, "clang 23");
    EXPECT_THAT(wrong(newer), ElementsAre("gfx942 fwd: 1 kernels, the facts have 2"));
    EXPECT_THAT(against_facts(newer, folder_.path(), true).notes,
                ElementsAre(HasSubstr("the facts are of clang 22, these kernels of clang 23")));
    EXPECT_THAT([&] { accept(newer); },
                testing::ThrowsMessage<InputError>(HasSubstr("holds other families, compiled by clang 22")));
}

TEST_F(FactsOfLists, ThatCannotBeReadAreRefused) {
    for (const char* text :
         {"1 0 0 1 0 0 fwd\n", "compiler c\n1 0 0 1 0 fwd\n", "compiler c\n-1 0 0 1 0 0 fwd\n",
          "compiler c\n1 0 0 1 0 0\n", "compiler c\n1 0 0 1 0 0 fwd\n2 0 0 1 0 0 fwd\n", "\n"}) {
        system::write_file(folder_.path() / "gfx942.txt", text);
        EXPECT_THAT([&] { read_facts(folder_.path(), "gfx942"); },
                    testing::ThrowsMessage<InputError>(HasSubstr("gfx942.txt:")))
            << text;
    }
}

} // namespace
} // namespace fmha::generator
