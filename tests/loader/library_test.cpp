// Folders of built kernels: the kernels found, the missing ones and why, and the times of loading.

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/loader/kernel_library.hpp"
#include "kernels/targets/hip/block_plan.hpp"
#include "tests/loader/fake_runtime.hpp"
#include "tests/support/dense_problem.hpp"
#include "tests/support/sentence_of.hpp"

#include <gmock/gmock.h>

namespace fmha::loader::test {
namespace {

using fmha::test::sentence_of;
using testing::HasSubstr;

/// A kernel of the catalogue's usual shape.
KernelConfig kernel(DataType type, bool lse = false) {
    KernelConfig config;
    config.arch = "gfx950";
    config.signature.data_type = type;
    config.signature.has_lse = lse;
    config.signature.hdim_q = config.signature.hdim_v = 128;
    config.algorithm.tile = {.m0 = 128, .n0 = 128, .k0 = 32, .n1 = 128, .k1 = 32, .k0max = 128};
    config.algorithm.wave = {.m0 = 4, .n0 = 1, .k0 = 1, .m1 = 4, .n1 = 1, .k1 = 1};
    config.algorithm.warp = {.m0 = 32, .n0 = 32, .k0 = 16, .m1 = 32, .n1 = 32, .k1 = 16};
    config.algorithm.pad = {.s = true, .sk = true, .d = 8, .dv = 8};
    return config;
}

/// fp16 with and without LSE in one file, bf16 in another, fp32 that did not compile.
class Build {
  public:
    Build() {
        built::Manifest manifest;
        manifest.objects = {
            {"half.hsaco",
             "gfx950",
             "clang",
             "k1",
             {{"half", kernel(DataType::fp16), "fmha_half", {}},
              {"half_lse", kernel(DataType::fp16, true), "fmha_half_lse", {}}}},
            {"brain.hsaco", "gfx950", "clang", "k2", {{"brain", kernel(DataType::bf16), "fmha_brain", {}}}}};
        manifest.missing = {{"single", kernel(DataType::fp32), "it did not compile"}};
        built::write_manifest(manifest, folder_.path());
        system::write_file(folder_.path() / "half.hsaco",
                           fake_image("gfx950", {{"fmha_half", kernel(DataType::fp16)},
                                                 {"fmha_half_lse", kernel(DataType::fp16, true)}}));
        system::write_file(folder_.path() / "brain.hsaco",
                           fake_image("gfx950", {{"fmha_brain", kernel(DataType::bf16)}}));
    }
    const std::filesystem::path& path() const { return folder_.path(); }
    std::shared_ptr<const KernelFolder> open() const { return std::make_shared<KernelFolder>(path()); }

  private:
    system::TemporaryDirectory folder_;
};

TEST(Folder, KnowsItsKernels) {
    const Build build;
    const auto folder = build.open();
    EXPECT_EQ(folder->size(), 3U);
    EXPECT_THAT(folder->archs(), testing::ElementsAre("gfx950"));
    EXPECT_EQ(folder->find(kernel(DataType::bf16)).kernel->symbol, "fmha_brain");
    EXPECT_EQ(folder->find(kernel(DataType::bf16, true)).kernel, nullptr);
}

TEST(Folder, SaysWhyAKernelIsMissing) {
    const Build build;
    const auto folder = build.open();
    EXPECT_THAT(folder->why_missing(kernel(DataType::fp32), "single"),
                HasSubstr("kernel single was planned but could not be built into " + build.path().string() +
                          ": it did not compile"));
    EXPECT_THAT(folder->why_missing(kernel(DataType::bf16, true), "brain_lse"),
                HasSubstr("kernel brain_lse was planned but is not in " + build.path().string() +
                          ": run `fmha build --arch gfx950 --kernel brain_lse --out "));
}

TEST(Folder, IsIdentifiedByWhatItsCodeFollowsFrom) {
    const Build build, same;
    const std::string before = build.open()->build();
    EXPECT_EQ(before, same.open()->build());
    built::Manifest manifest = built::read_manifest(build.path());
    // The additions of an audit and the place of a kernel are not its code.
    manifest.objects[0].kernels[0].resources.emplace().vgprs = 7;
    std::swap(manifest.objects[0], manifest.objects[1]);
    built::write_manifest(manifest, build.path());
    EXPECT_EQ(before, build.open()->build());
    manifest.objects[0].key = "k3";
    built::write_manifest(manifest, build.path());
    EXPECT_NE(before, build.open()->build());
}

TEST(Folder, WithoutAManifest) {
    const system::TemporaryDirectory empty;
    EXPECT_THAT(sentence_of<InputError>([&] { KernelFolder folder(empty.path()); }),
                HasSubstr("manifest.json"));
}

TEST(Library, LoadsACodeObjectOnceAndWhenItIsNeeded) {
    const Build build;
    FakeRuntime runtime;
    {
        KernelLibrary library(build.open(), Device(runtime, 0));
        EXPECT_EQ(runtime.loads(), 0);
        EXPECT_EQ(library.load(kernel(DataType::fp16), "named")->name(), "hip.half");
        EXPECT_EQ(library.load(kernel(DataType::fp16, true), "named")->config(),
                  kernel(DataType::fp16, true));
        EXPECT_EQ(runtime.loads(), 1);
        static_cast<void>(library.load(kernel(DataType::bf16), "named"));
        EXPECT_EQ(runtime.loads(), 2);
    }
    EXPECT_EQ(runtime.alive(), 0U);
}

TEST(Library, AKernelOutlivesIt) {
    const Build build;
    FakeRuntime runtime;
    auto library = std::make_unique<KernelLibrary>(build.open(), Device(runtime, 0));
    auto instance = library->load(kernel(DataType::fp16), "named");
    library.reset();
    EXPECT_EQ(runtime.alive(), 1U);
    EXPECT_NE(instance->clock({}), nullptr) << "its launches return before they are done";
    instance.reset();
    EXPECT_EQ(runtime.alive(), 0U);
}

TEST(Library, RefusesAnotherArchitecture) {
    const Build build;
    FakeRuntime runtime;
    runtime.device.arch = "gfx90a";
    EXPECT_EQ(sentence_of<DeviceError>([&] { KernelLibrary(build.open(), Device(runtime, 0)); }),
              "wrong arch: device 0 (Fake GPU, gfx90a) is gfx90a, " + build.path().string() +
                  " holds kernels for gfx950");
}

TEST(Library, NamesWhatIsMissing) {
    const Build build;
    FakeRuntime runtime;
    KernelLibrary library(build.open(), Device(runtime, 0));
    EXPECT_THAT(sentence_of<KernelNotBuilt>(
                    [&] { static_cast<void>(library.load(kernel(DataType::fp32), "named")); }),
                HasSubstr("it did not compile"));
    std::filesystem::remove(build.path() / "brain.hsaco");
    EXPECT_THAT(sentence_of<KernelNotBuilt>([&] { static_cast<void>(library.load(kernel(DataType::bf16))); }),
                testing::AllOf(HasSubstr("the manifest names a code object that cannot be read, "),
                               HasSubstr("brain.hsaco")));
}

TEST(Library, AFileThatLacksItsSymbol) {
    const Build build;
    system::write_file(build.path() / "brain.hsaco", fake_image("gfx950", {}));
    FakeRuntime runtime;
    KernelLibrary library(build.open(), Device(runtime, 0));
    EXPECT_THAT(
        sentence_of<DeviceError>([&] { static_cast<void>(library.load(kernel(DataType::bf16), "named")); }),
        HasSubstr("finding fmha_brain in "));
}

/// A problem of fp16 that a kernel takes; the fake's kernels read no element.
struct Problem : fmha::test::DenseProblem<FwdArgs, std::uint16_t> {
    explicit Problem(const Signature& s)
        : DenseProblem({2, 3, 3, 129, 64, s.hdim_q, s.hdim_v}, ElementType::fp16,
                       [](float) { return std::uint16_t{0}; }) {
        args.o = query_tensor(s.hdim_v);
    }
};

TEST(Kernel, LaunchesTheGridOfTheProgramAndTheBlockOfThePlan) {
    const Build build;
    FakeRuntime runtime;
    KernelLibrary library(build.open(), Device(runtime, 0));
    const auto instance = library.load(kernel(DataType::fp16), "named");
    const KernelConfig* ran = nullptr;
    runtime.run = [&](const KernelConfig& config, const FwdArgs& args) {
        ran = &config;
        EXPECT_EQ(args.shape.seqlen_q, 129);
    };
    instance->launch(Problem(instance->config().signature).args, {});
    ASSERT_NE(ran, nullptr);
    EXPECT_EQ(*ran, instance->config());
    EXPECT_EQ(runtime.last_shape().blocks, 2U * 3 * 2) << "entries, heads, tiles of 128 rows";
    EXPECT_EQ(runtime.last_shape().threads,
              static_cast<std::uint32_t>(hip_target::plan_of(instance->config()).threads));
    EXPECT_EQ(runtime.last_shape().dynamic_lds, 0U) << "AMD reserves it statically";
}

TEST(Kernel, RefusesWhatItCannotCompute) {
    const Build build;
    FakeRuntime runtime;
    KernelLibrary library(build.open(), Device(runtime, 0));
    const auto instance = library.load(kernel(DataType::fp16), "named");
    const Problem problem(instance->config().signature);
    FwdArgs args = problem.args;
    args.q.type = ElementType::bf16;
    EXPECT_THAT(sentence_of<UnsupportedInvocation>([&] { instance->launch(args, {}); }),
                HasSubstr("tensor q is bf16, the kernel takes fp16"));
    EXPECT_THROW(instance->launch(std::monostate{}, {}), ArgumentTypeError);
    args = problem.args;
    args.shape.batch = std::int64_t{1} << 31;
    EXPECT_THAT(sentence_of<UnsupportedInvocation>([&] { instance->launch(args, {}); }),
                HasSubstr("blocks; allowed: at most 2147483647"));
    args.shape.batch = 0;
    EXPECT_NO_THROW(instance->launch(args, {}));
    EXPECT_EQ(runtime.last_shape().blocks, 0U) << "nothing to compute, nothing launched";
}

// Whether a null tensor has elements is read from lengths on the device, behind the kernels before.
TEST(Kernel, AFaultBeforeItIsNotItsOwn) {
    const Build build;
    FakeRuntime runtime;
    const Device device(runtime, 0);
    KernelLibrary library(build.open(), device);
    const auto instance = library.load(kernel(DataType::fp16), "named");
    const Problem problem(instance->config().signature);
    FwdArgs args = problem.args;
    DeviceBuffer no_keys(device, 2 * sizeof(std::int32_t));
    no_keys.fill(DeviceStream(device), 0);
    args.lengths.seqlen_k = reinterpret_cast<const std::int32_t*>(no_keys.data());
    args.k.data = args.v.data = nullptr;
    EXPECT_NO_THROW(instance->launch(args, {}));
    runtime.loss = Status{1, Fault::other};
    EXPECT_THAT(sentence_of<DeviceLost>([&] { instance->launch(args, {}); }), HasSubstr("fakeError1 (1)"));
}

} // namespace
} // namespace fmha::loader::test
