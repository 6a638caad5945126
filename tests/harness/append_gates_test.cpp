// G5.4 and the memory gates of append-KV: the reference's values are accepted, and all others are seen.
#include "harness/families/family.hpp"
#include "harness/npy/exchange.hpp"
#include "reference/append.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace fmha::harness {
namespace {

using reference::AppendTarget;
using testing::HasSubstr;

Case rotated_case() {
    Case c;
    c.id = "t/append@1";
    c.family = ApiFamily::fwd_appendkv;
    c.data_type = DataType::bf16;
    c.nhead_q = 4;
    c.hdim_q = c.hdim_v = 32;
    c.seqlen_q = {3};
    c.seqlen_k = {126, 5};
    c.mask = MaskType::bottom_right;
    c.cache.page_size = 128;
    c.append = {.seqlen_knew = 4, .rope = Rope::interleaved, .rotary_dim = 16, .any_bits = true};
    return c;
}

/// A case whose tensors hold the reference's values.
class Appended {
  public:
    explicit Appended(const Case& c)
        : case_(c), data_(family_of(case_.family).allocate(case_, Fp8Flavour::ocp)),
          expectation_(data_->expectation(0)) {
        const auto args = std::get<AppendKvArgs>(data_->invocation());
        rows_ = reference::append(args);
        for (const auto& row : rows_.rows)
            for (std::int64_t channel = 0; channel < row.cols; ++channel)
                tensor(row.target).set_code(row.slot, row.h, row.row, channel, rows_.code_of(row, channel));
    }

    GuardedTensor& tensor(AppendTarget target) {
        return data_->tensors().tensor(target == AppendTarget::k   ? "k"
                                       : target == AppendTarget::v ? "v"
                                                                   : "q");
    }
    /// Adds to a code of the n-th row of a tensor.
    void change(AppendTarget target, std::size_t n, std::int64_t channel, int by) {
        for (const auto& row : rows_.rows) {
            if (row.target != target || n-- != 0) continue;
            GuardedTensor& into = tensor(target);
            const std::uint32_t code = into.code(row.slot, row.h, row.row, channel);
            into.set_code(row.slot, row.h, row.row, channel, code + static_cast<std::uint32_t>(by));
            return;
        }
        FAIL() << "there is no such row";
    }
    /// The sentence of the first gate that failed; "" when all passed.
    std::string verdict() {
        const auto judged = expectation_->judge(
            KernelFamily::fwd_appendkv, data_->outputs(KernelFamily::fwd_appendkv), {}, InputOrigin::fill);
        EXPECT_GT(judged.rows, 0);
        EXPECT_GT(judged.judgement.elements, 0);
        for (const GateVerdict& gate : judged.judgement.gates)
            if (!gate.passed) return gate.gate + ":" + gate.tensor + " " + gate.detail;
        return {};
    }
    CaseData& data() { return *data_; }
    CaseExpectation& expectation() { return *expectation_; }

  private:
    Case case_;
    std::unique_ptr<CaseData> data_;
    std::unique_ptr<CaseExpectation> expectation_;
    reference::AppendedRows rows_;
};

TEST(AppendGates, AcceptWhatTheReferenceWrites) {
    for (const bool paged : {true, false}) {
        Case c = rotated_case();
        if (!paged) c.cache = {.page_size = 0, .cache_batch_idx = true, .capacity = 140};
        Appended appended(c);
        EXPECT_EQ(appended.expectation().oracle_disagreement(), 0.0);
        EXPECT_EQ(appended.verdict(), "");
        EXPECT_EQ(appended.data().tensors().stray_write(), std::nullopt);
    }
}

TEST(AppendGates, SeeOneBitOfACopyAndTwoValuesOfARotation) {
    Appended values(rotated_case()), tail(rotated_case()), rotated(rotated_case()), queries(rotated_case());
    values.change(AppendTarget::v, 5, 31, 1);
    EXPECT_THAT(values.verdict(), HasSubstr("G5.4:v b0 h1 key 1 column 31"));
    tail.change(AppendTarget::k, 9, 16, 1);
    EXPECT_THAT(tail.verdict(), HasSubstr("G5.4:k b1 h0 key 1 column 16"));
    rotated.change(AppendTarget::k, 0, 3, 1);
    EXPECT_EQ(rotated.verdict(), "") << "a neighbour of the rounded number";
    rotated.change(AppendTarget::k, 0, 3, 1);
    EXPECT_THAT(rotated.verdict(), HasSubstr("G5.4:k b0 h0 key 0 column 3"));
    queries.change(AppendTarget::q, 2, 15, 2);
    EXPECT_THAT(queries.verdict(), HasSubstr("G5.4:q b0 h0 row 2 column 15"));
}

TEST(AppendGates, SeeWhatWasWrittenBesideTheNewKeys) {
    for (const char* name : {"k", "v", "q"}) {
        Appended appended(rotated_case());
        GuardedTensor& tensor = appended.data().tensors().tensor(name);
        // A key that was there, and a channel of Q that is not rotated.
        const std::int64_t row = name[0] == 'q' ? 1 : 40, channel = name[0] == 'q' ? 16 : 2;
        tensor.set_code(0, 0, row, channel, tensor.code(0, 0, row, channel) ^ 1U);
        EXPECT_THAT(appended.data().tensors().stray_write().value_or("nothing"), HasSubstr(name));
    }
}

// Q comes as q.npy and goes as q_out.npy: the reference keeps the former one.
TEST(AppendGates, JudgeFilesOfTensorsThatAreUpdated) {
    const auto folder = std::filesystem::path(testing::TempDir()) / "append_files";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const Case c = rotated_case();
    Appended done(c);
    {
        const auto fresh = family_of(c.family).allocate(c, Fp8Flavour::ocp);
        write_inputs(folder, fresh->tensors());
        EXPECT_TRUE(std::filesystem::exists(folder / "q.npy"));
        EXPECT_FALSE(std::filesystem::exists(folder / "k.npy")) << "the cache begins without content";
    }
    write_outputs(folder, done.data().tensors());
    const auto given = family_of(c.family).allocate(c, Fp8Flavour::ocp);
    read_inputs(folder, given->tensors());
    const auto expectation = given->expectation(0);
    read_outputs(folder, given->tensors());
    const auto judged = [&] {
        return expectation
            ->judge(KernelFamily::fwd_appendkv, given->outputs(KernelFamily::fwd_appendkv), {},
                    InputOrigin::caller)
            .judgement.passed();
    };
    EXPECT_TRUE(judged());
    GuardedTensor& q = given->tensors().tensor("q");
    q.set_code(1, 2, 0, 4, q.code(1, 2, 0, 4) + 2);
    EXPECT_FALSE(judged());
    q.set_code(1, 2, 0, 4, q.code(1, 2, 0, 4) - 2);
    EXPECT_TRUE(judged());
    q.set_code(1, 2, 0, 16, q.code(1, 2, 0, 16) ^ 1U); // the first channel that is not rotated
    EXPECT_FALSE(judged());
}

} // namespace
} // namespace fmha::harness
