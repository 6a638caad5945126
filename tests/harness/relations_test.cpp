// The same sequences, handed over in other forms, give the same bits (B.6.8): side by side in a batch, one behind the other in a
// group, with or without room between them, with lengths of either kind, and one at a time. Nothing is compared with a
// reference, so a common mistake of kernel and reference shows here.

#include "harness/cases/case_problem.hpp"
#include "harness/data/fwd_tensors.hpp"
#include "harness/gates/attention_outputs.hpp"
#include "kernels/targets/host/faults/fault.hpp"
#include "tests/harness/kernels_for_tests.hpp"
#include "tests/harness/random_case.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <optional>

namespace fmha::harness::test {
namespace {

using testing::HasSubstr;

constexpr const char* arch = "gfx950";

/// Case `seed` of the random ones, every third with entries of one length, the others with a length of its own for each.
Case sequences(std::uint64_t seed) {
    Case c = random_case(seed);
    const bool equal = seed % 3 == 0;
    if (equal) {
        c.seqlen_q.resize(1);
        c.seqlen_k.resize(1);
    }
    const auto for_each_entry = [&](std::vector<std::int64_t>& lengths, std::int64_t step) {
        while (lengths.size() < static_cast<std::size_t>(c.batch))
            lengths.push_back(lengths.back() + (equal ? 0 : step));
    };
    for_each_entry(c.seqlen_q, 3);
    for_each_entry(c.seqlen_k, 6);
    c.physical_q.clear();
    c.physical_k.clear();
    // The features that one of the two modes lacks: rows that are left out, and a bias that the entries share.
    c.min_seqlen_q = 0;
    c.bias_rank = c.bias == BiasType::elementwise ? 2 : c.bias_rank;
    return c;
}

struct Form {
    const char* name;
    Mode mode;
    LengthForm lengths;
    std::int64_t room_q, room_k; ///< rows between entries, beyond their lengths
};

/// The others are compared with the first.
constexpr Form forms[] = {
    {"group, packed", Mode::group, LengthForm::none, 0, 0},
    {"group, with room and lengths", Mode::group, LengthForm::seqlen, 7, 4},
    {"group, with room and cumulative lengths", Mode::group, LengthForm::cu_seqlen, 12, 34},
    {"batch, padded, with lengths", Mode::batch, LengthForm::seqlen, 0, 0},
    {"batch, padded, with cumulative lengths", Mode::batch, LengthForm::cu_seqlen, 5, 66},
};

Case in_form(const Case& c, const Form& form) {
    Case other = c;
    other.mode = form.mode;
    other.length_form_q = other.length_form_k = form.lengths;
    if (form.lengths == LengthForm::none) return other;
    for (const std::int64_t length : c.seqlen_q) other.physical_q.push_back(length + form.room_q);
    for (const std::int64_t length : c.seqlen_k) other.physical_k.push_back(length + form.room_k);
    return other;
}

/// A batch in which nothing says lengths, when all entries have the same.
std::optional<Case> in_plain_batch(const Case& c) {
    const auto equal = [](const std::vector<std::int64_t>& lengths) {
        return std::ranges::all_of(lengths, [&](std::int64_t n) { return n == lengths.front(); });
    };
    if (!equal(c.seqlen_q) || !equal(c.seqlen_k) || c.seqlen_q.front() == 0 || c.seqlen_k.front() == 0)
        return std::nullopt;
    return in_form(c, {"batch", Mode::batch, LengthForm::none, 0, 0});
}

Outputs computed(const Case& c, const KernelSource& source) {
    FwdTensors tensors(c, fp8_flavour(arch));
    source.planned(to_problem(c, arch), nullptr).instance->launch(tensors.args(), {});
    return attention_outputs(reference::attention_of(tensors.args()));
}

/// The part of the arguments that concerns entry `b` alone.
FwdArgs only_entry(FwdArgs args, std::int64_t b) {
    QuantArgs& quant = args.quant;
    for (TensorView* view : {&args.q, &args.k, &args.v, &args.o, &args.lse, &args.bias, &args.randval,
                             &quant.q_descale, &quant.k_descale, &quant.v_descale})
        if (view->present())
            view->data =
                static_cast<unsigned char*>(view->data) + element_bytes(view->type, b * view->batch_stride);
    for (const std::int32_t* LengthArrays::*array :
         {&LengthArrays::seqstart_q, &LengthArrays::seqstart_k, &LengthArrays::seqlen_q,
          &LengthArrays::seqlen_k, &LengthArrays::cu_seqlen_q, &LengthArrays::cu_seqlen_k})
        if (args.lengths.*array != nullptr) args.lengths.*array += b;
    for (const std::int32_t** array : {&quant.block_scale_seqstart_q, &quant.block_scale_seqstart_k})
        if (*array != nullptr) *array += b;
    if (args.score.alibi_slopes != nullptr) args.score.alibi_slopes += b * args.score.alibi_stride;
    args.shape.batch = 1;
    return args;
}

Outputs one_at_a_time(const Case& c, const KernelSource& source) {
    FwdTensors tensors(c, fp8_flavour(arch));
    const StageKernel kernel = source.planned(to_problem(c, arch), nullptr);
    for (std::int64_t b = 0; b < c.batch; ++b) kernel.instance->launch(only_entry(tensors.args(), b), {});
    return attention_outputs(reference::attention_of(tensors.args()));
}

/// The relations that do not hold, with the first difference of each.
std::string broken(const Case& c, const KernelSource& source) {
    std::string text;
    const Outputs packed = computed(in_form(c, forms[0]), source);
    const auto compare = [&](const std::string& relation, const Outputs& other) {
        const std::string difference = packed.first_difference(other);
        if (!difference.empty()) text += fmt::format("{}: {}\n", relation, difference);
    };
    for (const Form& form : forms) {
        compare(form.name, computed(in_form(c, form), source));
        // Random bytes follow from the number of an entry (D-5), which is 0 when it is alone.
        if (c.p_drop == 0.0)
            compare(fmt::format("{}, one at a time", form.name), one_at_a_time(in_form(c, form), source));
    }
    if (const auto batch = in_plain_batch(c)) compare("batch", computed(*batch, source));
    return text;
}

TEST(Relations, HoldForEveryFormOfTheSameSequences) {
    int plain_batches = 0;
    for (std::uint64_t seed = 1; seed <= 45; ++seed) {
        const Case c = sequences(seed);
        EXPECT_EQ(broken(c, FittingHostKernel()), "") << c.id;
        plain_batches += in_plain_batch(c) ? 1 : 0;
    }
    EXPECT_GE(plain_batches, 10);
}

Case plain() {
    Case c;
    c.id = "test/plain@1";
    c.batch = 3;
    c.hdim_q = c.hdim_v = 64;
    c.seqlen_q = {70, 1, 65};
    c.seqlen_k = {90, 150, 33};
    return c;
}

TEST(Relations, OneThatIsBrokenIsNamed) {
    EXPECT_EQ(broken(plain(), FittingHostKernel()), "");
    const MisledKernel without_lengths([](FwdArgs& args) { args.lengths.seqlen_k = nullptr; });
    const std::string padded = broken(plain(), without_lengths);
    EXPECT_THAT(padded, HasSubstr("group, with room and lengths: o at b0"));
    EXPECT_THAT(padded, HasSubstr("batch, padded, with lengths: o at b0"));
    EXPECT_THAT(padded, testing::Not(HasSubstr("cumulative")));
    const MisledKernel batch_stride([](FwdArgs& args) {
        if (args.shape.mode == Mode::batch) args.v.batch_stride += 8;
    });
    Case equal = plain();
    equal.seqlen_q = equal.seqlen_k = {40, 40, 40};
    EXPECT_THAT(broken(equal, batch_stride), HasSubstr("\nbatch: o at b1"));
    const std::string batch = broken(plain(), batch_stride);
    EXPECT_THAT(batch, HasSubstr("batch, padded, with lengths: o at b1"));
    EXPECT_THAT(batch, testing::Not(HasSubstr("one at a time")));
    EXPECT_THAT(batch, testing::Not(HasSubstr("group")));
}

/// The host kernel with a known mistake.
class FaultyKernel final : public FittingHostKernel {
  public:
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override {
        StageKernel candidate = FittingHostKernel::planned(problem, main);
        candidate.instance = std::make_shared<Faulty>(candidate.instance);
        return candidate;
    }

  private:
    class Faulty final : public KernelInstance {
      public:
        explicit Faulty(std::shared_ptr<const KernelInstance> correct) : correct_(std::move(correct)) {}
        const KernelConfig& config() const override { return correct_->config(); }
        std::string name() const override { return correct_->name(); }
        void launch(const Invocation& invocation, Stream) const override {
            host_target::run_fwd_with_fault(config(), std::get<FwdArgs>(invocation),
                                            host_target::Fault::group_offset_off_by_one, {.threads = 1});
        }

      private:
        std::shared_ptr<const KernelInstance> correct_;
    };
};

TEST(Relations, AnOffsetOfTheGroupThatIsWrongBreaksThem) {
    const std::string text = broken(plain(), FaultyKernel());
    EXPECT_THAT(text, HasSubstr("batch, padded, with lengths: o at b"));
}

} // namespace
} // namespace fmha::harness::test
