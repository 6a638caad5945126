// The machine of AMD's architectures through the eyes of a compiler: every operation is compiled for every
// architecture, and the instructions that come out are read. Nothing is executed.

#include "kernels/targets/hip/instruction_names.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::hip_target {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using enum MatrixInstruction;

namespace fs = std::filesystem;

/// The assembler's name of an instruction: a pattern, because gfx90a joins the last two parts of a name.
const std::map<MatrixInstruction, std::string>& mnemonics() {
    static const std::map<MatrixInstruction, std::string> table{
        {mfma_32x32x8_f16, "v_mfma_f32_32x32x8_?f16"},
        {mfma_16x16x16_f16, "v_mfma_f32_16x16x16_?f16"},
        {mfma_32x32x8_bf16, "v_mfma_f32_32x32x8_?bf16"},
        {mfma_16x16x16_bf16, "v_mfma_f32_16x16x16_?bf16"},
        {mfma_32x32x16_f16, "v_mfma_f32_32x32x16_f16"},
        {mfma_16x16x32_f16, "v_mfma_f32_16x16x32_f16"},
        {mfma_32x32x16_bf16, "v_mfma_f32_32x32x16_bf16"},
        {mfma_16x16x32_bf16, "v_mfma_f32_16x16x32_bf16"},
        {mfma_32x32x16_fp8, "v_mfma_f32_32x32x16_fp8_fp8"},
        {mfma_16x16x32_fp8, "v_mfma_f32_16x16x32_fp8_fp8"},
        {mfma_32x32x16_bf8, "v_mfma_f32_32x32x16_bf8_bf8"},
        {mfma_16x16x32_bf8, "v_mfma_f32_16x16x32_bf8_bf8"},
        {mfma_32x32x2_f32, "v_mfma_f32_32x32x2_?f32"},
        {mfma_16x16x4_f32, "v_mfma_f32_16x16x4_?f32"},
        {mfma_32x32x64_fp8, "v_mfma_f32_32x32x64_f8f6f4"},
        {mfma_32x32x64_bf8, "v_mfma_f32_32x32x64_f8f6f4"},
        {mfma_scale_32x32x64_fp8, "v_mfma_scale_f32_32x32x64_f8f6f4"},
        {mfma_scale_16x16x128_fp8, "v_mfma_scale_f32_16x16x128_f8f6f4"},
        {mfma_scale_32x32x64_fp4, "v_mfma_scale_f32_32x32x64_f8f6f4"},
        {mfma_scale_16x16x128_fp4, "v_mfma_scale_f32_16x16x128_f8f6f4"},
        {wmma_gfx11_16x16x16_f16, "v_wmma_f32_16x16x16_f16"},
        {wmma_gfx11_16x16x16_bf16, "v_wmma_f32_16x16x16_bf16"},
        {wmma_gfx12_16x16x16_f16, "v_wmma_f32_16x16x16_f16"},
        {wmma_gfx12_16x16x16_bf16, "v_wmma_f32_16x16x16_bf16"},
        {wmma_gfx12_16x16x16_fp8, "v_wmma_f32_16x16x16_fp8_fp8"},
        {wmma_gfx12_16x16x16_bf8, "v_wmma_f32_16x16x16_bf8_bf8"}};
    return table;
}

std::string read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

std::string probes_of(const std::vector<MatrixInstruction>& instructions) {
    std::string lines;
    for (const MatrixInstruction name : instructions) lines += fmt::format("PROBE({})\n", to_string(name));
    return lines;
}

/// The assembly of a source in tests/hip_target, which may include `probes` as probes.h.
class Assembly {
  public:
    Assembly(const std::string& arch, const std::string& source, const std::string& probes,
             const std::string& flags = "") {
        const fs::path folder =
            fs::temp_directory_path() /
            fmt::format("fmha_amd_probe_{}_{}", arch, reinterpret_cast<std::uintptr_t>(this));
        fs::create_directories(folder);
        std::ofstream(folder / "probes.h") << probes;
        const std::string command = fmt::format(
            "'{}' -x hip -std=c++20 -O3 -Wall -Wextra -Werror -nogpuinc -nogpulib --offload-arch={} {} "
            "--cuda-device-only --no-gpu-bundle-output -I'{}' -I'{}' -S '{}/tests/hip_target/{}' "
            "-o '{}/probe.s' 2>'{}/errors'",
            FMHA_AMD_CLANG, arch, flags, FMHA_SOURCE_DIR, folder.string(), FMHA_SOURCE_DIR, source,
            folder.string(), folder.string());
        const int status = std::system(command.c_str());
        m_errors = read(folder / "errors");
        m_text = read(folder / "probe.s");
        fs::remove_all(folder);
        EXPECT_EQ(status, 0) << command << "\n" << m_errors;
    }

    /// From the kernel's label to the end of its code.
    std::string kernel(std::string_view name) const {
        const auto start = m_text.find(fmt::format("\n{}:", name));
        if (start == std::string::npos) return fmt::format("there is no kernel {}", name);
        return m_text.substr(start, m_text.find(".Lfunc_end", start) - start);
    }

    const std::string& text() const { return m_text; }

  private:
    std::string m_text, m_errors;
};

int count(const std::string& text, const std::string& pattern) {
    const std::regex regex(pattern);
    return static_cast<int>(
        std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()));
}

/// The formats of an instruction that names them as operands, and scales, where it takes some, in vector registers: from elsewhere the
/// hardware takes other bits.
void expect_formats(const std::string& kernel, const InstructionInfo& info) {
    EXPECT_EQ(count(kernel, "cbsz:1 blgp:1"), info.instruction == mfma_32x32x64_bf8 ? 2 : 0) << kernel;
    if (info.scale_block == 0) return;
    const std::string range = R"([av]\[\d+:\d+\], )";
    EXPECT_EQ(count(kernel, "v_mfma_scale_" + std::string("[a-z0-9_]+ ") + range + range + range + range +
                                R"(v\d+, v\d+ )"),
              2)
        << kernel;
    EXPECT_EQ(count(kernel, "cbsz:4 blgp:4"), info.operand == ElementType::fp4 ? 2 : 0) << kernel;
    EXPECT_EQ(count(kernel, R"(op_sel_hi:\[0,0,0\])"), 2) << "the lowest byte" << kernel;
}

class AmdMachine : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        if (std::string_view(FMHA_AMD_CLANG).ends_with("NOTFOUND"))
            GTEST_SKIP() << "no clang++ that compiles for AMD's architectures was found (clang-22, lld-22)";
    }
};

TEST_P(AmdMachine, CompilesToTheInstructionsOfItsArchitecture) {
    const std::string arch = GetParam();
    const MatrixUnit unit = matrix_unit(arch);
    std::vector<MatrixInstruction> instructions;
    for (int i = 1; i < matrix_instructions; ++i)
        if (const auto name = static_cast<MatrixInstruction>(i); has_instruction(unit, name))
            instructions.push_back(name);
    ASSERT_FALSE(instructions.empty());
    const Assembly assembly(arch, "amd_probe.hip", probes_of(instructions));

    for (const MatrixInstruction name : instructions) {
        const std::string kernel = assembly.kernel(fmt::format("probe_{}", to_string(name)));
        EXPECT_EQ(count(kernel, mnemonics().at(name) + "(_1k)?(_e64)? "), 2) << kernel;
        EXPECT_EQ(count(kernel, "v_(mfma|wmma)_"), 2) << kernel;
        EXPECT_THAT(kernel, Not(HasSubstr("s_trap"))) << to_string(name);
        expect_formats(kernel, instruction_info(name));
    }
    EXPECT_EQ(count(assembly.text(), R"(\.private_segment_fixed_size: [1-9])"), 0) << "scratch";
    EXPECT_EQ(count(assembly.text(), R"(\.vgpr_spill_count: +[1-9])"), 0);

    // A product that begins reads no zeros, and none are put into registers for it.
    for (const std::string type : {"f16", "bf16"}) {
        const std::string begins = assembly.kernel("begins_" + type), name = "v_wmma_f32_16x16x16_" + type;
        const int expected = unit == MatrixUnit::rdna3 ? 1 : 0;
        EXPECT_EQ(count(begins, name + R"( (v\[[0-9:]+\], ){3}0\n)"), expected) << begins;
        EXPECT_EQ(count(begins, name + R"( (v\[[0-9:]+\], ){3}v\[)"), expected) << begins;
        EXPECT_EQ(count(begins, R"(v_(dual_)?mov_b32(_e32)? v\d+, (s\d+|0)\b)"), 0) << begins;
    }

    const std::string lds = assembly.kernel("lds");
    EXPECT_THAT(lds, ContainsRegex("ds_(write|store)_b128 "));
    EXPECT_THAT(lds, ContainsRegex("ds_(write|store)_b64 "));
    EXPECT_THAT(lds, ContainsRegex("ds_(read|load)_b128 "));
    EXPECT_THAT(lds, ContainsRegex("ds_(read|load)_b64 "));
    EXPECT_THAT(lds, ContainsRegex("s_barrier"));
    const std::string global = assembly.kernel("global");
    EXPECT_EQ(count(global, "buffer_load_(dwordx4|b128) "), 1) << global;
    EXPECT_EQ(count(global, "buffer_load_(dwordx2|b64) "), 1) << global;
    EXPECT_EQ(count(global, "buffer_load_(dword|b32) "), 1) << global;
    EXPECT_EQ(count(global, "buffer_load_(ubyte|u8) "), 1) << global;
    EXPECT_THAT(global, HasSubstr("v_perm_b32"));
    // A descriptor that is not the same in all lanes would be read lane by lane.
    EXPECT_THAT(global, Not(HasSubstr("v_readfirstlane")));
    const std::string direct = assembly.kernel("direct");
    const bool copies = is_cdna(unit);
    EXPECT_EQ(count(direct, "buffer_load_dword v[0-9]+, [^\\n]* offen lds\n"), copies ? 3 : 0) << direct;
    // Lines share a descriptor and the place of the first: scalars tell them apart.
    EXPECT_EQ(
        count(direct,
              R"(s_add_i32 m0, s\d+, 0x400\n[^v]*buffer_load_dword v\d+, s\[\d+:\d+\], s\d+ offen lds)"),
        copies ? 1 : 0)
        << direct;
    EXPECT_EQ(count(direct, "buffer_load_dwordx4 v[0-9]+, [^\\n]* offen lds\n"), arch == "gfx950" ? 1 : 0);
    const bool of_lanes = arch == "gfx942" || arch == "gfx950";
    EXPECT_EQ(count(direct, "global_load_lds_dword v\\[[0-9:]+\\], off\n"), of_lanes ? 1 : 0) << direct;
    EXPECT_EQ(count(direct, "global_load_lds_dwordx4 v\\[[0-9:]+\\], off\n"), arch == "gfx950" ? 1 : 0);
    EXPECT_EQ(count(direct, "ds_read_b64_tr_b16 "), arch == "gfx950" ? 1 : 0);
    EXPECT_EQ(count(direct, "ds_read_b64_tr_b8 "), arch == "gfx950" ? 1 : 0);
    const std::string reread = assembly.kernel("reread");
    EXPECT_GE(count(assembly.kernel("kept"), "s_load_"), 1);
    EXPECT_EQ(count(reread, "s_load_"), 2 * count(assembly.kernel("kept"), "s_load_")) << reread;
    EXPECT_EQ(count(reread, "(flat|global|buffer)_load_"), 0) << "scalars stay scalars" << reread;
    EXPECT_EQ(count(assembly.kernel("local"), "mul_f32"), 2) << "computed again" << assembly.kernel("local");
    EXPECT_THAT(assembly.kernel("math"), ContainsRegex("v_exp_f32"));
    EXPECT_THAT(assembly.kernel("math"), ContainsRegex("v_log_f32"));

    EXPECT_THAT(assembly.kernel("exchange_16"),
                ContainsRegex(arch == "gfx950" ? "v_permlane16_swap_b32"
                              : unit == MatrixUnit::rdna3 || unit == MatrixUnit::rdna4 ? "v_permlanex16_b32"
                                                                                       : "ds_swizzle_b32"));
    EXPECT_THAT(assembly.kernel("exchange_3"), ContainsRegex("ds_bpermute_b32"));
    EXPECT_EQ(count(assembly.kernel("exchange_half"), "v_permlane32_swap_b32"), arch == "gfx950" ? 2 : 0);
    EXPECT_EQ(count(assembly.kernel("trade_16"), "v_permlane16_swap_b32"), arch == "gfx950" ? 1 : 0);
    EXPECT_EQ(count(assembly.kernel("trade_32"), "v_permlane32_swap_b32"), arch == "gfx950" ? 1 : 0);
    EXPECT_EQ(count(assembly.kernel("trade_32"), "v_cndmask"), 0);

    const bool fnuz = arch == "gfx942", ocp = arch == "gfx950" || unit == MatrixUnit::rdna4;
    const auto converts = [&](const char* kernel, const char* mnemonic) {
        return count(assembly.kernel(kernel), mnemonic) == 2;
    };
    EXPECT_EQ(converts("pack_fp8_fnuz", "v_cvt_pk_fp8_f32"), fnuz);
    EXPECT_EQ(converts("pack_bf8_fnuz", "v_cvt_pk_bf8_f32"), fnuz);
    EXPECT_EQ(converts("pack_fp8_ocp", "v_cvt_pk_fp8_f32"), ocp);
    EXPECT_EQ(converts("pack_bf8_ocp", "v_cvt_pk_bf8_f32"), ocp);
    EXPECT_EQ(count(assembly.kernel("pack_fp4"), "v_cvt_scalef32_pk_fp4_f32"), arch == "gfx950" ? 4 : 0);
    // Weights are within the range of their type: two conversions a word, and a multiplication where those do not divide.
    if (fnuz || ocp) {
        for (const char* kernel : {"quotients_fp8", "quotients_bf8"}) {
            const std::string code = assembly.kernel(kernel);
            EXPECT_EQ(count(code, "v_cvt_pk_[fb][pf]8_f32"), arch == "gfx950" ? 0 : 2) << code;
            EXPECT_EQ(count(code, "v_cvt_scalef32_pk_[fb][pf]8_f32"), arch == "gfx950" ? 2 : 0) << code;
            EXPECT_EQ(count(code, "v_(cndmask|cmp|med3|max|min|minmax|maxmin)"), 0) << code;
            if (arch == "gfx950") {
                EXPECT_EQ(count(code, "v_(pk_)?mul_f32"), 0) << code;
            }
        }
    }
    if (arch == "gfx950") {
        const std::string code = assembly.kernel("quotients_fp4");
        EXPECT_EQ(count(code, "v_cvt_scalef32_pk_fp4_f32"), 4) << code;
        EXPECT_EQ(count(code, "v_(cndmask|cmp|med3|max|min|rcp|div|(pk_)?mul_f32)"), 0) << code;
    }
    const std::string results = assembly.kernel("pack_results_bf16");
    EXPECT_EQ(count(results, "v_cvt_pk_bf16_f32"), arch == "gfx950" ? 1 : 0);
    EXPECT_EQ(count(results, "v_perm_b32"), arch == "gfx950" ? 0 : 1);
    EXPECT_EQ(count(results, "v_cndmask"), 0) << results;
    // Rounding to nearest: the packed conversion of two halves rounds towards zero.
    EXPECT_EQ(count(assembly.kernel("pack_fp16"), "cvt_pkrtz"), 0);
    EXPECT_GE(count(assembly.kernel("pack_fp16"), "v_cvt_(pk_)?f16_f32"), 1);
}

INSTANTIATE_TEST_SUITE_P(Architectures, AmdMachine,
                         testing::Values("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"),
                         [](const auto& arch) { return std::string(arch.param); });

class ForeignInstruction : public AmdMachine {};

// The check above is able to fail: an instruction that the architecture lacks becomes a trap.
TEST_P(ForeignInstruction, TrapsInsteadOfMultiplying) {
    const Assembly assembly(GetParam(), "amd_probe.hip", probes_of({mfma_16x16x32_f16}));
    const std::string kernel = assembly.kernel("probe_mfma_16x16x32_f16");
    EXPECT_THAT(kernel, HasSubstr("s_trap"));
    EXPECT_EQ(count(kernel, "v_(mfma|wmma)_"), 0);
}

INSTANTIATE_TEST_SUITE_P(Architectures, ForeignInstruction, testing::Values("gfx942"),
                         [](const auto& arch) { return std::string(arch.param); });

/// Loads with a matrix instruction behind them before a wait that includes them. A wait for all but n leaves the n newest under way.
int loads_under_way(const std::string& code) {
    static const std::regex wait(R"((?:vmcnt\(|loadcnt )(\w+))");
    int number = 0, waiting = 0;
    std::istringstream lines(code);
    for (std::string line; std::getline(lines, line);) {
        if (count(line, "\tbuffer_load_(dword|b(32|64|128))") != 0) ++waiting;
        if (std::smatch m; std::regex_search(line, m, wait))
            waiting = std::min(waiting, std::stoi(m[1].str(), nullptr, 0));
        if (count(line, "\tv_(mfma|wmma)_") == 0) continue;
        number += waiting;
        waiting = 0;
    }
    return number;
}

struct KernelOn {
    const char* arch;
    int side;
    int products; ///< matrix instructions: 2 products of 64 keys, 64 channels and a wave's `side` rows, 16 deep
};

class AmdKernel : public testing::TestWithParam<KernelOn> {
  protected:
    void SetUp() override {
        if (std::string_view(FMHA_AMD_CLANG).ends_with("NOTFOUND"))
            GTEST_SKIP() << "no clang++ that compiles for AMD's architectures was found (clang-22, lld-22)";
    }
};

std::string forward_kernel(const char* arch, int side, const char* pipeline) {
    const Assembly assembly(
        arch, "amd_kernel.hip", "",
        fmt::format("'-DFMHA_TEST_ARCH=\"{}\"' -DFMHA_TEST_SIDE={} -DFMHA_TEST_PIPELINE={}", arch, side,
                    pipeline));
    EXPECT_EQ(count(assembly.text(), R"(\.private_segment_fixed_size: [1-9])"), 0) << "scratch";
    EXPECT_EQ(count(assembly.text(), R"(\.vgpr_spill_count: +[1-9])"), 0);
    return assembly.kernel("forward");
}

/// A descriptor that is not uniform is read lane by lane: its words are compared with the first lane's in a loop. Its size alone may be
/// made uniform, by one instruction a load that goes through registers.
void expect_uniform_descriptors(const std::string& code) {
    EXPECT_EQ(count(code, "v_cmp_eq_u64"), 0);
    EXPECT_LE(count(code, "v_readfirstlane"), count(code, R"(buffer_load_(dwordx4|b128) [^\n]*offen\n)"));
}

constexpr const char* direct_copy = R"(\tbuffer_load_dword(x4)? [^\n]* lds\n)";

TEST_P(AmdKernel, KeepsItsTilesInRegistersAndItsAddressesUniform) {
    const auto [arch, side, products] = GetParam();
    const std::string kernel = forward_kernel(arch, side, "qr");
    EXPECT_EQ(count(kernel, "\tv_(mfma|wmma)_"), products);
    EXPECT_EQ(count(kernel, "s_swappc"), 0) << "calls";
    EXPECT_EQ(count(kernel, direct_copy), 0);

    const std::string loop = kernel.substr(std::min(kernel.find("v_mfma"), kernel.find("v_wmma")));
    expect_uniform_descriptors(loop);
    EXPECT_EQ(count(loop, "\tds_(read|load)_(b32|u8|u16)"), 0);
    EXPECT_GT(count(loop, "\tds_(read|load)_b128"), 0);
    EXPECT_GT(loads_under_way(loop), 0) << "steps are read ahead of the products";
}

INSTANTIATE_TEST_SUITE_P(Architectures, AmdKernel,
                         testing::Values(KernelOn{"gfx942", 32, 32}, KernelOn{"gfx1100", 16, 32}),
                         [](const auto& on) { return std::string(on.param.arch); });

/// Waits for loads between reads of LDS and the product that they are for: copies are under way then. Waits that are
/// written as such belong to the next step, and inner loops gather what is not aligned, in place of copies.
int waits_before_products(const std::string& code) {
    int number = 0, waits = 0;
    bool read = false, written_out = false, inner = false;
    std::istringstream lines(code);
    for (std::string line; std::getline(lines, line);) {
        const auto has = [&](std::string_view text) { return line.find(text) != std::string::npos; };
        if (has("#ASMSTART") || has("#ASMEND")) written_out = has("#ASMSTART");
        if (line.starts_with(".LBB")) inner = has("Parent Loop") || has("Depth=2");
        if (inner || written_out) continue;
        if (has("vmcnt") && read) ++waits;
        if (has("\tds_read")) read = true;
        if (has("\tv_mfma_")) number += waits;
        if (has("\tv_mfma_") || has("s_barrier")) {
            read = false;
            waits = 0;
        }
    }
    return number;
}

struct AsyncKernelOn {
    const char* arch;
    const char* pipeline;
    int keys, values; ///< direct copies of a step
    int products;     ///< matrix instructions
    int transposing;  ///< reads of V by columns
};

class AsyncAmdKernel : public testing::TestWithParam<AsyncKernelOn> {
  protected:
    void SetUp() override {
        if (std::string_view(FMHA_AMD_CLANG).ends_with("NOTFOUND"))
            GTEST_SKIP() << "no clang++ that compiles for AMD's architectures was found (clang-22, lld-22)";
    }
};

TEST_P(AsyncAmdKernel, CopiesDuringProducts) {
    const auto [arch, pipeline, keys, values, products, transposing] = GetParam();
    const std::string kernel = forward_kernel(arch, 32, pipeline);
    EXPECT_EQ(count(kernel, "\tv_mfma_"), products);
    EXPECT_EQ(count(kernel, "\tds_read_b64_tr_b16"), transposing);
    // Two steps of keys and of values; before the loop the first step of keys, or with four buffers both.
    const int begun = values > 0 ? 2 : 1;
    // Several of a step stand one after another where all lines exist, and beside them one in a loop for a last tile.
    const int of_keys = keys > 1 ? keys + 1 : keys, of_values = values > 1 ? values + 1 : values;
    EXPECT_EQ(count(kernel, direct_copy), (2 + begun) * of_keys + 2 * of_values) << kernel;
    const auto before_loop = kernel.find("v_mfma");
    const std::string loop = kernel.substr(before_loop);
    expect_uniform_descriptors(loop);
    EXPECT_EQ(waits_before_products(loop), 0);
    if (values > 0) {
        EXPECT_EQ(count(loop, "\tds_write_b64"), 0) << "V does not go through registers";
    }
}

// A block has 256 threads. A step of keys is 64 lines of 64 bytes, one of values 32 lines of 128.
INSTANTIATE_TEST_SUITE_P(Architectures, AsyncAmdKernel,
                         testing::Values(AsyncKernelOn{"gfx90a", "qr_async", 4, 0, 32, 0},
                                         AsyncKernelOn{"gfx942", "qr_async", 4, 0, 32, 0},
                                         AsyncKernelOn{"gfx950", "qr_async", 1, 1, 16, 16},
                                         AsyncKernelOn{"gfx950", "qr_async_trload", 1, 1, 16, 16}),
                         [](const auto& on) {
                             return fmt::format("{}_{}", on.param.arch, on.param.pipeline);
                         });

// The check above is able to fail.
TEST(WaitsBeforeProducts, AreCounted) {
    const std::string read = "\tds_read_b128 v[0:3], v1\n", wait = "\ts_waitcnt vmcnt(0)\n",
                      product = "\tv_mfma_f32_32x32x8_f16 a, v, v, a\n", barrier = "\ts_barrier\n";
    EXPECT_EQ(waits_before_products(read + product + wait + barrier + read + product), 0);
    EXPECT_EQ(waits_before_products(read + "\t;;#ASMSTART\n" + wait + "\t;;#ASMEND\n" + barrier + product),
              0);
    EXPECT_EQ(waits_before_products(read + ".LBB0_1: ; Parent Loop BB0_2 Depth=1\n" + wait +
                                    ".LBB0_3: ; in Loop: Header=BB0_2 Depth=1\n" + product),
              0);
    EXPECT_EQ(waits_before_products(read + wait + read + product), 1);
}

} // namespace
} // namespace fmha::hip_target
