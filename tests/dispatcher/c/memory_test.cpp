// A thread of libfmha.so that finds no memory is a status of the call; the caller's process lives on.

#include "dispatcher/include/fmha/fmha.h"
#include "tests/system/replaced_new.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace {

/// While set, only the thread with this id is given memory.
std::atomic<std::thread::id> only{};
std::atomic<int> refused{0};

} // namespace

// The library's own allocations come here too, as it leaves operator new undefined.
bool fmha::test::refuses_memory() {
    const auto allowed = only.load();
    if (allowed == std::thread::id() || allowed == std::this_thread::get_id()) return false;
    ++refused;
    return true;
}

namespace {

template <class T>
T fresh() {
    T value{};
    value.size = sizeof(T);
    value.version = FMHA_ABI_VERSION;
    return value;
}

TEST(Memory, AThreadWithoutAnyIsAStatus) {
    if (std::thread::hardware_concurrency() < 2)
        GTEST_SKIP() << "one hardware thread: kernels start no other";
    // Long enough that other threads get a part, however many there are.
    constexpr std::int64_t heads = 64, length = 256, hdim = 64, all = heads * length * hdim;
    std::vector<float> q(all, 0.5F), k(all, 0.25F), v(all, 2.0F), o(all, 0.0F);
    auto args = fresh<fmha_fwd_args>();
    args.shape.data_type = FMHA_FP32;
    args.shape.batch = 1;
    args.shape.nhead_q = args.shape.nhead_k = heads;
    args.shape.seqlen_q = args.shape.seqlen_k = length;
    args.shape.hdim_q = args.shape.hdim_v = hdim;
    args.mask.window_left = args.mask.window_right = -1;
    args.score.scale_s = 1.0F;
    args.q = {q.data(), all, length * hdim, hdim, 1};
    args.k = {k.data(), all, length * hdim, hdim, 1};
    args.v = {v.data(), all, length * hdim, hdim, 1};
    args.o = {o.data(), all, length * hdim, hdim, 1};

    fmha_context* context = nullptr;
    auto options = fresh<fmha_context_options>();
    options.arch = "gfx950";
    ASSERT_EQ(fmha_create(&options, &context), FMHA_OK);
    only = std::this_thread::get_id();
    const auto status = fmha_run_host(context, &args, nullptr);
    only = std::thread::id();
    EXPECT_EQ(status, FMHA_NO_MEMORY) << fmha_last_error(context);
    EXPECT_GT(refused, 0);
    ASSERT_EQ(fmha_run_host(context, &args, nullptr), FMHA_OK) << fmha_last_error(context);
    EXPECT_EQ(o.back(), 2.0F);
    fmha_destroy(context);
}

} // namespace
