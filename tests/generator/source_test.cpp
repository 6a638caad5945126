// A source states its configurations, and nothing else decides its bytes.

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/built/manifest.hpp"
#include "kernels/generator/source.hpp"
#include "kernels/generator/write.hpp"
#include "tests/generator/catalogue.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace fmha::generator {
namespace {

using testing::HasSubstr;

KernelConfig small_config() {
    KernelConfig c;
    c.arch = "gfx942";
    c.signature.data_type = DataType::bf16;
    c.signature.mask = MaskClass::causal;
    c.signature.has_lse = true;
    c.signature.hdim_q = c.signature.hdim_v = 128;
    c.algorithm.tile = {128, 64, 32, 128, 32, 128};
    c.algorithm.wave = {4, 1, 1, 4, 1, 1};
    c.algorithm.pad = {true, true, 1, 1};
    return c;
}

TEST(Source, IsTheGoldenOne) {
    const Unit unit{"k", {{"fwd_k", small_config()}}};
    EXPECT_EQ(source_of(unit),
              R"(// arch=gfx942;signature.data_type=bf16;signature.mask=causal;signature.has_lse=true;)"
              R"(signature.hdim_q=128;signature.hdim_v=128;algorithm.tile.m0=128;algorithm.tile.n0=64;)"
              R"(algorithm.tile.k0=32;algorithm.tile.n1=128;algorithm.tile.k1=32;)"
              R"(algorithm.tile.k0max=128;algorithm.wave.m0=4;algorithm.wave.n0=1;)"
              R"(algorithm.wave.k0=1;algorithm.wave.m1=4;algorithm.wave.n1=1;algorithm.wave.k1=1;)"
              R"(algorithm.pad.s=true;algorithm.pad.sk=true;algorithm.pad.d=1;algorithm.pad.dv=1
#include "kernels/targets/hip/entry.hpp"

namespace {

struct K0 {
    FMHA_DEVICE static constexpr fmha::KernelConfig config() {
        fmha::KernelConfig c;
        c.arch = "gfx942";
        c.signature.data_type = fmha::DataType::bf16;
        c.signature.mask = fmha::MaskClass::causal;
        c.signature.has_lse = true;
        c.signature.hdim_q = 128;
        c.signature.hdim_v = 128;
        c.algorithm.tile = {128, 64, 32, 128, 32, 128};
        c.algorithm.wave = {4, 1, 1, 4, 1, 1};
        c.algorithm.pad.s = true;
        c.algorithm.pad.sk = true;
        c.algorithm.pad.d = 1;
        c.algorithm.pad.dv = 1;
        return c;
    }
};

} // namespace

FMHA_KERNEL(fmha_fwd_k, K0)
)");
}

TEST(Source, FollowsFromTheKernelsAlone) {
    const auto kernels = test::with_names(test::house_fwd("gfx1201"));
    const auto units = units_of(kernels, 4);
    ASSERT_EQ(units.size(), (kernels.size() + 3) / 4);
    EXPECT_THAT(units.front().stem, testing::EndsWith("+3"));
    // What else is built beside them changes neither name nor text: both are found again in a cache.
    for (std::size_t i = 0; i < units.size(); i += 97) {
        const auto alone = units_of(units[i].kernels, 4);
        ASSERT_EQ(alone.size(), 1U);
        EXPECT_EQ(alone.front().stem, units[i].stem);
        EXPECT_EQ(source_of(alone.front()), source_of(units[i]));
    }
}

TEST(Source, UnitsHoldOneArchitecture) {
    auto kernels = test::with_names(test::house_fwd("gfx90a"));
    kernels.resize(3);
    const auto others = test::with_names(test::house_fwd("gfx942"));
    kernels.insert(kernels.end(), others.begin(), others.begin() + 2);
    const auto units = units_of(kernels, 4);
    ASSERT_EQ(units.size(), 2U);
    EXPECT_EQ(units[0].kernels.size(), 3U);
    EXPECT_EQ(units[1].kernels.size(), 2U);
}

/// One kernel in 250 of every architecture: all that the catalogue spells in some source.
std::vector<NamedKernel> some_of_all() {
    std::vector<NamedKernel> some;
    const auto archs = arch::ArchSet::built_in();
    for (const auto& arch : archs.all()) {
        if (!arch.has_rule_set("house")) continue;
        const auto list = catalog::test::working_list(arch.name());
        for (std::size_t i = 0; i < list.size(); i += 250) some.push_back(named(list[i]));
    }
    return some;
}

TEST(Source, CompilesToTheConfigurationThatItNames) {
    const system::TemporaryDirectory folder;
    const auto root = folder.path();
    std::filesystem::create_directories(root / "kernels/targets/hip");
    system::write_file(root / "kernels/targets/hip/entry.hpp", R"(#pragma once
#include "dispatcher/types/kernel_config.hpp"
#include <cstdio>
#define FMHA_DEVICE
inline int show(const char* symbol, const fmha::KernelConfig& config) {
    return std::printf("%s %s\n", symbol, fmha::identifier(config).c_str());
}
#define FMHA_KERNEL(symbol, Kernel) static const int symbol = show(#symbol, Kernel::config());
)");
    const auto kernels = some_of_all();
    const auto units = units_of(kernels, 1000);
    // One program of all units, so that what they share is compiled once. It prints in the order of its sources.
    std::vector<std::string> command{FMHA_CXX, "-std=c++20",  "-O0",   "-x",
                                     "c++",    "-Werror",     "-Wall", "-Wno-unused-variable",
                                     "-I",     root.string(), "-I",    FMHA_SOURCE_DIR};
    std::string wanted;
    for (const Unit& unit : units) {
        command.push_back((root / (unit.kernels.front().config.arch.str() + ".hip")).string());
        system::write_file(command.back(), source_of(unit));
        for (const NamedKernel& kernel : unit.kernels)
            wanted += fmt::format("{} {}\n", built::symbol_of(kernel.name), identifier(kernel.config));
    }
    system::write_file(root / "main.cpp", "int main() {}\n");
    command.insert(command.end(), {FMHA_SOURCE_DIR "/dispatcher/types/fixed_string.cpp",
                                   (root / "main.cpp").string(), "-o", (root / "program").string()});
    const auto compiled = system::run_process(command);
    ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
    EXPECT_EQ(system::run_process({(root / "program").string()}).out, wanted);
}

TEST(Source, IsFormatted) {
    const std::string formatter = FMHA_CLANG_FORMAT;
    if (formatter.empty() || formatter.ends_with("NOTFOUND")) GTEST_SKIP() << "clang-format is not installed";
    if (system::run_process({formatter, "--version"}).out.find("version 14.") == std::string::npos)
        GTEST_SKIP() << formatter << " is not release 14, and releases disagree";
    const system::TemporaryDirectory folder;
    std::vector<std::string> command{formatter,
                                     std::string("--style=file:") + FMHA_SOURCE_DIR + "/.clang-format",
                                     "--dry-run", "--Werror"};
    const auto kernels = some_of_all();
    for (const Unit& unit : units_of(kernels, 50)) {
        const auto file = folder.path() / (unit.stem.substr(0, 80) + std::to_string(command.size()) + ".cpp");
        system::write_file(file, source_of(unit));
        command.push_back(file.string());
    }
    const auto ran = system::run_process(command);
    EXPECT_EQ(ran.exit_code, 0) << ran.err.substr(0, 2000);
}

TEST(Source, SymbolsAreUnique) {
    for (const char* arch : {"gfx950", "sm_90"}) check_symbols(test::with_names(test::house_fwd(arch)));
    KernelConfig other = small_config();
    other.signature.hdim_q = 64;
    const std::vector<NamedKernel> clash{{"fwd_k-1", small_config()}, {"fwd_k_1", other}};
    EXPECT_THAT([&] { check_symbols(clash); },
                testing::ThrowsMessage<DeclarationError>(HasSubstr("would both export fmha_fwd_k_1")));
}

TEST(Folder, OfSomebodyElseIsLeftAlone) {
    const system::TemporaryDirectory folder;
    system::write_file(folder.path() / "thesis.txt", "x");
    EXPECT_THAT([&] { const ClaimedFolder claim(folder.path()); },
                testing::ThrowsMessage<InputError>(HasSubstr("holds files that are not of kernels")));
    for (int i = 0; i < 2; ++i) const ClaimedFolder claim(folder.path() / "new");
}

TEST(Folder, ForgetsSourcesOfEarlierSelections) {
    const system::TemporaryDirectory folder;
    const ClaimedFolder claim(folder.path());
    const Unit a{"a", {{"fwd_a", small_config()}}}, b{"b", {{"fwd_b", small_config()}}};
    write_sources(std::vector{a, b}, folder.path(), "hip");
    const auto stamp = std::filesystem::last_write_time(folder.path() / "src/b.hip");
    write_sources(std::vector{b}, folder.path(), "hip");
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "src/a.hip"));
    EXPECT_EQ(std::filesystem::last_write_time(folder.path() / "src/b.hip"), stamp);
}

} // namespace
} // namespace fmha::generator
