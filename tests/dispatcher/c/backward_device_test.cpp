// Backward from a folder of built kernels to a device, over a plugin whose device is the processor.

#include "tests/dispatcher/c/device_interface.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <random>
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
    EXPECT_THAT(error(), HasSubstr("do not decrease"));
    group.args.lengths.seqstart_q = nullptr;
    EXPECT_EQ(fmha_prepare_workspace(context_, &group.args, group.args.workspace, nullptr), FMHA_BAD_PROBLEM);
}

} // namespace
} // namespace fmha::test
