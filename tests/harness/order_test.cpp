// G5.11: entries and heads in reverse order have the same bits. Kernels here write what depends on the number of an entry or head, or on the
// block before, and stay close to the reference.

#include "harness/cases/case_enums.hpp"
#include "harness/cases/value_order.hpp"
#include "harness/data/fwd_tensors.hpp"
#include "harness/families/all_families.hpp"
#include "harness/run/execution.hpp"
#include "kernels/programs/programs.hpp"
#include "kernels/targets/host/executor.hpp"
#include "tests/harness/faulty_forward.hpp"
#include "tests/harness/gate_support.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace fmha::harness::test {
namespace {

using host_target::FloatTile;
using host_target::HostContext;
using host_target::Rows;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

bool has_verdict(const CaseResult& result, const std::string& gate) {
    return std::ranges::any_of(result.gates, [&](const GateVerdict& v) { return v.gate == gate; });
}

/// The gates that failed, each once.
std::vector<std::string> red(const CaseResult& result) {
    std::vector<std::string> gates;
    for (const GateVerdict& v : result.gates)
        if (v.failed() && std::ranges::find(gates, v.gate) == gates.end()) gates.push_back(v.gate);
    return gates;
}

/// Blocks of a thread begin with the maxima of the block before, as a persistent kernel's would that sets them once. O and LSE are exact numbers
/// all the same, whatever the maximum is, and weights are rounded by steps of another size.
class CarriedMaximum : public HostContext {
  public:
    using HostContext::HostContext;
    void begin(std::int64_t rows) {
        is_first_ = true;
        HostContext::begin(rows);
    }
    template <class... Options>
    void raise_to_row_max(const Rows& top, const Rows& shrink, const FloatTile& scores,
                          Options&&... options) {
        const auto count = std::min(carried_.size(), static_cast<std::size_t>(top.count));
        for (std::size_t r = 0; is_first_ && r < count; ++r) top.data[r] = std::max(top.data[r], carried_[r]);
        is_first_ = false;
        HostContext::raise_to_row_max(top, shrink, scores, std::forward<Options>(options)...);
        carried_.assign(top.data, top.data + top.count);
    }

  private:
    bool is_first_ = true;
    std::vector<float> carried_;
};

class CarryingKernel final : public FittingHostKernel {
  public:
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override {
        StageKernel candidate = FittingHostKernel::planned(problem, main);
        candidate.instance = std::make_shared<Instance>(candidate.instance);
        return candidate;
    }

  private:
    class Instance final : public KernelInstance {
      public:
        explicit Instance(std::shared_ptr<const KernelInstance> correct) : correct_(std::move(correct)) {}
        const KernelConfig& config() const override { return correct_->config(); }
        std::string name() const override { return correct_->name(); }
        void launch(const Invocation& invocation, Stream) const override {
            host_target::run_blocks(kernels::Program<KernelFamily::fwd>{}, config(),
                                    std::get<FwdArgs>(invocation), {.threads = 1},
                                    [&](auto* trace) { return CarriedMaximum(config(), trace); });
        }

      private:
        std::shared_ptr<const KernelInstance> correct_;
    };
};

TEST(Order, AMaximumOfTheBlockBeforeIsSeenByNoOtherGate) {
    for (const Fill fill : {Fill::normal, Fill::uniform, Fill::indexed, Fill::rising, Fill::shifted}) {
        Case c = small_case();
        c.data_type = DataType::bf16;
        c.fill = fill;
        const CaseResult result = run_case(c, CarryingKernel(), {}).front();
        EXPECT_THAT(red(result), ElementsAre("G5.11")) << to_string(fill);
        EXPECT_THAT(result.message, StartsWith("G5.11 : the same values with entries and heads in reverse "
                                               "order give another result: o at b"));
    }
}

/// Changes the last bit of an element of a row of O.
void flip(const FwdArgs& a, std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t start = a.shape.mode == Mode::group ? a.lengths.seqstart_q[b] : 0;
    const std::int64_t at = a.o.offset(b, h, start + i, 5);
    store_code(a.o.data, a.o.type, at, load_code(a.o.data, a.o.type, at) ^ 1U);
}

TEST(Order, AHeadThatRoundsOtherwiseIsNamedAsTheCaseNumbersIt) {
    Case c = small_case();
    c.batch = 3;
    const CaseResult result = run_spoiled(c, [](const FwdArgs& a) { flip(a, 2, 1, 13); });
    EXPECT_THAT(red(result), ElementsAre("G5.11"));
    // It is the last head of the last entry, hence the first of all in the other run.
    EXPECT_THAT(verdict(result, "G5.11").detail,
                HasSubstr("give another result: o at b0 h0 row 13 column 5: "));
    EXPECT_TRUE(verdict(result, "G5.8").passed);
    // The first of all that differs is in the plain run here.
    EXPECT_THAT(verdict(run_spoiled(c, [](const FwdArgs& a) { flip(a, 0, 1, 13); }), "G5.11").detail,
                HasSubstr("result: o at b0 h1 row 13 column 5: "));
}

TEST(Order, EntriesOfOtherLengthsKeepTheirRows) {
    for (const Mode mode : {Mode::batch, Mode::group}) {
        Case c = small_case();
        c.mode = mode;
        c.batch = 3;
        c.seqlen_q = {70, 3, 40};
        c.seqlen_k = {90, 150, 20};
        if (mode == Mode::batch) c.length_form_q = c.length_form_k = LengthForm::seqlen;
        EXPECT_THAT(red(run_right(c)), ElementsAre());
        const CaseResult result = run_spoiled(c, [](const FwdArgs& a) { flip(a, 1, 0, 2); });
        EXPECT_THAT(verdict(result, "G5.11").detail, HasSubstr("o at b1 h0 row 2 column 5: "));
    }
}

// The oracles are not asked: what a kernel and a reference have wrong in common is red here, too.
TEST(Order, HeadsOfANeighbourAreSeenWithoutAReference) {
    Case c = small_case();
    c.nhead_q = 6;
    c.nhead_k = 3;
    EXPECT_TRUE(verdict(run_right(c), "G5.11").passed);
    EXPECT_FALSE(
        verdict(run_case(c, FaultyForward(host_target::Fault::head_map_plus_one), {}).front(), "G5.11")
            .passed);
    c.bias = BiasType::alibi;
    EXPECT_FALSE(
        verdict(run_case(c, FaultyForward(host_target::Fault::alibi_neighbour_slope), {}).front(), "G5.11")
            .passed);
}

TEST(Order, IsTriedWithTheLayoutWhereThereIsNoRoomForMore) {
    CaseRunOptions little;
    const Fp8Flavour flavour = fp8_flavour(little.arch);
    little.memory_limit = fwd_family().bytes(small_case(), flavour, 1).total() +
                          fwd_family().bytes(in_another_layout(small_case()), flavour, 1).tensors;
    const SpoiledKernel spoiled([](const FwdArgs& a) { flip(a, 1, 1, 13); });
    EXPECT_THAT(
        run_case(small_case(), spoiled, little).front().message,
        HasSubstr("with entries and heads in reverse order and in another layout give another result"));
}

TEST(Order, IsLeftOutWhereNumbersOfHeadsDecideBits) {
    Case dropout = small_case();
    dropout.p_drop = 0.25;
    const CaseResult result = run_right(dropout);
    EXPECT_TRUE(verdict(result, "G5.8").passed);
    EXPECT_FALSE(has_verdict(result, "G5.11"));
    Case one = small_case();
    one.batch = one.nhead_q = one.nhead_k = 1;
    EXPECT_FALSE(has_verdict(run_right(one), "G5.11")) << "there is one order";
}

TEST(Order, EntriesThatMeetStay) {
    Case sinks = small_case();
    sinks.family = ApiFamily::bwd;
    sinks.seqlen_q = {70, 60};
    sinks.sink_logits = SinkLogits::normal;
    const Case reversed = in_reverse_order(sinks);
    EXPECT_TRUE(reversed.heads_reversed && !reversed.entries_reversed) << "d_sink adds up over entries";
    EXPECT_EQ(reversed.seqlen_q, sinks.seqlen_q);
    Case gaps = small_case();
    gaps.cache.gappy = true;
    EXPECT_FALSE(in_reverse_order(gaps).entries_reversed);
    Case shared = small_case();
    shared.cache.shared_pages = 1;
    EXPECT_FALSE(in_reverse_order(shared).entries_reversed);
    Case persistent = small_case();
    persistent.backward.deterministic = true;
    persistent.backward.compute_units = 3;
    EXPECT_FALSE(is_reversed(in_reverse_order(persistent)));
}

std::vector<std::int64_t> plain_heads(const Case& c, std::int64_t heads) {
    std::vector<std::int64_t> plain;
    for (std::int64_t h = 0; h < heads; ++h) plain.push_back(plain_head(c, h, heads));
    return plain;
}

TEST(Order, GroupsAndSplitsStayTogether) {
    Case c = small_case();
    c.nhead_q = 4;
    EXPECT_THAT(plain_heads(c, 4), ElementsAre(0, 1, 2, 3));
    c = in_reverse_order(c);
    EXPECT_THAT(plain_heads(c, 4), ElementsAre(3, 2, 1, 0));
    EXPECT_THAT(plain_heads(c, 2), ElementsAre(1, 0));
    EXPECT_THAT(plain_heads(c, 8), ElementsAre(6, 7, 4, 5, 2, 3, 0, 1)) << "two splits of each";
    c.backward.reduce_dk_dv = true;
    EXPECT_THAT(plain_heads(c, 4), ElementsAre(2, 3, 0, 1)) << "their sums keep their order";
    c.nhead_k = 1;
    EXPECT_FALSE(in_reverse_order(c).heads_reversed) << "one group has one order";
}

} // namespace
} // namespace fmha::harness::test
