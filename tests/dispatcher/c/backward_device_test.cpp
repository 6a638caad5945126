// Backward from a folder of built kernels to a device, over a plugin whose device is the processor.

#include "tests/dispatcher/c/device_interface.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace fmha::test {
namespace {

using testing::HasSubstr;

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

    ~BackwardOnADevice() override {
        for (void* memory : allocated_) fmha_device_release(context_, memory);
    }
    BackwardOnADevice(const BackwardOnADevice&) = delete;
    BackwardOnADevice& operator=(const BackwardOnADevice&) = delete;

    /// Memory of the device of so many bytes, aligned to 16 of them and full of NaN.
    char* allocated(std::int64_t bytes) {
        void* memory = nullptr;
        EXPECT_EQ(fmha_device_allocate(context_, bytes, &memory), FMHA_OK) << error();
        allocated_.push_back(memory);
        std::memset(memory, 0xFF, static_cast<std::size_t>(bytes));
        return static_cast<char*>(memory);
    }
    /// Of just the size that the workspace of `args` must have.
    char* workspace_for(const fmha_bwd_args& args) {
        EXPECT_EQ(fmha_workspace_size(context_, &args, &bytes_, nullptr), FMHA_OK) << error();
        return allocated(bytes_);
    }
    fmha_status prepare(const fmha_bwd_args& args) {
        return fmha_prepare_workspace(context_, &args, args.workspace, nullptr);
    }
    fmha_status run(const fmha_bwd_args& args) { return fmha_run_device(context_, &args, nullptr, nullptr); }

    std::int64_t bytes_ = 0;
    std::vector<void*> allocated_;
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
            for (int run = 0; run < 2; ++run) { // the second in the memory that the first has left
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

/// Sums of the run before, or any other contents, would be added to.
TEST_F(BackwardOnADevice, IsRefusedWithoutPreparation) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    Backward example;
    example.args.workspace = workspace_for(example.args);
    const auto refused = [&](const char* sentence) {
        const std::vector<float> before = example.dq;
        EXPECT_EQ(run(example.args), FMHA_BAD_ARGUMENT);
        EXPECT_THAT(error(), HasSubstr(sentence));
        EXPECT_EQ(example.dq, before) << "nothing is launched";
    };
    refused("was not prepared since the last run with it");
    ASSERT_EQ(prepare(example.args), FMHA_OK);
    ASSERT_EQ(run(example.args), FMHA_OK) << error();
    refused("was not prepared since the last run with it");

    // Ready for two entries, and then for splits.
    ASSERT_EQ(prepare(example.args), FMHA_OK);
    example.args.shape.batch = 1;
    refused("was prepared for a call of other lengths, heads or kernels");
    example.args.shape.batch = Backward::batch;
    ASSERT_EQ(prepare(example.args), FMHA_OK);
    example.args.deterministic = 1;
    refused("was prepared for a call of other lengths, heads or kernels");
    example.args.deterministic = 0;
    ASSERT_EQ(prepare(example.args), FMHA_OK);
    EXPECT_EQ(run(example.args), FMHA_OK) << error();

    double milliseconds = 0.0;
    ASSERT_EQ(prepare(example.args), FMHA_OK);
    ASSERT_EQ(fmha_time_device(context_, &example.args, nullptr, 0, 1, &milliseconds), FMHA_OK) << error();
    refused("was not prepared since the last run with it");

    fmha_context* const first = context_;
    context_ = nullptr;
    ASSERT_EQ(create(), FMHA_OK) << error();
    refused("call fmha_prepare_workspace of this context before every run");
    fmha_destroy(first);
}

/// Lengths that the host states are a part of what a workspace was prepared for.
TEST_F(BackwardOnADevice, IsRefusedForOtherStatedLengths) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    Backward packed(true, true);
    packed.args.host_seqstart_q = packed.starts_q.data();
    packed.args.host_seqstart_k = packed.starts_k.data();
    packed.args.workspace = workspace_for(packed.args);
    ASSERT_EQ(prepare(packed.args), FMHA_OK) << error();
    packed.starts_k[1] = 200;
    EXPECT_EQ(run(packed.args), FMHA_BAD_ARGUMENT);
    EXPECT_THAT(error(), HasSubstr("was prepared for a call of other lengths, heads or kernels"));
    ASSERT_EQ(prepare(packed.args), FMHA_OK) << error();
    EXPECT_EQ(run(packed.args), FMHA_OK) << error();
}

/// Physical lengths may exceed the bounds of logical ones (N-2): 5 rows and 300 keys in stretches of 8 and 500.
TEST_F(BackwardOnADevice, TakesPaddingThatTheHostKnows) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    const std::vector<std::int32_t> rows{5, 2}, keys{300, 100};
    for (const bool deterministic : {false, true}) {
        SCOPED_TRACE(deterministic);
        Backward packed(deterministic, true);
        packed.starts_q = {0, 8, 10};
        packed.starts_k = {0, 500, 600};
        packed.args.lengths.seqlen_q = rows.data();
        packed.args.lengths.seqlen_k = keys.data();
        std::int32_t exact = 1;
        packed.args.workspace = workspace_for(packed.args);
        EXPECT_EQ(fmha_workspace_size(context_, &packed.args, &bytes_, &exact), FMHA_OK);
        EXPECT_EQ(exact, 0);
        EXPECT_EQ(prepare(packed.args), deterministic ? FMHA_BAD_PROBLEM : FMHA_OK) << error();
        EXPECT_THAT(error(), HasSubstr(deterministic ? "state host_seqstart_q and host_seqstart_k" : ""));

        packed.args.host_seqstart_q = packed.starts_q.data();
        packed.args.host_seqstart_k = packed.starts_k.data();
        packed.args.workspace = workspace_for(packed.args);
        EXPECT_EQ(fmha_workspace_size(context_, &packed.args, &bytes_, &exact), FMHA_OK);
        EXPECT_EQ(exact, 1);
        // Header of 16, or of two numbers of splits and three offsets; 8 rows of 4 tiles of 128 keys, 2 rows of one.
        constexpr std::int64_t row = 4 * Backward::heads * Backward::width;
        EXPECT_EQ(bytes_, deterministic ? 16 + 32 + row * (8 * 4 + 2 * 1) : 16 + row * (8 + 2));
        refuse("synchronise_stream"); // nothing has to be fetched
        ASSERT_EQ(prepare(packed.args), FMHA_OK) << error();
        refuse("");
        ASSERT_EQ(run(packed.args), FMHA_OK) << error();
        const std::vector<float> dq = packed.dq, dk = packed.dk;
        ASSERT_EQ(fmha_run_host(context_, &packed.args, nullptr), FMHA_OK) << error();
        EXPECT_EQ(dk, packed.dk);
        for (std::size_t n = 0; n < dq.size(); ++n) ASSERT_NEAR(dq[n], packed.dq[n], 1e-5) << n;
    }
}

TEST_F(BackwardOnADevice, RefusesOffsetsThatAreNone) {
    ASSERT_EQ(create(), FMHA_OK) << error();
    Backward packed(true, true);
    packed.args.host_seqstart_q = packed.starts_q.data();
    EXPECT_EQ(fmha_workspace_size(context_, &packed.args, &bytes_, nullptr), FMHA_BAD_ARGUMENT);
    EXPECT_THAT(error(), HasSubstr("args.host_seqstart_k is NULL"));
    packed.args.host_seqstart_k = packed.starts_k.data();
    packed.starts_k[1] = 700;
    EXPECT_EQ(fmha_workspace_size(context_, &packed.args, &bytes_, nullptr), FMHA_BAD_PROBLEM);
    EXPECT_THAT(error(), HasSubstr("host_seqstart_k goes from 700 to 600"));
    packed.args.shape.mode = FMHA_BATCH;
    packed.args.shape.seqlen_q = Backward::queries;
    packed.args.shape.seqlen_k = Backward::keys;
    packed.args.lengths = {};
    EXPECT_EQ(fmha_workspace_size(context_, &packed.args, &bytes_, nullptr), FMHA_BAD_ARGUMENT);
    EXPECT_THAT(error(), HasSubstr("a batch that is not packed"));
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
    char* const aligned = workspace_for(example.args);
    EXPECT_EQ(fmha_prepare_workspace(context_, &example.args, aligned + 4, nullptr), FMHA_BAD_ARGUMENT);
    EXPECT_THAT(error(), HasSubstr("is not aligned to 16 bytes"));
    example.args.workspace = allocated(bytes_ - 16);
    EXPECT_EQ(prepare(example.args), FMHA_BAD_ARGUMENT) << "too small";
    EXPECT_THAT(error(), AllOf(HasSubstr("memory of device 0 (Fake, gfx942) ends"),
                               HasSubstr("these kernels need " + std::to_string(bytes_))));
    EXPECT_EQ(fmha_prepare_workspace(context_, &example.args, aligned + 16, nullptr), FMHA_BAD_ARGUMENT);
    alignas(16) std::array<char, 64> of_the_host{};
    EXPECT_EQ(fmha_prepare_workspace(context_, &example.args, of_the_host.data(), nullptr),
              FMHA_BAD_ARGUMENT);
    EXPECT_THAT(error(), HasSubstr("is no memory of device 0"));
    example.args.workspace_bytes = bytes_ - 1;
    EXPECT_EQ(fmha_prepare_workspace(context_, &example.args, aligned, nullptr), FMHA_BAD_ARGUMENT);
    EXPECT_THAT(error(), HasSubstr("workspace_bytes is " + std::to_string(bytes_ - 1)));
    example.args.workspace_bytes = -1;
    EXPECT_EQ(fmha_prepare_workspace(context_, &example.args, aligned, nullptr), FMHA_BAD_ARGUMENT);
    example.args.workspace_bytes = bytes_;
    ASSERT_EQ(fmha_prepare_workspace(context_, &example.args, aligned, nullptr), FMHA_OK) << error();
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
    EXPECT_THAT(error(), HasSubstr("do not decrease"));
    group.args.lengths.seqstart_q = nullptr;
    EXPECT_EQ(fmha_prepare_workspace(context_, &group.args, group.args.workspace, nullptr), FMHA_BAD_PROBLEM);
}

} // namespace
} // namespace fmha::test
