// Compilers are found, asked and described; the sources of a kernel decide its key, their place does not.

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/generator/headers.hpp"
#include "tests/generator/catalogue.hpp"
#include "tests/generator/fake_compiler.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <set>
#include <sstream>

namespace fmha::generator {
namespace {

namespace fs = std::filesystem;
using test::FakeCompiler;
using testing::AllOf;
using testing::HasSubstr;

const arch::Hardware& hardware(std::string_view name) {
    static const arch::ArchSet archs = arch::ArchSet::built_in();
    return archs.at(name).hardware();
}

std::string no_compiler(std::string_view arch, const CompilerPlaces& places) {
    try {
        return "found " + find_compiler(hardware(arch), places).path.string();
    } catch (const InputError& error) {
        return error.what();
    }
}

TEST(FindCompiler, SaysWhatWasLookedForAndWhatToInstall) {
    EXPECT_THAT(no_compiler("gfx950", {}), AllOf(HasSubstr("no compiler for gfx950: looked for amdclang++"),
                                                 HasSubstr("install ROCm, or clang-22 and lld-22")));
    EXPECT_THAT(no_compiler("sm_90", {}), AllOf(HasSubstr("no compiler for sm_90: looked for nvcc"),
                                                HasSubstr("install the CUDA toolkit")));
}

TEST(FindCompiler, SaysWhatTheOnesThatAreThereLack) {
    const FakeCompiler fake;
    EXPECT_THAT(no_compiler("gfx1201", fake.places()),
                HasSubstr("clang++-99 (clang version 99.1.0 (fake)) does not know gfx1201"));
    CompilerPlaces given{.given = "/bin/cat", .path = {}, .rocm = {}, .cuda = {}};
    EXPECT_EQ(no_compiler("gfx950", given), "--compiler /bin/cat: does not run or is neither clang nor nvcc");
    given.given = fake.folder("bin/clang++-99");
    EXPECT_THAT(no_compiler("sm_90", given), HasSubstr("does not compile for NVIDIA"));
}

TEST(FindCompiler, TakesTheNewestThatKnowsTheArchitecture) {
    const FakeCompiler fake;
    // Newer, and without gfx942.
    std::string newer = system::read_file(fake.folder("bin/clang++-99"));
    newer.replace(newer.find("99.1.0"), 6, "100.0.");
    newer.replace(newer.find("gfx942 "), 7, "");
    system::write_file(fake.folder("bin/clang++-100"), newer);
    fs::permissions(fake.folder("bin/clang++-100"), fs::perms::owner_all);
    EXPECT_EQ(find_compiler(hardware("gfx950"), fake.places()).path.filename(), "clang++-100");
    EXPECT_EQ(find_compiler(hardware("gfx942"), fake.places()).path.filename(), "clang++-99");
}

TEST(FindCompiler, TakesNvccWhereNoHostCompilerIsOnThePath) {
    const FakeCompiler fake;
    const fs::path nvcc = fake.folder("nvcc");
    system::write_file(nvcc, "#!/bin/sh\n"
                             "case $1 in\n"
                             "--version) echo 'Cuda compilation tools, release 13.0, V13.0.88';;\n"
                             "--list-gpu-code) echo sm_90;;\n"
                             "esac\n");
    fs::permissions(nvcc, fs::perms::owner_all);
    const std::string before = std::getenv("PATH");
    ASSERT_EQ(setenv("PATH", fake.folder("cache").c_str(), 1), 0);
    const std::string found = no_compiler("sm_90", {.given = nvcc});
    ASSERT_EQ(setenv("PATH", before.c_str(), 1), 0);
    EXPECT_EQ(found, "found " + nvcc.string());
}

TEST(Flags, AreThoseOfTheArchitecture) {
    Compiler compiler;
    EXPECT_THAT(compile_flags(compiler, "gfx90a"), testing::Contains("--offload-arch=gfx90a"));
    compiler.kind = CompilerKind::nvcc;
    EXPECT_THAT(compile_flags(compiler, "sm_90"), testing::Contains("-gencode=arch=compute_90a,code=sm_90a"));
    EXPECT_THAT(compile_flags(compiler, "sm_80"), testing::Contains("-gencode=arch=compute_80,code=sm_80"));
}

TEST(Headers, AreFoundThroughTheirIncludes) {
    const FakeCompiler fake;
    EXPECT_THAT(headers_of(fake.root()),
                testing::ElementsAre(std::string(entry_header), "kernels/other.hpp"));
    const std::string before = headers_digest(fake.root());
    system::write_file(fake.root() / "kernels/unrelated.hpp", "");
    EXPECT_EQ(headers_digest(fake.root()), before);
    system::write_file(fake.root() / "kernels/other.hpp", "// other\n");
    EXPECT_NE(headers_digest(fake.root()), before);
    EXPECT_THAT([&] { kernel_root(fake.folder("bin").string()); },
                testing::ThrowsMessage<InputError>(HasSubstr("holds no kernels/targets/hip/entry.hpp")));
}

TEST(Headers, OfTheProjectReachTheTypes) {
    const auto headers = headers_of(FMHA_SOURCE_DIR);
    for (const char* header : {"kernels/programs/fmha_fwd.hpp", "dispatcher/types/kernel_values.hpp"})
        EXPECT_THAT(headers, testing::Contains(header));
}

/// The headers that a generated source reaches, by the compiler's list of what it depends on.
std::set<fs::path> reached_headers(std::string_view vendor) {
    const FakeCompiler fake;
    const auto source = fake.folder("source.hip");
    system::write_file(source, source_of(units_of(test::with_names(test::house_fwd("gfx950")), 1).front()));
    const auto ran = system::run_process({FMHA_CXX, "-std=c++20", "-x", "c++", fmt::format("-D{}", vendor),
                                          "-M", "-I" FMHA_SOURCE_DIR, source.string()});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    std::istringstream words(ran.out);
    std::set<fs::path> paths;
    for (std::string word; words >> word;) paths.insert(word);
    return paths;
}

// Kernels that were compiled with other headers are found by these.
TEST(Headers, OfTheProjectAreAllThatACompilerReads) {
    const auto headers = headers_of(FMHA_SOURCE_DIR);
    std::size_t seen = 0;
    for (const std::string_view vendor : {"__HIP__", "__CUDACC__"})
        for (const fs::path& path : reached_headers(vendor)) {
            const std::string header = path.lexically_relative(FMHA_SOURCE_DIR).generic_string();
            if (header.starts_with("..") || path.extension() != ".hpp") continue;
            EXPECT_THAT(headers, testing::Contains(header));
            ++seen;
        }
    EXPECT_GT(seen, 100U);
}

// Every kernel is compiled by itself: of the time of a small one these were a third.
TEST(Headers, OfTheProjectLeaveOutTheLargeOnesOfTheLibrary) {
    for (const std::string_view vendor : {"__HIP__", "__CUDACC__"}) {
        std::set<std::string> names;
        for (const fs::path& path : reached_headers(vendor)) names.insert(path.filename());
        EXPECT_THAT(names, testing::IsSupersetOf({"entry.hpp", "kernel_values.hpp", "cstdint"})) << vendor;
        for (const char* large : {"string", "vector", "optional", "functional", "charconv", "memory", "map",
                                  "stdexcept", "algorithm", "ranges", "basic_string.h", "stl_vector.h"})
            EXPECT_THAT(names, testing::Not(testing::Contains(large))) << vendor;
    }
}

struct Keys {
    FakeCompiler fake;
    std::vector<Unit> units = units_of(test::with_names(test::house_fwd("gfx942")), 3);
    BuildTools tools = fake.tools({{units.front().kernels}, {}});
    std::string key(const BuildTools& with) const {
        return plan_units(std::span(units).first(1), with).front().key;
    }
};

TEST(Key, FollowsFromContentAndNotFromPlaces) {
    const Keys one, two;
    ASSERT_NE(one.tools.root, two.tools.root);
    EXPECT_EQ(one.key(one.tools), two.key(two.tools));
    BuildTools launched = one.tools;
    launched.launcher = "ccache";
    EXPECT_EQ(one.key(launched), one.key(one.tools));
}

TEST(Key, ChangesWithHeadersCompilerAndSource) {
    const Keys keys;
    const std::string before = keys.key(keys.tools);
    BuildTools other = keys.tools;
    other.headers = "other";
    EXPECT_NE(keys.key(other), before);
    other = keys.tools;
    other.compilers.at("gfx942").identity += ".1";
    EXPECT_NE(keys.key(other), before);
    const auto planned = plan_units(std::span(keys.units).first(2), keys.tools);
    EXPECT_NE(planned[0].key, planned[1].key);
}

/// What compiles kernels of gfx942 from the sources under `root`.
BuildTools tools_of_gfx942(const std::string& root, const std::string& compiler) {
    BuildTools tools;
    tools.root = root;
    tools.compilers["gfx942"] = {CompilerKind::clang, compiler, 99, "v", "v"};
    return tools;
}

/// One kernel of gfx942.
PlannedUnit unit_called(const std::string& name) {
    KernelConfig config;
    config.arch = "gfx942";
    return {{name, {{name, config}}}, "abc", "obj/" + name + ".abc.hsaco", "src/" + name + ".hip"};
}

TEST(NinjaFile, IsTheGoldenOne) {
    BuildTools tools = tools_of_gfx942("/the root", "/opt/$rocm/clang++");
    tools.launcher = "ccache";
    const PlannedUnit unit = unit_called("fwd_k");
    const std::string command =
        "ccache '/opt/$rocm/clang++' -x hip -std=c++20 -O3 -nogpuinc -nogpulib --offload-arch=gfx942 "
        "--cuda-device-only --no-gpu-bundle-output -fuse-cuid=none -Rpass-analysis=kernel-resource-usage -c "
        "-I'/the root'";
    std::string in_file = command;
    in_file.insert(in_file.find('$'), "$");
    EXPECT_EQ(ninja_file(std::span(&unit, 1), tools),
              "# Compiles the kernels under src/ into code objects under obj/.\n"
              "ninja_required_version = 1.8\n"
              "\n"
              "rule gfx942\n"
              "  command = " +
                  in_file +
                  " $in -o $out 2> $out.log || { cat $out.log >&2; false; }\n"
                  "  description = $out\n"
                  "\n"
                  "build obj/fwd_k.abc.hsaco: gfx942 src/fwd_k.hip\n");
    EXPECT_EQ(command_line(unit, tools), command + " src/fwd_k.hip -o obj/fwd_k.abc.hsaco");
}

TEST(NinjaFile, ParsesHeadersOnceForAllKernelsOfAnArchitecture) {
    BuildTools tools = tools_of_gfx942("/root", "/opt/clang++");
    tools.headers = "digest";
    const PlannedUnit unit = unit_called("k");
    const auto parsed = parsed_headers(tools);
    ASSERT_TRUE(parsed.contains("gfx942"));
    const std::string& stem = parsed.at("gfx942").stem;
    EXPECT_EQ(stem.substr(0, 11), "pch/gfx942.");
    const std::string text = ninja_file(std::span(&unit, 1), tools);
    EXPECT_THAT(text, testing::HasSubstr("\nbuild " + stem + ".args: headers_gfx942 | pch/entry.hip\n"));
    EXPECT_THAT(text, testing::HasSubstr(" @" + stem + ".args $in -o $out "));
    EXPECT_THAT(text, testing::EndsWith("\nbuild obj/k.abc.hsaco: gfx942 src/k.hip | " + stem + ".args\n"));
    // What people repeat needs nothing but the source.
    EXPECT_THAT(command_line(unit, tools), testing::Not(testing::HasSubstr("pch")));

    BuildTools other = tools;
    other.headers = "another digest";
    EXPECT_NE(parsed_headers(other).at("gfx942").stem, stem);
    // ccache and distcc neither keep nor send them, and nvcc has none for device code.
    other.launcher = "ccache";
    EXPECT_THAT(parsed_headers(other), testing::IsEmpty());
    tools.compilers["gfx942"].kind = CompilerKind::nvcc;
    EXPECT_THAT(parsed_headers(tools), testing::IsEmpty());
}

} // namespace
} // namespace fmha::generator
