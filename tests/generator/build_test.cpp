// Builds: the kernels that are compiled, those that are not compiled again, and the remains of a failure or an interruption.

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/generator/audit.hpp"
#include "kernels/generator/build.hpp"
#include "kernels/generator/cache.hpp"
#include "tests/generator/catalogue.hpp"
#include "tests/generator/fake_compiler.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace fmha::generator {
namespace {

namespace fs = std::filesystem;
using test::FakeCompiler;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Eight kernels with one of head dimension 256 among them.
Selection eight() {
    const auto list = test::house_fwd("gfx942");
    Selection selection;
    const auto wide =
        std::ranges::find_if(list, [](const KernelConfig& c) { return c.signature.hdim_q == 256; });
    for (const KernelConfig& config : list) {
        if (selection.kernels.size() == 3) selection.kernels.push_back(named(*wide));
        if (selection.kernels.size() == 8) break;
        if (config.signature.hdim_q != 256) selection.kernels.push_back(named(config));
    }
    return selection;
}

BuildResult build_in(const FakeCompiler& fake, std::string_view folder, const Selection& selection) {
    return build(selection, fake.tools(selection), fake.options(folder));
}

TEST(Build, CompilesOnceAndSaysWhatIsThere) {
    const FakeCompiler fake;
    const Selection selection = eight();
    const auto first = build_in(fake, "out", selection);
    EXPECT_EQ(first.compiled, 8U);
    EXPECT_GT(first.compile_seconds, 0.0);
    EXPECT_EQ(built::read_manifest(fake.folder("out")), first.manifest);
    ASSERT_THAT(first.manifest.objects, SizeIs(8));
    for (std::size_t i = 0; i < 8; ++i) {
        const built::CodeObject& object = first.manifest.objects[i];
        EXPECT_EQ(object.kernels.front().config, selection.kernels[i].config);
        EXPECT_EQ(object.compiler, "clang version 99.1.0 (fake)");
        EXPECT_THAT(system::read_file(fake.folder("out") / object.file),
                    HasSubstr(object.kernels.front().symbol));
    }
    const auto second = build_in(fake, "out", selection);
    EXPECT_EQ(second.present + second.cached, 8U);
    EXPECT_EQ(second.manifest, first.manifest);
    EXPECT_EQ(fake.compiled(), 8U);
}

/// A kernel of pipeline ws that spills, or that the assembler holds up, is no kernel: compiled now, or found.
TEST(Build, KernelsOfAnotherSelectionAreNotRemovedUnasked) {
    const FakeCompiler fake;
    const Selection all = eight();
    Selection first = all, others = all;
    first.kernels.resize(2);
    others.kernels.erase(others.kernels.begin(), others.kernels.begin() + 2);
    const auto before = build_in(fake, "out", first).manifest;
    EXPECT_THAT([&] { build_in(fake, "out", others); },
                testing::ThrowsMessage<InputError>(AllOf(
                    HasSubstr("holds 2 kernels that this build leaves out, such as " + first.kernels[0].name),
                    HasSubstr("fmha build --replace lets them go, another folder keeps them"))));
    EXPECT_EQ(built::read_manifest(fake.folder("out")), before);
    EXPECT_THAT(build_in(fake, "out", all).manifest.objects, SizeIs(8)) << "more kernels take none away";
    auto options = fake.options("out");
    options.replace = true;
    EXPECT_THAT(build(others, fake.tools(others), options).manifest.objects, SizeIs(6));
}

TEST(Build, KernelsOfADamagedManifestAreNotForgotten) {
    const FakeCompiler fake;
    const Selection all = eight();
    Selection first = all;
    first.kernels.resize(2);
    build_in(fake, "out", all);
    const fs::path file = fake.folder("out") / built::manifest_file;
    const std::string whole = system::read_file(file);
    for (const std::string& damaged : {whole.substr(0, whole.size() / 2), std::string(), std::string("{}")}) {
        system::write_file(file, damaged);
        EXPECT_THAT([&] { build_in(fake, "out", first); },
                    testing::ThrowsMessage<InputError>(
                        AllOf(HasSubstr(file.string()), HasSubstr("fmha build --replace lets them go"))));
        EXPECT_EQ(system::read_file(file), damaged);
    }
    auto options = fake.options("out");
    options.replace = true;
    EXPECT_THAT(build(first, fake.tools(first), options).manifest.objects, SizeIs(2));
    system::write_file(file, R"({"schema_version": 1, "objects": [], "missing": []})");
    const auto renewed = build_in(fake, "out", first);
    EXPECT_THAT(renewed.manifest.objects, SizeIs(2));
    EXPECT_THAT(renewed.warnings, testing::ElementsAre(HasSubstr("schema_version: 1 is not known")));
}

TEST(Build, HeldUpWarpGroupsFail) {
    Selection selection = eight();
    selection.kernels.resize(2);
    KernelConfig teams = selection.kernels[0].config;
    teams.algorithm.pipeline = Pipeline::ws;
    selection.kernels[0] = named(teams);
    const std::string symbol = built::symbol_of(selection.kernels[0].name);
    const FakeCompiler fake;
    fake.say("ptxas info    : Compiling entry function '" + symbol +
             "' for 'sm_90a'\n    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads");
    for (const char* folder : {"one", "one", "two"}) {
        const auto result = build_in(fake, folder, selection);
        ASSERT_THAT(result.failed, SizeIs(1));
        EXPECT_EQ(result.failed[0].kernel.name, selection.kernels[0].name);
        EXPECT_THAT(result.failed[0].errors, HasSubstr("8 bytes stack frame, allowed in pipeline ws: 0"));
        ASSERT_THAT(result.manifest.missing, SizeIs(1));
        EXPECT_THAT(result.manifest.missing[0].reason, HasSubstr("it is held up: 8 bytes stack frame"));
        ASSERT_THAT(result.manifest.objects, SizeIs(1));
        EXPECT_EQ(result.manifest.objects[0].kernels.front().name, selection.kernels[1].name);
    }
    auto keeping = fake.options("three");
    keeping.keep_held_up = true;
    EXPECT_THAT(build(selection, fake.tools(selection), keeping).manifest.objects, SizeIs(2));
}

TEST(Build, OfAnotherFolderTakesFromTheCache) {
    const FakeCompiler fake;
    build_in(fake, "one", eight());
    const auto other = build_in(fake, "two", eight());
    EXPECT_EQ(other.cached, 8U);
    EXPECT_EQ(other.compiled, 0U);
    EXPECT_EQ(fake.compiled(), 8U);
    for (const built::CodeObject& object : other.manifest.objects) {
        EXPECT_TRUE(fs::exists(fake.folder("two") / object.file));
        EXPECT_THAT(system::read_file(fake.folder("two") / (object.file + ".log")), HasSubstr("remark"));
    }
}

TEST(Build, CompilesAgainWhenAHeaderChanged) {
    const FakeCompiler fake;
    build_in(fake, "out", eight());
    system::write_file(fake.root() / "kernels/other.hpp", "#define FMHA_DEVICE static\n");
    EXPECT_EQ(build_in(fake, "out", eight()).compiled, 8U);
    system::write_file(fake.root() / "kernels/other.hpp", "#define FMHA_DEVICE\n");
    const auto back = build_in(fake, "out", eight());
    EXPECT_EQ(back.compiled, 0U) << "the first content is in the cache";
    EXPECT_EQ(std::distance(fs::directory_iterator(fake.folder("out/obj")), {}), 16)
        << "objects and logs of now";
}

TEST(Build, WithoutCacheStillSkipsWhatNinjaFinished) {
    const FakeCompiler fake;
    const Selection selection = eight();
    auto options = fake.options("out");
    options.cache.reset();
    EXPECT_EQ(build(selection, fake.tools(selection), options).compiled, 8U);
    EXPECT_EQ(build(selection, fake.tools(selection), options).present, 8U);
    EXPECT_FALSE(fs::exists(fake.folder("cache")));
    EXPECT_EQ(fake.compiled(), 8U);
}

TEST(Build, DamagedCacheEntriesAreMadeAnew) {
    const FakeCompiler fake;
    const Selection selection = eight();
    build_in(fake, "one", selection);
    for (const auto& entry : fs::recursive_directory_iterator(fake.folder("cache")))
        if (entry.path().filename() == "object") {
            fs::remove(entry.path());
            system::write_file(entry.path(), "damaged");
        }
    const auto again = build_in(fake, "two", selection);
    EXPECT_EQ(again.compiled, 8U);
    EXPECT_EQ(build_in(fake, "three", selection).cached, 8U);
}

TEST(Build, FailingKernelsAreNamedAndTheOthersAreThere) {
    const FakeCompiler fake;
    fake.refuse("hdim_q = 256");
    const Selection selection = eight();
    auto options = fake.options("out");
    for (const std::size_t per_file : {std::size_t{1}, std::size_t{4}}) {
        options.per_file = per_file;
        const auto result = build(selection, fake.tools(selection), options);
        ASSERT_THAT(result.failed, SizeIs(1)) << per_file;
        const FailedKernel& failed = result.failed.front();
        EXPECT_EQ(failed.kernel, selection.kernels[3]);
        EXPECT_THAT(failed.command, testing::StartsWith(fake.folder("bin/clang++-99").string()));
        EXPECT_THAT(failed.command, HasSubstr(failed.kernel.name + ".hip -o obj/" + failed.kernel.name));
        EXPECT_THAT(failed.errors, HasSubstr("error: refused\nand a second line\n"));
        ASSERT_THAT(result.manifest.missing, SizeIs(1));
        EXPECT_EQ(result.manifest.missing.front().reason, "it did not compile");
        std::size_t kernels = 0;
        for (const built::CodeObject& object : result.manifest.objects) kernels += object.kernels.size();
        EXPECT_EQ(kernels, 7U);
        EXPECT_EQ(result.compiled + result.cached + result.present, 7U);
    }
    fake.refuse("nothing of the kind");
    options.per_file = 1;
    EXPECT_EQ(build(selection, fake.tools(selection), options).compiled, 1U) << "only what was missing";
}

TEST(Build, ACommandThatLeavesNoObjectHasFailed) {
    const FakeCompiler fake;
    fake.lose("hdim_q = 256");
    const Selection selection = eight();
    const auto result = build(selection, fake.tools(selection), fake.options("out"));
    ASSERT_THAT(result.failed, SizeIs(1));
    EXPECT_EQ(result.failed.front().kernel, selection.kernels[3]);
    EXPECT_THAT(result.failed.front().errors, HasSubstr("ended with 0 and wrote no object"));
    ASSERT_THAT(result.manifest.missing, SizeIs(1));
    EXPECT_EQ(result.manifest.missing.front().reason, "it did not compile");
    EXPECT_EQ(result.compiled, 7U);
}

TEST(Build, ACommandThatLeavesNoObjectHasFailedBesideOthersThatFail) {
    const FakeCompiler fake;
    fake.lose("hdim_q = 256");
    const Selection selection = eight();
    fake.refuse("hdim_q = " + std::to_string(selection.kernels[0].config.signature.hdim_q));
    auto options = fake.options("out");
    for (const std::size_t per_file : {std::size_t{1}, std::size_t{4}}) {
        options.per_file = per_file;
        const auto result = build(selection, fake.tools(selection), options);
        ASSERT_FALSE(result.failed.empty()) << per_file;
        const auto left_nothing = std::ranges::count_if(result.failed, [](const FailedKernel& failed) {
            return failed.errors.find("wrote no object") != std::string::npos;
        });
        EXPECT_EQ(left_nothing, 1) << per_file;
        EXPECT_GT(std::ssize(result.failed), left_nothing) << per_file;
        for (const auto& missing : result.manifest.missing)
            EXPECT_EQ(missing.reason, "it did not compile") << per_file;
    }
}

TEST(Build, AnInterruptedOneIsContinued) {
    for (const bool cached : {true, false}) {
        const FakeCompiler fake;
        fake.be_slow();
        const Selection selection = eight();
        auto options = fake.options("out");
        if (!cached) options.cache.reset();
        options.jobs = 1;
        std::size_t done = 0;
        options.progress = [&](std::size_t finished, std::size_t, std::string_view) { done = finished; };
        options.stop = [&] { return done >= 2; };
        const auto first = build(selection, fake.tools(selection), options);
        EXPECT_TRUE(first.interrupted);
        EXPECT_GE(first.compiled, 2U);
        EXPECT_LT(first.compiled, 8U);
        EXPECT_THAT(first.failed, IsEmpty()) << "an interrupted compiler is no broken kernel";
        EXPECT_EQ(first.manifest.missing.size(), 8U - first.compiled);
        EXPECT_THAT(first.manifest.missing.front().reason, HasSubstr("interrupted"));
        options.stop = {};
        fake.be_fast();
        const auto second = build(selection, fake.tools(selection), options);
        EXPECT_FALSE(second.interrupted);
        EXPECT_EQ(second.compiled, 8U - first.compiled);
        EXPECT_THAT(second.manifest.objects, SizeIs(8));
    }
}

TEST(Build, BeginsNothingWhenItIsStoppedBeforehand) {
    const FakeCompiler fake;
    const Selection selection = eight();
    build_in(fake, "one", selection);
    auto options = fake.options("one");
    options.stop = [] { return true; };
    const auto there = build(selection, fake.tools(selection), options);
    EXPECT_THAT(there.manifest.objects, SizeIs(8)) << "what was there stays";
    options.folder = fake.folder("two");
    const auto none = build(selection, fake.tools(selection), options);
    EXPECT_TRUE(none.interrupted);
    EXPECT_EQ(none.cached + none.compiled, 0U) << "thousands of objects are read for seconds";
    EXPECT_EQ(none.manifest.missing.size(), 8U);
}

/// Thousands of objects are read for minutes.
TEST(Build, AnAuditIsLeftOutWhenItIsStopped) {
    const FakeCompiler fake;
    const Selection selection = eight();
    auto result = build_in(fake, "out", selection);
    const auto tools = fake.tools(selection);
    const auto start = std::chrono::steady_clock::now();
    auto options = fake.options("out");
    fake.disassemble("exec sleep 60");
    options.stop = [&] { return std::chrono::steady_clock::now() > start + std::chrono::seconds(1); };
    const auto findings = audit(result, tools, arch::ArchSet::built_in(), options);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
    EXPECT_TRUE(result.interrupted);
    EXPECT_THAT(findings, IsEmpty()) << "a reader that was ended is no broken kernel";
    for (const built::CodeObject& object : built::read_manifest(fake.folder("out")).objects)
        EXPECT_FALSE(object.kernels.front().resources);
}

TEST(Build, SeveralMayShareACacheAtOnce) {
    const FakeCompiler fake;
    const Selection selection = eight();
    const BuildTools tools = fake.tools(selection);
    std::vector<std::size_t> built(3);
    {
        std::vector<std::jthread> builders;
        for (std::size_t i = 0; i < built.size(); ++i)
            builders.emplace_back([&, i] {
                const auto result = build(selection, tools, fake.options("out" + std::to_string(i)));
                built[i] = result.compiled + result.cached;
            });
    }
    EXPECT_THAT(built, testing::Each(8U));
    for (const auto& entry : fs::directory_iterator(fake.folder("cache")))
        EXPECT_EQ(entry.path().filename().string().size(), 2U) << entry.path() << " is a draft left behind";
}

TEST(Build, ACacheThatCannotBeWrittenIsAWarning) {
    const FakeCompiler fake;
    const Selection selection = eight();
    auto options = fake.options("out");
    system::write_file(fake.folder("file"), "");
    options.cache = fake.folder("file") / "cache";
    const auto result = build(selection, fake.tools(selection), options);
    EXPECT_EQ(result.compiled, 8U);
    ASSERT_THAT(result.warnings, SizeIs(1));
    EXPECT_THAT(result.warnings.front(), HasSubstr("compiled kernels are not kept"));
}

// As on a full disk: names of files that are there can still be made, contents cannot be written.
TEST(Build, ACacheWithoutRoomKeepsNoHalfOfAnEntry) {
    const FakeCompiler fake;
    const CompiledUnit unit{fake.folder("object"), fake.folder("log"), 7};
    system::write_file(unit.object, "code");
    system::write_file(unit.log, "");
    const KernelCache cache(fake.folder("cache"));
    const std::string key(64, 'a');
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit nothing{0, before.rlim_max};
    const auto on_excess = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &nothing), 0);
    EXPECT_THROW(cache.store(key, unit), InputError);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, on_excess);
    for (const auto& entry : fs::directory_iterator(fake.folder("cache")))
        EXPECT_EQ(entry.path().filename(), "aa") << "is a draft left behind";
    cache.store(key, unit);
    EXPECT_EQ(cache.fetch(key, {fake.folder("object2"), fake.folder("log2"), 0}), 7);
}

/// The only warning of a build of kernels that the cache has, which it does not take from there.
std::string distrust(const FakeCompiler& fake, std::string_view out) {
    const auto result = build_in(fake, out, eight());
    EXPECT_EQ(result.compiled, 8U);
    EXPECT_EQ(result.cached, 0U);
    return result.warnings.size() == 1 ? result.warnings.front()
                                       : fmt::format("{} warnings", result.warnings.size());
}

TEST(Build, ACacheThatOthersMayWriteIsNotBelieved) {
    const FakeCompiler fake;
    build_in(fake, "one", eight());
    fs::permissions(fake.folder("cache"), fs::perms::group_write, fs::perm_options::add);
    EXPECT_THAT(distrust(fake, "two"),
                testing::ContainsRegex("cache .*/cache: can be written by group [0-9]+, so that"));
    fs::permissions(fake.folder("cache"), fs::perms::others_write | fs::perms::sticky_bit,
                    fs::perm_options::add);
    EXPECT_THAT(distrust(fake, "three"), HasSubstr("/cache: can be written by everybody"));
    fs::permissions(fake.folder("cache"), fs::perms::owner_all);
    const fs::path above = fake.folder("cache").parent_path();
    fs::permissions(above, fs::perms::others_write, fs::perm_options::add);
    EXPECT_THAT(distrust(fake, "four"),
                HasSubstr(fmt::format("{} can be written by everybody", above.string())));
    fs::permissions(above, fs::perms::owner_all);
    EXPECT_EQ(build_in(fake, "five", eight()).cached, 8U) << "it was not touched meanwhile";
}

TEST(Build, ACacheOfAnotherUserIsNotBelieved) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
    const FakeCompiler fake;
    build_in(fake, "one", eight());
    ASSERT_EQ(chown(fake.folder("cache").c_str(), 12345, 12345), 0);
    EXPECT_THAT(distrust(fake, "two"), HasSubstr("/cache: belongs to user 12345, so that"));
}

TEST(Build, ACacheEntryThatOthersMayHaveWrittenIsMadeAnew) {
    const FakeCompiler fake;
    build_in(fake, "one", eight());
    for (const auto& entry : fs::recursive_directory_iterator(fake.folder("cache")))
        if (entry.path().filename() == "object")
            fs::permissions(entry.path(), fs::perms::others_write, fs::perm_options::add);
    const auto again = build_in(fake, "two", eight());
    EXPECT_EQ(again.compiled, 8U);
    EXPECT_EQ(build_in(fake, "three", eight()).cached, 8U);
}

TEST(Build, ACacheIsThisUsersAloneWhateverTheUmaskIs) {
    const FakeCompiler fake;
    const mode_t before = umask(0);
    build_in(fake, "one", eight());
    umask(before);
    const auto result = build_in(fake, "two", eight());
    EXPECT_EQ(result.cached, 8U);
    EXPECT_THAT(result.warnings, IsEmpty());
}

TEST(Build, HeadersThatChangeMeanwhileAreNotKept) {
    const FakeCompiler fake;
    fake.touch_headers();
    EXPECT_THAT([&] { build_in(fake, "out", eight()); },
                testing::ThrowsMessage<BuildError>(HasSubstr("changed while kernels were compiled")));
    EXPECT_FALSE(fs::exists(fake.folder("cache")));
}

TEST(Build, DeclinedKernelsAreInTheManifest) {
    const FakeCompiler fake;
    Selection selection = eight();
    selection.declined.push_back({selection.kernels.back(), "no instruction"});
    selection.kernels.pop_back();
    const auto result = build_in(fake, "out", selection);
    ASSERT_THAT(result.manifest.missing, SizeIs(1));
    EXPECT_EQ(result.manifest.missing.front().reason, "no instruction");
}

} // namespace
} // namespace fmha::generator
