// The memory that a case takes, what is said of it beforehand, and the limits that go by that.

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/families/all_families.hpp"
#include "harness/npy/exchange.hpp"
#include "harness/run/case_tensors.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/execution.hpp"
#include "harness/run/worker_pool.hpp"
#include "tests/harness/gate_support.hpp"
#include "tests/harness/run_support.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <string>

namespace fmha::harness::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A case whose reference takes more than its tensors.
Case many_rows() {
    Case c = small_case();
    c.batch = 1;
    c.nhead_q = c.nhead_k = 4;
    c.seqlen_q = {4096};
    c.seqlen_k = {16};
    c.hdim_q = c.hdim_v = 128;
    return c;
}

/// One whose copies do.
Case many_random_bytes() {
    Case c = small_case();
    c.batch = 1;
    c.nhead_q = c.nhead_k = 4;
    c.seqlen_q = c.seqlen_k = {2048};
    c.hdim_q = c.hdim_v = 32;
    c.p_drop = 0.1;
    c.store_randval = true;
    c.sampled_rows = true;
    return c;
}

std::int64_t kilobytes(const std::string& key) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(key)) return std::stoll(line.substr(key.size() + 1));
    return 0;
}

/// Bytes by which a process grows at most while it does `work`.
std::int64_t growth_in(const std::function<void()>& work) {
    std::int64_t bytes = 0;
    run_isolated(
        1, {},
        [&](std::size_t) {
            const std::int64_t before = kilobytes("VmRSS:");
            work();
            return std::to_string(1024 * (kilobytes("VmHWM:") - before));
        },
        [&](std::size_t, const TaskEnd& end) {
            bytes = end.kind == TaskEnd::Kind::done ? std::stoll(end.answer) : 0;
            return true;
        });
    return bytes;
}

/// The same while it runs `c`.
std::int64_t growth_of(const Case& c, const KernelSource& source) {
    return growth_in([&] { EXPECT_THAT(outcomes(run_case(c, source, {})), ElementsAre(Outcome::passed)); });
}

TEST(Memory, IsWhatACaseTakes) {
    constexpr std::int64_t noise = 8 << 20;
    const Fp8Flavour flavour = fp8_flavour("gfx950");
    for (const Case& c : {many_rows(), many_random_bytes()}) {
        const std::int64_t said = fwd_family().bytes(c, flavour, 1).total() +
                                  fwd_family().bytes(in_another_layout(c), flavour, 1).tensors;
        const std::int64_t taken = growth_of(c, FittingHostKernel());
        EXPECT_LT(taken, said + noise);
        EXPECT_GT(taken, said / 2);
    }
}

/// A case with one row of many keys.
Case one_row() {
    Case c = small_case();
    c.batch = c.nhead_q = c.nhead_k = 1;
    c.seqlen_q = {1};
    c.seqlen_k = {200'000};
    c.hdim_q = c.hdim_v = 128;
    return c;
}

// Files of a reference have 8 bytes an element, and of a kernel's outputs there are fewer copies than in a run.
TEST(Memory, OfFilesIsWhatTheirCommandsTake) {
    constexpr std::int64_t noise = 16 << 20;
    const Fp8Flavour flavour = fp8_flavour("gfx950");
    const Family& family = fwd_family();
    Case many = many_rows();
    many.nhead_q = many.nhead_k = 8;
    many.seqlen_q = {8192};
    for (const Case& c : {many, many_random_bytes(), one_row()}) {
        const CaseBytes bytes = family.bytes(c, flavour, 1);
        const auto near = [&](FileUse use, const std::function<void(CaseData&)>& work) {
            const std::int64_t said = bytes_of_use(use, bytes);
            const std::int64_t taken = growth_in([&] { work(*family.allocate(c, flavour)); });
            EXPECT_LT(taken, said + noise);
            EXPECT_GT(taken, said / 2);
        };
        near(FileUse::write_reference, [](CaseData& data) {
            const system::TemporaryDirectory folder;
            write_inputs(folder.path(), data.tensors());
            data.write_reference(folder.path(), 1);
        });
        near(FileUse::judge_outputs, [&](CaseData& data) {
            const system::TemporaryDirectory folder;
            write_outputs(folder.path(), data.tensors());
            read_outputs(folder.path(), data.tensors());
            judge_given_outputs(c, data, *data.expectation(1), {});
        });
    }
}

// The reference reads the keys for one split after the other, and keeps the rows of all.
TEST(Memory, OfManySplitsCountsTheKeysOnce) {
    Case c = small_case();
    c.family = ApiFamily::fwd_splitkv;
    c.batch = c.nhead_q = c.nhead_k = 1;
    c.seqlen_q = {1};
    c.seqlen_k = {60000};
    c.hdim_q = c.hdim_v = 128;
    c.split.num_splits = 64;
    const auto target = make_target("host", {});
    const auto kernels =
        house_kernels(target, "c.hdim_q == 128", catalog::families_of(ApiFamily::fwd_splitkv));
    const std::int64_t said = fwd_splitkv_family().bytes(c, fp8_flavour("gfx950"), 1).total();
    const std::int64_t taken = growth_of(c, *kernels);
    EXPECT_LT(taken, 2 * said);
    EXPECT_GT(taken, said / 4);
}

TEST(Memory, EveryTensorCounts) {
    Case c = small_case();
    const Fp8Flavour flavour = fp8_flavour("gfx950");
    c.seqlen_q = c.seqlen_k = {4096};
    c.data_type = DataType::mxfp8;
    const auto bytes = [&](QScale mode) {
        c.qscale = mode;
        return fwd_family().bytes(c, flavour, 1).tensors;
    };
    // Scales of 32 values each, for Q, K and V of 2 entries and 2 heads.
    EXPECT_GE(bytes(QScale::mx) - bytes(QScale::no_scale), 3 * 2 * 2 * 4096 * 64 / 32);
}

TEST(Memory, TheLimitDoesNotDependOnTheThreadsOfTheReference) {
    const Case c = small_case();
    const Fp8Flavour flavour = fp8_flavour("gfx950");
    const auto bytes = [&](int threads) { return fwd_family().bytes(c, flavour, threads).total(); };
    ASSERT_LT(bytes(1), bytes(4));
    CaseRunOptions options;
    options.repeats = 1; // no second layout
    options.reference_threads = 16;
    options.memory_limit = bytes(1);
    EXPECT_EQ(run_case(c, FittingHostKernel(), options).front().outcome, Outcome::passed);
    EXPECT_EQ(CaseTensors(fwd_family(), c, flavour, options).reference_threads(), 1);
    options.memory_limit = bytes(4);
    EXPECT_EQ(CaseTensors(fwd_family(), c, flavour, options).reference_threads(), 4);
    options.memory_limit = bytes(1) - 1;
    EXPECT_EQ(run_case(c, FittingHostKernel(), options).front().not_run_reason, NotRunReason::no_memory);
}

/// One row of many keys is decoded once, however many threads look for work.
TEST(Memory, ThreadsWithoutRowsTakeNone) {
    Case c = small_case();
    c.batch = c.nhead_q = c.nhead_k = 1;
    c.seqlen_q = {1};
    c.seqlen_k = {1'000'000};
    const auto bytes = [&](int threads) { return fwd_family().bytes(c, Fp8Flavour::ocp, threads).total(); };
    EXPECT_EQ(bytes(64), bytes(1));
    c.seqlen_q = {64}; // for two threads
    EXPECT_GT(bytes(64), bytes(1));
    EXPECT_LT(bytes(64), 3 * bytes(1));
}

TEST(Memory, AReferenceHasTheThreadsThatThereIsRoomFor) {
    const Case c = small_case();
    const int all = system::hardware_threads();
    for (const FileUse use : {FileUse::write_reference, FileUse::judge_outputs}) {
        const auto bytes = [&](int threads) {
            return bytes_of_use(use, fwd_family().bytes(c, Fp8Flavour::ocp, threads));
        };
        const auto threads = [&](std::int64_t limit) {
            return reference_threads_within(limit, use, c, Fp8Flavour::ocp);
        };
        EXPECT_EQ(threads(0), all);
        EXPECT_EQ(threads(bytes(all)), all);
        EXPECT_EQ(threads(bytes(1)), 1);
        EXPECT_THROW(threads(bytes(1) - 1), InputError);
    }
}

TEST(Memory, VeryManyEntriesAreNotLaidOutBeforeLimitsHold) {
    Case c = small_case();
    c.wide_tensor = "q";
    c.wide_batch_stride = 1;
    EXPECT_THROW(require_runnable(c, "gfx950"), InputError);
    c.batch = (std::int64_t{1} << 20) + 1;
    EXPECT_NO_THROW(require_runnable(c, "gfx950"));
    // Laid out, these entries would take a gigabyte.
    c = small_case();
    c.batch = 15'000'000;
    CaseRunOptions options;
    options.memory_limit = std::int64_t{1} << 20;
    const CaseResult result = run_case(c, FittingHostKernel(), options).front();
    EXPECT_EQ(result.not_run_reason, NotRunReason::no_memory);
    EXPECT_THAT(result.message, HasSubstr("its 15000000 entries alone need "));
}

TEST(Memory, TheLimitCountsTheReferenceAndTheCopies) {
    for (const Case& c : {many_rows(), many_random_bytes()}) {
        const CaseBytes memory = fwd_family().bytes(c, fp8_flavour("gfx950"), 1);
        CaseRunOptions options;
        options.memory_limit = memory.tensors + memory.copies + memory.reference / 2;
        const auto results = run_case(c, FittingHostKernel(), options);
        ASSERT_EQ(results.size(), 1U);
        EXPECT_EQ(results[0].not_run_reason, NotRunReason::no_memory);
        EXPECT_THAT(results[0].message, HasSubstr("of copies of its outputs"));
    }
}

} // namespace
} // namespace fmha::harness::test
