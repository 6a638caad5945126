// fmha_run_device from a folder of built kernels to a device, over a plugin whose device is the processor.

#include "dispatcher/include/fmha/fmha.h"
#include "tests/dispatcher/c/built_folder.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

namespace fmha::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

template <class T>
T fresh() {
    T value{};
    value.size = sizeof(T);
    value.version = FMHA_ABI_VERSION;
    return value;
}

/// Three queries, four keys, eight channels, of which only the first is not zero.
struct Example {
    std::array<float, 24> q{}, o{};
    std::array<float, 32> k{}, v{};
    std::array<float, 3> lse{};
    fmha_fwd_args args = fresh<fmha_fwd_args>();

    Example() {
        const std::array queries{1.0F, 2.0F, -1.0F};
        const std::array keys{1.0F, 0.0F, -1.0F, 2.0F}, values{1.0F, 2.0F, 4.0F, -8.0F};
        for (std::size_t i = 0; i < queries.size(); ++i) q[8 * i] = queries[i];
        for (std::size_t j = 0; j < keys.size(); ++j) k[8 * j] = keys[j], v[8 * j] = values[j];
        args.shape.data_type = FMHA_FP32;
        args.shape.batch = args.shape.nhead_q = args.shape.nhead_k = 1;
        args.shape.seqlen_q = 3;
        args.shape.seqlen_k = 4;
        args.shape.hdim_q = args.shape.hdim_v = 8;
        args.mask.window_left = args.mask.window_right = -1;
        args.score.scale_s = 1.0F;
        args.q = {q.data(), 24, 24, 8, 1};
        args.k = {k.data(), 32, 32, 8, 1};
        args.v = {v.data(), 32, 32, 8, 1};
        args.o = {o.data(), 24, 24, 8, 1};
        args.lse = {lse.data(), 3, 3, 1, 1};
    }
};

class DeviceInterface : public testing::Test {
  protected:
    DeviceInterface() {
        kernels_ = write_built_folder(folder_);
        setenv("FMHA_HIP_PLUGIN_DIR", FMHA_FAKE_PLUGIN_DIR, 1);
        refuse("");
    }
    ~DeviceInterface() override {
        fmha_destroy(context_);
        fs::remove_all(folder_);
    }

    /// Makes one call of the fake runtime fail, "" none.
    static void refuse(const char* call) {
        static const auto set = reinterpret_cast<void (*)(const char*)>(
            dlsym(dlopen(FMHA_FAKE_PLUGIN_DIR "/libfmha_hip_amd.so", RTLD_NOW), "fake_device_refuse"));
        set(call);
    }
    fmha_status create(const char* arch = nullptr, std::int64_t device = 0) {
        fmha_destroy(context_);
        auto options = fresh<fmha_context_options>();
        const std::string folder = folder_.string();
        options.arch = arch;
        options.kernels_dir = folder.c_str();
        options.device = device;
        return fmha_create(&options, &context_);
    }
    std::string error() const { return fmha_last_error(context_); }

    fs::path folder_ = fs::temp_directory_path() / ("fmha_c_device." + std::to_string(getpid()));
    std::size_t kernels_ = 0;
    fmha_context* context_ = nullptr;
};

TEST_F(DeviceInterface, RunsABuiltKernel) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    EXPECT_EQ(fmha_kernel_count(context_), static_cast<std::int64_t>(kernels_));
    Example example;
    auto info = fresh<fmha_run_info>();
    ASSERT_EQ(fmha_run_device(context_, &example.args, nullptr, &info), FMHA_OK) << error();
    EXPECT_THAT(info.kernel, HasSubstr("fwd_gfx942_fp32_batch_h32x32"));
    EXPECT_NEAR(example.o[0], -4.61190821, 1e-4);
    EXPECT_NEAR(example.o[8], -6.76231966, 1e-4);
    EXPECT_NEAR(example.lse[2], 1.44018970, 1e-4);
}

TEST_F(DeviceInterface, ATensorWithoutElementsIsNull) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    Example batch;
    batch.args.shape.seqlen_k = 0;
    batch.args.k.data = batch.args.v.data = nullptr;
    batch.o.fill(7.0F);
    ASSERT_EQ(fmha_run_device(context_, &batch.args, nullptr, nullptr), FMHA_OK) << error();
    EXPECT_EQ(batch.o[16], 0.0F);
    EXPECT_EQ(batch.lse[2], -INFINITY);

    // The lengths lie on the device: they are fetched to see whether there are keys.
    Example group;
    const std::array<std::int32_t, 2> queries{0, 3};
    std::array<std::int32_t, 2> keys{0, 0};
    group.args.shape.mode = FMHA_GROUP;
    group.args.shape.max_seqlen_q = 3;
    group.args.lengths.seqstart_q = queries.data();
    group.args.lengths.seqstart_k = keys.data();
    for (fmha_tensor* tensor : {&group.args.q, &group.args.k, &group.args.v, &group.args.o, &group.args.lse})
        tensor->batch_stride = 0;
    group.args.k.data = group.args.v.data = nullptr;
    ASSERT_EQ(fmha_run_device(context_, &group.args, nullptr, nullptr), FMHA_OK) << error();
    EXPECT_EQ(group.lse[2], -INFINITY);
    keys[1] = 4;
    EXPECT_EQ(fmha_run_device(context_, &group.args, nullptr, nullptr), FMHA_BAD_ARGUMENT);
    EXPECT_THAT(error(), HasSubstr("k.data is NULL; allowed only where no sequence has a key"));
    refuse("copy");
    EXPECT_EQ(fmha_run_device(context_, &group.args, nullptr, nullptr), FMHA_DEVICE_ERROR);
}

TEST_F(DeviceInterface, ChoosesFromTheFolderOnly) {
    ASSERT_EQ(create("gfx942"), FMHA_OK) << error();
    Example example;
    example.args.shape.hdim_q = example.args.shape.hdim_v =
        64; // the catalogue has such kernels, the folder has not
    auto info = fresh<fmha_run_info>();
    EXPECT_EQ(fmha_plan(context_, &example.args, &info), FMHA_NO_KERNEL);
    EXPECT_EQ(fmha_run_device(context_, &example.args, nullptr, nullptr), FMHA_NO_KERNEL);
}

TEST_F(DeviceInterface, RefusesWhatIsNotThereInASentence) {
    EXPECT_EQ(create("gfx950"), FMHA_BAD_ARGUMENT);
    EXPECT_THAT(error(), HasSubstr("options.arch is gfx950, but device 0 (Fake, gfx942) is gfx942"));
    EXPECT_EQ(create(nullptr, 3), FMHA_DEVICE_ERROR);
    EXPECT_THAT(error(), HasSubstr("no device 3"));
    EXPECT_EQ(create(nullptr, -1), FMHA_BAD_ARGUMENT);
    setenv("FMHA_HIP_PLUGIN_DIR", "/nonexistent", 1);
    EXPECT_EQ(create(), FMHA_DEVICE_ERROR);
    EXPECT_THAT(error(), HasSubstr("no plugin"));
    fs::remove(folder_ / built::manifest_file);
    EXPECT_EQ(create(), FMHA_BAD_ARGUMENT);
    EXPECT_EQ(fmha_kernel_count(context_), 0);
    Example example;
    EXPECT_EQ(fmha_run_device(context_, &example.args, nullptr, nullptr), FMHA_BAD_ARGUMENT);
}

TEST_F(DeviceInterface, AFailureOfTheRuntimeIsAStatusAndTheContextStaysUsable) {
    for (const char* call : {"set_device", "load_module", "function", "launch"}) {
        ASSERT_EQ(create(), FMHA_OK) << error();
        Example example;
        refuse(call);
        EXPECT_EQ(fmha_run_device(context_, &example.args, nullptr, nullptr), FMHA_DEVICE_ERROR) << call;
        EXPECT_THAT(error(), HasSubstr("refused by the test")) << call;
        refuse("");
        EXPECT_EQ(fmha_run_device(context_, &example.args, nullptr, nullptr), FMHA_OK) << error();
        EXPECT_NEAR(example.o[0], -4.61190821, 1e-4);
    }
    refuse("device_count");
    EXPECT_EQ(create(), FMHA_DEVICE_ERROR);
}

TEST_F(DeviceInterface, ABrokenCodeObjectIsNamed) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    std::ofstream(folder_ / "all.hsaco") << "text";
    Example example;
    EXPECT_EQ(fmha_run_device(context_, &example.args, nullptr, nullptr), FMHA_DEVICE_ERROR);
    EXPECT_THAT(error(), HasSubstr("all.hsaco is not a code object"));
}

TEST_F(DeviceInterface, MemoryIsAllocatedCopiedAndReleased) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    void* memory = nullptr;
    ASSERT_EQ(fmha_device_allocate(context_, sizeof(float) * 3, &memory), FMHA_OK) << error();
    const std::array sent{1.0F, 2.0F, 3.0F};
    std::array received{0.0F, 0.0F, 0.0F};
    EXPECT_EQ(fmha_device_upload(context_, memory, sent.data(), sizeof sent, nullptr), FMHA_OK);
    EXPECT_EQ(fmha_device_download(context_, received.data(), memory, sizeof received, nullptr), FMHA_OK);
    EXPECT_EQ(fmha_device_wait(context_, nullptr), FMHA_OK);
    EXPECT_EQ(received, sent);
    EXPECT_EQ(fmha_device_release(context_, memory), FMHA_OK);
    EXPECT_EQ(fmha_device_release(context_, nullptr), FMHA_OK);

    ASSERT_EQ(fmha_device_allocate(context_, 0, &memory), FMHA_OK);
    EXPECT_NE(memory, nullptr) << "no bytes are not an absent tensor";
    EXPECT_EQ(fmha_device_release(context_, memory), FMHA_OK);
    EXPECT_EQ(fmha_device_allocate(context_, -1, &memory), FMHA_BAD_ARGUMENT);
    EXPECT_EQ(error(), "bytes is -1; allowed: 0 and above");
    EXPECT_EQ(fmha_device_allocate(context_, 1, nullptr), FMHA_BAD_ARGUMENT);
    EXPECT_EQ(fmha_device_upload(context_, nullptr, sent.data(), 4, nullptr), FMHA_BAD_ARGUMENT);
    EXPECT_EQ(fmha_device_upload(context_, nullptr, nullptr, 0, nullptr), FMHA_OK) << error();
    EXPECT_EQ(fmha_device_download(context_, nullptr, received.data(), 4, nullptr), FMHA_BAD_ARGUMENT);
    for (const char* call : {"allocate", "synchronise_stream"}) {
        refuse(call);
        const fmha_status status = call == std::string("allocate")
                                       ? fmha_device_allocate(context_, 1, &memory)
                                       : fmha_device_wait(context_, nullptr);
        EXPECT_EQ(status, FMHA_DEVICE_ERROR) << call;
        refuse("");
    }
}

TEST_F(DeviceInterface, TimesTheMeanOfLaunches) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    Example example;
    double milliseconds = 0.0;
    // The fake clock shows one millisecond between any two events.
    ASSERT_EQ(fmha_time_device(context_, &example.args, nullptr, 1, 4, &milliseconds), FMHA_OK) << error();
    EXPECT_NEAR(milliseconds, 0.25, 1e-9);
    EXPECT_NEAR(example.o[0], -4.61190821, 1e-4);
    EXPECT_EQ(fmha_time_device(context_, &example.args, nullptr, 0, 0, &milliseconds), FMHA_BAD_ARGUMENT);
    EXPECT_EQ(fmha_time_device(context_, &example.args, nullptr, -1, 1, &milliseconds), FMHA_BAD_ARGUMENT);
    EXPECT_EQ(fmha_time_device(context_, &example.args, nullptr, 0, 1, nullptr), FMHA_BAD_ARGUMENT);
    example.args.shape.hdim_q = example.args.shape.hdim_v = 64;
    EXPECT_EQ(fmha_time_device(context_, &example.args, nullptr, 0, 1, &milliseconds), FMHA_NO_KERNEL);
}

TEST_F(DeviceInterface, KernelsAreKeptAndTold) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    ASSERT_EQ(fmha_keep_kernels(context_, "c.lse and not c.dropout"), FMHA_OK) << error();
    const auto kept = fmha_kernel_count(context_);
    EXPECT_GT(kept, 0);
    EXPECT_LT(kept, static_cast<std::int64_t>(kernels_));
    EXPECT_EQ(fmha_keep_kernels(context_, "c.hdim_q == 99"), FMHA_NO_KERNEL);
    EXPECT_EQ(fmha_keep_kernels(context_, "c.hdmi == 99"), FMHA_BAD_ARGUMENT);
    EXPECT_EQ(fmha_keep_kernels(context_, nullptr), FMHA_BAD_ARGUMENT);
    EXPECT_EQ(fmha_kernel_count(context_), kept);

    std::uint64_t length = 0;
    ASSERT_EQ(fmha_export_kernels(context_, nullptr, 0, &length), FMHA_OK) << error();
    std::string text(length + 1, '?');
    ASSERT_EQ(fmha_export_kernels(context_, text.data(), text.size(), &length), FMHA_OK);
    EXPECT_EQ(text.find('\0'), length);
    EXPECT_THAT(text, HasSubstr("\"total_kernels\": " + std::to_string(kept)));
    std::array<char, 8> cut{};
    ASSERT_EQ(fmha_export_kernels(context_, cut.data(), cut.size(), &length), FMHA_OK);
    EXPECT_EQ(std::string(cut.data()), text.substr(0, 7));
    EXPECT_EQ(length + 1, text.size());
    EXPECT_EQ(fmha_export_kernels(context_, nullptr, 8, &length), FMHA_BAD_ARGUMENT);
    EXPECT_EQ(fmha_export_kernels(context_, nullptr, 0, nullptr), FMHA_BAD_ARGUMENT);

    Example example;
    example.args.lse.data = nullptr;
    ASSERT_EQ(fmha_explain(context_, &example.args, text.data(), text.size(), &length), FMHA_OK) << error();
    EXPECT_THAT(text, HasSubstr("no complete plan"));
}

/// Two entries, four query heads of two key heads, 5 queries and 300 keys of 32 channels, which is three key tiles.
struct Backward {
    static constexpr std::int64_t batch = 2, heads = 4, kv_heads = 2, queries = 5, keys = 300, width = 32;
    std::vector<float> q = random(heads * queries), k = random(kv_heads * keys), v = random(kv_heads * keys),
                       o = random(heads * queries), d_o = random(heads * queries);
    std::vector<float> lse = std::vector<float>(batch * heads * queries, 6.0F), d = lse;
    std::vector<float> dq = std::vector<float>(q.size(), 77.0F), dk, dv;
    std::vector<std::int32_t> starts_q{0, 5, 10}, starts_k{0, 300, 600};
    fmha_bwd_args args = fresh<fmha_bwd_args>();

    explicit Backward(bool deterministic = false, bool group = false, bool reduced = false) {
        const std::int64_t key_heads = reduced ? kv_heads : heads;
        dk = dv = std::vector<float>(static_cast<std::size_t>(batch * key_heads * keys * width), 77.0F);
        args.reduce_dk_dv = reduced ? 1 : 0;
        args.api = FMHA_BWD;
        args.deterministic = deterministic ? 1 : 0;
        args.shape.data_type = FMHA_FP32;
        args.shape.batch = batch;
        args.shape.nhead_q = heads;
        args.shape.nhead_k = kv_heads;
        args.shape.hdim_q = args.shape.hdim_v = width;
        args.mask.window_left = args.mask.window_right = -1;
        const auto view = [group](std::vector<float>& data, std::int64_t count, std::int64_t rows,
                                  std::int64_t columns) -> fmha_tensor {
            const std::int64_t entry = count * rows * columns;
            // Packed: (row, head, column).
            if (group) return {data.data(), 0, columns, count * columns, 1};
            return {data.data(), entry, rows * columns, columns, 1};
        };
        args.q = view(q, heads, queries, width);
        args.k = view(k, kv_heads, keys, width);
        args.v = view(v, kv_heads, keys, width);
        args.o = view(o, heads, queries, width);
        args.d_o = view(d_o, heads, queries, width);
        args.lse = view(lse, heads, queries, 1);
        args.d = view(d, heads, queries, 1);
        args.dq = view(dq, heads, queries, width);
        args.dk = view(dk, key_heads, keys, width);
        args.dv = view(dv, key_heads, keys, width);
        if (group) {
            args.shape.mode = FMHA_GROUP;
            args.shape.max_seqlen_q = queries;
            args.shape.max_seqlen_k = keys;
            args.lengths.seqstart_q = starts_q.data();
            args.lengths.seqstart_k = starts_k.data();
        } else {
            args.shape.seqlen_q = queries;
            args.shape.seqlen_k = keys;
        }
    }
    Backward(const Backward&) = delete;
    Backward& operator=(const Backward&) = delete;
    ~Backward() = default;

    static std::vector<float> random(std::int64_t rows) {
        std::mt19937 bits(static_cast<unsigned>(rows));
        std::uniform_real_distribution<float> draw(-1.0F, 1.0F);
        std::vector<float> values(static_cast<std::size_t>(batch * rows * width));
        for (float& value : values) value = draw(bits);
        return values;
    }
};

class BackwardOnADevice : public DeviceInterface {
  protected:
    BackwardOnADevice() { write_built_folder(folder_, catalog::families_of(ApiFamily::bwd)); }

    /// Memory that is aligned as the workspace of `args` must be, full of NaN.
    void* workspace_for(const fmha_bwd_args& args) {
        EXPECT_EQ(fmha_workspace_size(context_, &args, &bytes_, nullptr), FMHA_OK) << error();
        memory_.assign(static_cast<std::size_t>(bytes_) / 8 + 4, std::numeric_limits<double>::quiet_NaN());
        const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
        return reinterpret_cast<void*>((address + 15) / 16 * 16); // NOLINT(performance-no-int-to-ptr)
    }

    std::int64_t bytes_ = 0;
    std::vector<double> memory_;
};

TEST_F(BackwardOnADevice, GivesWhatTheHostGives) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    for (const bool group : {false, true})
        for (const bool deterministic : {false, true}) {
            SCOPED_TRACE(testing::Message() << "group " << group << ", deterministic " << deterministic);
            Backward host(deterministic, group), device(deterministic, group);
            // No length of packed sequences, and no number of blocks either.
            if (group) host.args.shape.seqlen_k = device.args.shape.seqlen_k = std::int64_t{1} << 40;
            ASSERT_EQ(fmha_run_host(context_, &host.args, nullptr), FMHA_OK) << error();
            device.args.workspace = workspace_for(device.args);
            EXPECT_GT(bytes_, 4 * Backward::batch * Backward::heads * Backward::queries * Backward::width);
            for (int run = 0; run < 2; ++run) { // the second in what the first has left
                ASSERT_EQ(fmha_prepare_workspace(context_, &device.args, device.args.workspace, nullptr),
                          FMHA_OK)
                    << error();
                auto info = fresh<fmha_run_info>();
                ASSERT_EQ(fmha_run_device(context_, &device.args, nullptr, &info), FMHA_OK) << error();
                EXPECT_THAT(info.kernel, HasSubstr(" + bwd_dq_dk_dv_gfx942_fp32_"));
                EXPECT_EQ(device.dk, host.dk);
                EXPECT_EQ(device.dv, host.dv);
                for (std::size_t n = 0; n < host.dq.size(); ++n)
                    ASSERT_NEAR(device.dq[n], host.dq[n], 1e-5) << n;
            }
        }
}

TEST_F(BackwardOnADevice, AddsUpTheHeadsOfAKeyHead) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    Backward each, host(false, false, true), device(false, false, true);
    for (Backward* problem : {&each, &host})
        ASSERT_EQ(fmha_run_host(context_, &problem->args, nullptr), FMHA_OK) << error();
    constexpr std::int64_t group = Backward::heads / Backward::kv_heads;
    constexpr std::size_t head = Backward::keys * Backward::width;
    ASSERT_EQ(host.dk.size() * group, each.dk.size());
    for (std::size_t n = 0; n < host.dk.size(); ++n) {
        const std::size_t first = n / head * group * head + n % head;
        ASSERT_NEAR(host.dk[n], each.dk[first] + each.dk[first + head], 1e-5) << n;
        ASSERT_NEAR(host.dv[n], each.dv[first] + each.dv[first + head], 1e-5) << n;
    }
    device.args.workspace = workspace_for(device.args);
    ASSERT_EQ(fmha_prepare_workspace(context_, &device.args, device.args.workspace, nullptr), FMHA_OK);
    ASSERT_EQ(fmha_run_device(context_, &device.args, nullptr, nullptr), FMHA_OK) << error();
    EXPECT_EQ(device.dk, host.dk);
    EXPECT_EQ(device.dv, host.dv);
}

TEST_F(BackwardOnADevice, WithoutPreparationIsWrong) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    Backward example;
    example.args.workspace = workspace_for(example.args);
    ASSERT_EQ(fmha_prepare_workspace(context_, &example.args, example.args.workspace, nullptr), FMHA_OK);
    ASSERT_EQ(fmha_run_device(context_, &example.args, nullptr, nullptr), FMHA_OK) << error();
    const std::vector<float> once = example.dq;
    ASSERT_EQ(fmha_run_device(context_, &example.args, nullptr, nullptr), FMHA_OK) << error();
    EXPECT_NEAR(example.dq[3], 2.0F * once[3], 1e-5) << "sums of the run before stay";
}

TEST_F(BackwardOnADevice, IsPreparedBeforeEveryTimedLaunch) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    Backward host, timed;
    ASSERT_EQ(fmha_run_host(context_, &host.args, nullptr), FMHA_OK) << error();
    timed.args.workspace = workspace_for(timed.args);
    double milliseconds = 0.0;
    ASSERT_EQ(fmha_time_device(context_, &timed.args, nullptr, 1, 3, &milliseconds), FMHA_OK) << error();
    for (std::size_t n = 0; n < host.dq.size(); ++n) ASSERT_NEAR(timed.dq[n], host.dq[n], 1e-5) << n;
}

TEST_F(BackwardOnADevice, RefusesAWorkspaceThatIsNone) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    Backward example;
    EXPECT_EQ(fmha_prepare_workspace(context_, &example.args, nullptr, nullptr), FMHA_BAD_ARGUMENT);
    EXPECT_THAT(error(), HasSubstr("workspace is NULL; these kernels need"));
    EXPECT_EQ(fmha_run_device(context_, &example.args, nullptr, nullptr), FMHA_BAD_ARGUMENT);
    char* const aligned = static_cast<char*>(workspace_for(example.args));
    EXPECT_EQ(fmha_prepare_workspace(context_, &example.args, aligned + 4, nullptr), FMHA_BAD_ARGUMENT);
    EXPECT_THAT(error(), HasSubstr("is not aligned to 16 bytes"));
    refuse("fill");
    EXPECT_EQ(fmha_prepare_workspace(context_, &example.args, aligned, nullptr), FMHA_DEVICE_ERROR);
    EXPECT_THAT(error(), HasSubstr("clearing "));
    refuse("");

    Backward group(true, true);
    group.args.workspace = workspace_for(group.args);
    group.starts_k[2] = 900; // longer than max_seqlen_k says
    EXPECT_EQ(fmha_prepare_workspace(context_, &group.args, group.args.workspace, nullptr), FMHA_BAD_PROBLEM);
    EXPECT_THAT(error(), HasSubstr("the lengths on the device need a workspace of"));
    group.starts_k[2] = 100;
    EXPECT_EQ(fmha_prepare_workspace(context_, &group.args, group.args.workspace, nullptr), FMHA_BAD_PROBLEM);
    EXPECT_THAT(error(), HasSubstr("may not decrease"));
    group.args.lengths.seqstart_q = nullptr;
    EXPECT_EQ(fmha_prepare_workspace(context_, &group.args, group.args.workspace, nullptr), FMHA_BAD_PROBLEM);
}

TEST(WithoutAFolder, ThereIsNoDevice) {
    auto options = fresh<fmha_context_options>();
    options.arch = "gfx942";
    fmha_context* context = nullptr;
    ASSERT_EQ(fmha_create(&options, &context), FMHA_OK);
    Example example;
    EXPECT_EQ(fmha_run_device(context, &example.args, nullptr, nullptr), FMHA_UNSUPPORTED);
    EXPECT_THAT(fmha_last_error(context), HasSubstr("kernels_dir"));
    fmha_destroy(context);
    options.device = 1;
    EXPECT_EQ(fmha_create(&options, &context), FMHA_BAD_ARGUMENT);
    fmha_destroy(context);
}

} // namespace
} // namespace fmha::test
