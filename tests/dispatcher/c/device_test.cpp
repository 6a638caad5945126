// fmha_run_device from a folder of built kernels to a device, over a plugin whose device is the processor.

#include "tests/dispatcher/c/device_interface.hpp"

#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace fmha::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// Three queries, four keys, eight channels, of which only the first is not zero. There is memory for 64 channels.
struct Example {
    std::array<float, 192> q{}, o{};
    std::array<float, 256> k{}, v{};
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

TEST_F(DeviceInterface, AnOutputHasMemoryOfItsOwn) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    Example example;
    example.args.o.data = example.k.data();
    double milliseconds = 0.0;
    EXPECT_EQ(fmha_run_device(context_, &example.args, nullptr, nullptr), FMHA_BAD_PROBLEM);
    EXPECT_EQ(error(), "L-4: o shares memory with k; an output needs memory of its own");
    EXPECT_EQ(fmha_time_device(context_, &example.args, nullptr, 0, 1, &milliseconds), FMHA_BAD_PROBLEM);
    EXPECT_EQ(fmha_plan(context_, &example.args, nullptr), FMHA_OK) << error();
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

TEST_F(DeviceInterface, PackedFourBitValuesBeginAtAnEvenKey) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    Example example;
    const std::array<std::int32_t, 3> queries{0, 1, 3};
    std::array<std::int32_t, 3> keys{0, 3, 4};
    example.args.shape.data_type = FMHA_MXFP4;
    example.args.shape.v_layout = FMHA_V_COLUMN;
    example.args.shape.mode = FMHA_GROUP;
    example.args.shape.batch = 2;
    example.args.shape.max_seqlen_q = 2;
    example.args.shape.hdim_q = example.args.shape.hdim_v = 32;
    example.args.quant.qscale = FMHA_MX;
    const std::array<std::int32_t, 3> blocks{0, 1, 2};
    example.args.quant.block_scale_seqstart_k = blocks.data();
    example.args.lengths.seqstart_q = queries.data();
    example.args.lengths.seqstart_k = keys.data();
    double milliseconds = 0.0;
    const auto run = [&] { return fmha_run_device(context_, &example.args, nullptr, nullptr); };
    const auto time = [&] { return fmha_time_device(context_, &example.args, nullptr, 0, 1, &milliseconds); };
    // The folder has no such kernel: that is the next thing to fail.
    EXPECT_EQ(run(), FMHA_BAD_PROBLEM) << error();
    EXPECT_STREQ(fmha_last_rule(context_), "T-2");
    EXPECT_THAT(error(), HasSubstr("seqstart_k is 3; packed fp4 values of V run along the keys"));
    EXPECT_EQ(time(), FMHA_BAD_PROBLEM);
    keys[1] = 2;
    EXPECT_EQ(run(), FMHA_NO_KERNEL) << error();
    EXPECT_EQ(time(), FMHA_NO_KERNEL);
    refuse("copy");
    EXPECT_EQ(run(), FMHA_DEVICE_ERROR);
    // Other types store a key by itself, and nothing is fetched for them.
    example.args.shape.data_type = FMHA_MXFP8;
    keys[1] = 3;
    EXPECT_EQ(run(), FMHA_NO_KERNEL);
    // The plan looks at no memory.
    example.args.shape.data_type = FMHA_MXFP4;
    EXPECT_EQ(fmha_plan(context_, &example.args, nullptr), FMHA_NO_KERNEL);
}

/// Head dimensions for which the catalogue has kernels, and the folder has not. Rows of O keep apart.
void make_wide(Example& example) {
    constexpr std::int64_t hdim = 64;
    fmha_fwd_args& args = example.args;
    args.shape.hdim_q = args.shape.hdim_v = hdim;
    args.o.row_stride = hdim;
    args.o.head_stride = args.shape.seqlen_q * args.o.row_stride;
    args.o.batch_stride = args.shape.nhead_q * args.o.head_stride;
}

TEST_F(DeviceInterface, ChoosesFromTheFolderOnly) {
    ASSERT_EQ(create("gfx942"), FMHA_OK) << error();
    Example example;
    make_wide(example);
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
    make_wide(example);
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
