// The audit reads the compilers' reports, and every limit can turn it red.

#include "dispatcher/types/error.hpp"
#include "kernels/generator/audit.hpp"
#include "kernels/generator/resources.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <elf.h>

namespace fmha::generator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view remarks =
    R"(src/k.hip:27:1: remark: Function Name: fmha_k [-Rpass-analysis=kernel-resource-usage]
   27 | FMHA_KERNEL(
      | ^
src/k.hip:27:1: remark:     TotalSGPRs: 40 [-Rpass-analysis=kernel-resource-usage]
src/k.hip:27:1: remark:     VGPRs: 118 [-Rpass-analysis=kernel-resource-usage]
src/k.hip:27:1: remark:     AGPRs: 64 [-Rpass-analysis=kernel-resource-usage]
src/k.hip:27:1: remark:     ScratchSize [bytes/lane]: 16 [-Rpass-analysis=kernel-resource-usage]
src/k.hip:27:1: remark:     Dynamic Stack: False [-Rpass-analysis=kernel-resource-usage]
src/k.hip:27:1: remark:     Occupancy [waves/SIMD]: 2 [-Rpass-analysis=kernel-resource-usage]
src/k.hip:27:1: remark:     SGPRs Spill: 3 [-Rpass-analysis=kernel-resource-usage]
src/k.hip:27:1: remark:     VGPRs Spill: 4 [-Rpass-analysis=kernel-resource-usage]
src/k.hip:27:1: remark:     LDS Size [bytes/block]: 32768 [-Rpass-analysis=kernel-resource-usage]
)";

constexpr std::string_view listing =
    "SYMBOL TABLE:\n"
    "0000000000001700 g     F .text\t0000000000000250 .protected fmha_k\n"
    "0000000000000680 g     O .rodata\t0000000000000040 .protected fmha_k.kd\n"
    "Disassembly of section .text:\n"
    "0000000000001700 <fmha_k>:\n"
    "\ts_mov_b32 s2, 0x40003c00      // 000000001700: BE8200FF\n"
    "\tv_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[16:17], 0 // 00\n"
    "\tv_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[16:17], 0 // 08\n"
    "\tv_mfma_f32_16x16x16_f16 v[0:3], v[16:17], v[16:17], 0 // 10\n"
    "\tv_mfma_scale_f32_32x32x64_f8f6f4 a[0:15], v[0:3], v[4:7], a[0:15], v8, v9 op_sel_hi:[0,0,0] cbsz:4 "
    "blgp:4// 18\n"
    "\tbuffer_load_dword v1, s[8:11], 0 offen lds // 20\n"
    "\tbuffer_load_dwordx4 v1, s[8:11], 0 offen lds// 28\n"
    "\tglobal_load_lds_dwordx4 v[2:3], off // 2c\n"
    "\tbuffer_load_dwordx4 v[0:3], v1, s[8:11], 0 offen // 30\n"
    "\tds_read_b64_tr_b16 v[0:1], v2 // 38\n"
    "\tds_read_b64 v[0:1], v2 // 40\n"
    "\tv_fma_f32 v0, v1, v2, v3      // 48\n";

TEST(AmdResources, AreThoseOfTheTexts) {
    const auto found = amd_resources(remarks, listing, "k");
    ASSERT_EQ(found.size(), 1U);
    const built::Resources& used = found.at("fmha_k");
    EXPECT_EQ(used.sgprs, 40);
    EXPECT_EQ(used.vgprs, 118);
    EXPECT_EQ(used.agprs, 64);
    EXPECT_EQ(used.scratch_bytes, 16);
    EXPECT_EQ(used.occupancy, 2);
    EXPECT_EQ(used.sgpr_spills, 3);
    EXPECT_EQ(used.vgpr_spills, 4);
    EXPECT_EQ(used.lds_bytes, 32768);
    EXPECT_EQ(used.code_bytes, 0x250);
    EXPECT_EQ(used.direct_copies, 3);
    EXPECT_EQ(used.transposing_reads, 1);
    EXPECT_THAT(
        used.matrix_instructions,
        ElementsAre(std::pair<const std::string, std::int64_t>{"v_mfma_f32_16x16x16_f16", 1},
                    std::pair<const std::string, std::int64_t>{"v_mfma_f32_32x32x8_f16", 2},
                    std::pair<const std::string, std::int64_t>{"v_mfma_scale_f32_32x32x64_f8f6f4", 1}));
}

std::string without(const std::string& remark) {
    std::string text(remarks);
    const auto begin = text.find("src/k.hip:27:1: remark:     " + remark);
    return text.erase(begin, text.find('\n', begin) - begin + 1);
}

TEST(AmdResources, OfArchitecturesWithoutAccumulationRegistersHaveNone) {
    EXPECT_EQ(amd_resources(without("AGPRs"), listing, "k").at("fmha_k").agprs, 0);
}

TEST(AmdResources, ThatAreIncompleteAreNoAudit) {
    EXPECT_THAT([&] { amd_resources(without("VGPRs Spill"), listing, "k"); },
                testing::ThrowsMessage<InputError>(HasSubstr("6 of 7 resource remarks about fmha_k")));
    EXPECT_THAT([&] { amd_resources(remarks, "", "k"); },
                testing::ThrowsMessage<InputError>(HasSubstr("fmha_k is not in the disassembly")));
}

/// A 64-bit ELF file with one code section.
std::string cubin_of(std::string_view symbol, const std::vector<std::uint64_t>& words) {
    std::string names(1, '\0');
    const auto code_name = names.size();
    names += ".text." + std::string(symbol) + '\0';
    const auto names_name = names.size();
    names += std::string(".shstrtab") + '\0';
    std::string code(words.size() * sizeof(std::uint64_t), '\0');
    std::memcpy(code.data(), words.data(), code.size());

    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_shoff = sizeof header + code.size() + names.size();
    header.e_shnum = 3;
    header.e_shstrndx = 2;
    std::array<Elf64_Shdr, 3> sections{};
    sections[1].sh_name = static_cast<Elf64_Word>(code_name);
    sections[1].sh_type = SHT_PROGBITS;
    sections[1].sh_offset = sizeof header;
    sections[1].sh_size = code.size();
    sections[2].sh_name = static_cast<Elf64_Word>(names_name);
    sections[2].sh_type = SHT_STRTAB;
    sections[2].sh_offset = sizeof header + code.size();
    sections[2].sh_size = names.size();
    std::string file(reinterpret_cast<const char*>(&header), sizeof header);
    file += code + names;
    file.append(reinterpret_cast<const char*>(sections.data()), sizeof sections);
    return file;
}

constexpr std::string_view ptxas =
    "ptxas info    : 2672 bytes gmem\n"
    "ptxas info    : Compiling entry function 'fmha_k' for 'sm_90a'\n"
    "ptxas info    : Function properties for fmha_k\n"
    "    264 bytes stack frame, 256 bytes spill stores, 288 bytes spill loads\n"
    "ptxas info    : Used 255 registers, used 1 barriers, 264 bytes cumulative stack size\n";

TEST(NvidiaResources, AreThoseOfTheMessagesAndTheCode) {
    // Two HMMA, one HGMMA in its register form, one FMUL.
    const auto cubin = cubin_of("fmha_k", {0x7400023C, 0, 0x7400023C, 0, 0x79F0, 0, 0x7220, 0});
    const auto found = nvidia_resources(ptxas, cubin, "k");
    ASSERT_EQ(found.size(), 1U);
    const built::Resources& used = found.at("fmha_k");
    EXPECT_EQ(used.vgprs, 255);
    EXPECT_EQ(used.scratch_bytes, 264);
    EXPECT_EQ(used.vgpr_spills, 256);
    EXPECT_EQ(used.code_bytes, 64);
    EXPECT_THAT(used.matrix_instructions, ElementsAre(std::pair<const std::string, std::int64_t>{"HGMMA", 1},
                                                      std::pair<const std::string, std::int64_t>{"HMMA", 2}));
}

// Words of ptxas 12.8 and 13.0.
TEST(NvidiaResources, AssemblersWordsAboutHeldUpKernelsAreFound) {
    struct Said {
        std::string line, symbol, sentence;
    };
    const std::vector<Said> said{
        {"ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized "
         "due to "
         "insufficient register resources for the wgmma pipeline in the function 'fmha_k'",
         "fmha_k",
         "the assembler says: Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
         "insufficient register resources for the wgmma pipeline in the function 'fmha_k'"},
        {"ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine "
         "register count at "
         "entry.",
         "",
         "the assembler says: Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register "
         "count at "
         "entry."},
        {"ptxas info    : (C7506) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum "
         "register "
         "requirements.",
         "",
         "the assembler says: Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register "
         "requirements."},
        {"ptxas info    : (C7514) warpgroup.arrive is injected in around line 812 by compiler to allow use "
         "of registers in "
         "GMMA in function 'fmha_k'",
         "fmha_k",
         "the assembler says: warpgroup.arrive is injected in around line 812 by compiler to allow use of "
         "registers in "
         "GMMA in function 'fmha_k'"},
        {"ptxas info    : warpgroup.wait is injected in around line 90 by compiler to allow use of registers "
         "defined by "
         "GMMA in function 'fmha_k'",
         "fmha_k",
         "the assembler says: warpgroup.wait is injected in around line 90 by compiler to allow use of "
         "registers defined "
         "by GMMA in function 'fmha_k'"},
    };
    EXPECT_THAT(held_up(ptxas), IsEmpty());
    for (const Said& one : said)
        EXPECT_THAT(held_up(std::string(ptxas) + one.line + "\n"),
                    ElementsAre(AssemblerRemark{one.symbol, one.sentence}));
}

TEST(NvidiaResources, ThatAreIncompleteAreNoAudit) {
    const auto cubin = cubin_of("fmha_k", {0x7400023C, 0});
    EXPECT_THAT(
        [&] {
            nvidia_resources(ptxas, cubin_of("fmha_other", {0, 0}), "k");
        },
        testing::ThrowsMessage<InputError>(HasSubstr("fmha_k without registers or code")));
    EXPECT_THROW(nvidia_resources(ptxas, "no ELF", "k"), InputError);
    for (std::size_t size = 4; size < cubin.size(); size += 7)
        EXPECT_THROW(nvidia_resources(ptxas, std::string_view(cubin).substr(0, size), "k"), InputError)
            << size;
}

class Limits : public testing::Test {
  protected:
    Limits() {
        used_.vgprs = 128;
        used_.lds_bytes = 65536;
        used_.matrix_instructions = {{"v_mfma_f32_32x32x8_f16", 8}};
    }
    std::vector<std::string> wrong(std::string_view arch = "gfx942", KernelFamily family = KernelFamily::fwd,
                                   Pipeline pipeline = Pipeline::qr) const {
        KernelConfig config;
        config.signature.family = family;
        config.algorithm.pipeline = pipeline;
        return violations(used_, arch::ArchSet::built_in().at(arch).hardware(), config);
    }
    built::Resources used_;
};

TEST_F(Limits, OfWhatIsAllowedNothingIsSaid) {
    EXPECT_THAT(wrong(), IsEmpty());
}

TEST_F(Limits, ScratchIsNotAllowed) {
    used_.scratch_bytes = 4;
    EXPECT_THAT(wrong(), ElementsAre("4 bytes of scratch a lane, allowed: 0"));
}

TEST_F(Limits, LdsIsThatOfTheArchitecture) {
    used_.lds_bytes = 65540;
    EXPECT_THAT(wrong(), ElementsAre("65540 bytes of LDS a block, gfx942 has 65536"));
    EXPECT_THAT(wrong("gfx950"), IsEmpty());
}

TEST_F(Limits, RegistersAreCountedTogether) {
    used_.vgprs = 256;
    used_.agprs = 257;
    EXPECT_THAT(wrong(), ElementsAre("513 registers a lane, gfx942 has 512"));
    used_.agprs = 0;
    EXPECT_THAT(wrong("sm_90"), ElementsAre("256 registers a lane, sm_90 has 255"));
}

TEST_F(Limits, MatrixInstructionsMustBeThere) {
    used_.matrix_instructions.clear();
    EXPECT_THAT(wrong(), ElementsAre("no matrix instruction"));
    EXPECT_THAT(wrong("gfx942", KernelFamily::fwd_splitkv_combine), IsEmpty()) << "it multiplies no matrices";
}

// SASS of ptxas 13.0: UTMALDG.5D, USETMAXREG of 40 and of 232, HGMMA, LDL and STL.
constexpr std::uint64_t copy = 0x8120075B4, release = 0x28000079C8, claim = 0xE8000079C8, product = 0x79F0,
                        load = 0x1007983, store = 0x401007387;

TEST(TeamInstructions, AreCountedInTheCode) {
    const auto of = [](const std::vector<std::uint64_t>& instructions) {
        std::vector<std::uint64_t> words;
        for (const std::uint64_t instruction : instructions) words.insert(words.end(), {instruction, 0});
        return team_instructions(cubin_of("fmha_k", words), "k").at("fmha_k");
    };
    const TeamInstructions right = of({release, copy, copy, copy, claim, product, product});
    EXPECT_EQ(right, (TeamInstructions{2, 3, 2, 0}));
    EXPECT_THAT(team_violations(right), IsEmpty());
    EXPECT_THAT(team_violations(of({release, copy, claim, 0x7400023C})),
                ElementsAre("no product of warp groups (HGMMA, QGMMA), pipeline ws is made of them"));
    EXPECT_THAT(team_violations(of({release, claim, product})),
                ElementsAre("no tensor copy (UTMALDG), pipeline ws has no other"));
    EXPECT_THAT(team_violations(of({release, copy, product})),
                ElementsAre("1 splits of registers (USETMAXREG), pipeline ws has 2"));
    EXPECT_THAT(team_violations(of({release, copy, claim, product, load, store})),
                ElementsAre("2 accesses to local memory (LDL, STL), allowed in pipeline ws: 0"));
}

TEST(TeamRefusals, AreSpillsAStackAndTheAssemblersWords) {
    EXPECT_THAT(team_refusals(ptxas, "fmha_k"),
                ElementsAre("264 bytes stack frame, allowed in pipeline ws: 0",
                            "256 bytes spill stores, allowed in pipeline ws: 0",
                            "288 bytes spill loads, allowed in pipeline ws: 0"));
    EXPECT_THAT(team_refusals(ptxas, "fmha_other"), IsEmpty());
    const std::string serial =
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due "
        "to "
        "insufficient register resources for the wgmma pipeline in the function 'fmha_k'\n";
    EXPECT_THAT(team_refusals(serial, "fmha_k"), ElementsAre(HasSubstr("serialized")));
    EXPECT_THAT(team_refusals(serial, "fmha_other"), IsEmpty());
    const std::string ignored = "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; "
                                "unable to determine register count at entry.\n";
    EXPECT_THAT(team_refusals(ignored, "fmha_other"), ElementsAre(HasSubstr("ignored"))) << "of any kernel";
}

TEST(Spills, AreCountedByConfiguration) {
    built::Manifest manifest;
    manifest.objects.push_back({"o", "gfx942", "c", "k", {}});
    for (const std::int64_t scratch : {0, 64, 16}) {
        KernelConfig config;
        config.arch = "gfx942";
        config.signature.hdim_q = config.signature.hdim_v = scratch == 0 ? 64 : 256;
        built::Resources used;
        used.scratch_bytes = scratch;
        manifest.objects.front().kernels.push_back({"k", config, "s", used});
    }
    const auto rows = spills(manifest);
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].spilling, 2U);
    EXPECT_EQ(rows[0].audited, 3U);
    EXPECT_EQ(rows[1].what, "gfx942 fwd fp16 h256x256 qr t0x0x0x0x0x0");
    EXPECT_EQ(rows[1].audited, 2U);
    EXPECT_EQ(rows[1].most_scratch, 64);
    EXPECT_THAT(advice_without_records(manifest),
                HasSubstr("2 kernels need scratch; known spills are accepted with --spills FOLDER"));
    for (built::BuiltKernel& kernel : manifest.objects.front().kernels) {
        kernel.resources->scratch_bytes = 0;
        kernel.resources->vgpr_spills = 3; // to other registers
    }
    EXPECT_EQ(advice_without_records(manifest), "");
}

TEST(NamedKernels, AreThoseThatSpillAndTheSlowest) {
    built::Manifest manifest;
    manifest.objects.push_back({"o", "gfx942", "c", "k", {}});
    const auto add = [&](const char* name, std::int64_t scratch, std::int64_t compile_ms) {
        built::Resources used;
        used.scratch_bytes = scratch;
        used.compile_ms = compile_ms;
        manifest.objects.front().kernels.push_back({name, {}, "s", used});
    };
    add("quick", 8, 10);
    add("slow", 0, 300);
    add("slower", 16, 500);
    manifest.objects.front().kernels.push_back({"not audited", {}, "s", {}});
    const auto names = [](const std::vector<const built::BuiltKernel*>& kernels) {
        std::vector<std::string> all;
        for (const auto* kernel : kernels) all.push_back(kernel->name);
        return all;
    };
    EXPECT_THAT(names(spilling_kernels(manifest)), ElementsAre("quick", "slower"));
    EXPECT_THAT(names(slowest_kernels(manifest, 2)), ElementsAre("slower", "slow"));
    EXPECT_THAT(names(slowest_kernels(manifest, 9)), ElementsAre("slower", "slow", "quick"));
}

} // namespace
} // namespace fmha::generator
