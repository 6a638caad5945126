// The gates of backward: the reference's values are accepted when they are rounded, and every kind of wrong gradient is seen by the
// gate that is about it. The workspace of a case is that of the kernels that will run.
#include "harness/cases/case_enums.hpp"
#include "harness/families/family.hpp"
#include "harness/npy/exchange.hpp"
#include "harness/run/case_runner.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"
#include "reference/backward.hpp"
#include "reference/forward.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/catalog/working_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iterator>
#include <span>

namespace fmha::harness {
namespace {

using testing::HasSubstr;
using enum KernelFamily;

Case masked_case() {
    Case c;
    c.id = "t/backward@1";
    c.family = ApiFamily::bwd;
    c.data_type = DataType::bf16;
    c.nhead_q = 4;
    c.hdim_q = c.hdim_v = 32;
    c.seqlen_q = {40};
    c.seqlen_k = {70};
    c.mask = MaskType::top_left; // keys from 40 on are seen by nobody
    c.window_right = 0;
    c.bias = BiasType::elementwise;
    c.backward.dbias = true;
    c.backward.deterministic = true;
    return c;
}

Case masked_case_with_sinks() {
    Case c = masked_case();
    c.sink_logits = SinkLogits::normal;
    return c;
}

/// A case whose outputs hold the reference's values, rounded to their types.
class Differentiated {
  public:
    explicit Differentiated(const Case& c)
        : case_(c), data_(family_of(case_.family).allocate(case_, Fp8Flavour::ocp)),
          expectation_(data_->expectation(0)) {
        const BwdArgs args = std::get<BwdArgs>(data_->invocation());
        const auto gradients =
            reference::backward(args, {reference::all_rows(args), reference::all_keys(args),
                                       args.dbias.present(), args.d_sink != nullptr});
        const auto put = [](const TensorView& view, std::int64_t at, double value) {
            store_code(view.data, view.type, at, reference::encode(view.type, value));
        };
        for (std::size_t n = 0; n < gradients.request.rows.size(); ++n) {
            const auto [b, h, i] = gradients.request.rows[n];
            const auto line = static_cast<std::int64_t>(n);
            put(args.d, args.d.offset(b, h, i, 0), gradients.d.value[n]);
            for (std::int64_t c2 = 0; c2 < case_.hdim_q; ++c2)
                put(args.dq, args.dq.offset(b, h, i, c2), gradients.dq.value[gradients.dq.at(line, c2)]);
            for (std::int64_t j = 0; args.dbias.present() && j < case_.seqlen_k.front(); ++j)
                put(args.dbias, args.dbias.offset(b, h, i, j),
                    gradients.dbias.value[gradients.dbias.at(line, j)]);
        }
        for (std::size_t n = 0; n < gradients.request.keys.size(); ++n) {
            const auto [b, h, j] = gradients.request.keys[n];
            const auto line = static_cast<std::int64_t>(n);
            for (std::int64_t c2 = 0; c2 < case_.hdim_q; ++c2)
                put(args.dk, args.dk.offset(b, h, j, c2), gradients.dk.value[gradients.dk.at(line, c2)]);
            for (std::int64_t c2 = 0; c2 < case_.hdim_v; ++c2)
                put(args.dv, args.dv.offset(b, h, j, c2), gradients.dv.value[gradients.dv.at(line, c2)]);
        }
        for (std::int64_t h = 0; args.d_sink != nullptr && h < case_.nhead_q; ++h)
            args.d_sink[h] = static_cast<float>(gradients.d_sink.value[static_cast<std::size_t>(h)]);
    }

    GuardedTensor& tensor(std::string_view name) { return data_->tensors().tensor(name); }
    void scale(std::string_view name, double factor) {
        GuardedTensor& tensor = this->tensor(name);
        const TensorLayout& layout = tensor.layout();
        for (std::int64_t b = 0; b < layout.batches; ++b)
            for (std::int64_t h = 0; h < layout.heads; ++h)
                for (std::int64_t row = 0; row < layout.rows; ++row)
                    for (std::int64_t c = 0; c < layout.columns; ++c)
                        tensor.set_code(
                            b, h, row, c,
                            reference::encode(layout.type,
                                              factor *
                                                  reference::decode(layout.type, tensor.code(b, h, row, c))));
    }
    void set(std::string_view name, std::int64_t h, std::int64_t row, std::int64_t c, double value) {
        set(name, 0, h, row, c, value);
    }
    void set(std::string_view name, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t c,
             double value) {
        GuardedTensor& tensor = this->tensor(name);
        tensor.set_code(b, h, row, c, reference::encode(tensor.layout().type, value));
    }
    Judgement judgement(KernelFamily stage) { return judged(stage).judgement; }
    /// "gate:tensor", for all gates of `stage`, and for those that failed.
    std::vector<std::string> gates(KernelFamily stage) { return gates_that(stage, false); }
    std::vector<std::string> failures(KernelFamily stage) { return gates_that(stage, true); }
    CaseData& data() { return *data_; }
    CaseExpectation& expectation() { return *expectation_; }

  private:
    StageVerdict judged(KernelFamily stage) {
        Numerics numerics = reference::kernel_numerics(element_types(case_.data_type, Fp8Flavour::ocp));
        return expectation_->judge(stage, data_->outputs(stage), numerics, InputOrigin::fill);
    }
    std::vector<std::string> gates_that(KernelFamily stage, bool failed) {
        const StageVerdict verdict = judged(stage);
        EXPECT_GT(verdict.rows, 0);
        EXPECT_GT(verdict.judgement.elements, 0);
        EXPECT_EQ(verdict.mistrust, "");
        std::vector<std::string> names;
        for (const GateVerdict& gate : verdict.judgement.gates)
            if (!failed || !gate.passed) names.push_back(gate.gate + ":" + gate.tensor);
        return names;
    }

    Case case_;
    std::unique_ptr<CaseData> data_;
    std::unique_ptr<CaseExpectation> expectation_;
};

constexpr std::array stages{bwd_dot_do_o, bwd_dq_dk_dv, bwd_convert_dq};

TEST(BackwardGates, AcceptWhatTheReferenceSays) {
    for (const SinkLogits sinks : {SinkLogits::none, SinkLogits::normal})
        for (const DataType type : {DataType::bf16, DataType::fp16, DataType::fp32}) {
            Case c = masked_case();
            c.data_type = type;
            c.sink_logits = sinks;
            Differentiated done(c);
            EXPECT_LE(done.expectation().oracle_disagreement(), 1.0);
            for (const KernelFamily stage : stages) EXPECT_THAT(done.failures(stage), testing::IsEmpty());
            EXPECT_EQ(done.data().tensors().stray_write(), std::nullopt);
        }
}

TEST(BackwardGates, SeeOneWrongElementOfEachGradient) {
    const auto after = [](KernelFamily stage, const auto& change) {
        Differentiated done(masked_case_with_sinks());
        change(done);
        return done.failures(stage);
    };
    using testing::Contains;
    EXPECT_THAT(after(bwd_dot_do_o, [](auto& x) { x.set("d", 1, 7, 0, 100.0); }), Contains("G3:d"));
    EXPECT_THAT(after(bwd_dot_do_o, [](auto& x) { x.set("d_sink", 0, 0, 2, 100.0); }), Contains("G3:d_sink"));
    EXPECT_THAT(after(bwd_dq_dk_dv, [](auto& x) { x.set("dk", 1, 7, 3, 9.0); }), Contains("G1:dk"));
    EXPECT_THAT(after(bwd_dq_dk_dv, [](auto& x) { x.set("dv", 3, 0, 31, 9.0); }), Contains("G1:dv"));
    EXPECT_THAT(after(bwd_dq_dk_dv, [](auto& x) { x.set("dbias", 2, 39, 12, 3.0); }), Contains("G1:dbias"));
    EXPECT_THAT(after(bwd_convert_dq, [](auto& x) { x.set("dq", 2, 39, 12, 9.0); }), Contains("G1:dq"));
    EXPECT_THAT(after(bwd_convert_dq, [](auto& x) { x.set("dq", 0, 1, 0, std::nan("")); }),
                Contains("G5.9:dq"));
}

// The case's mask hides the keys from 40 on from every row; row 0 sees key 0 alone.
TEST(BackwardGates, NameThePlaceOfWrongGradients) {
    const auto pattern = [](KernelFamily stage, const auto& change) {
        Differentiated done(masked_case_with_sinks());
        change(done);
        return done.judgement(stage).pattern;
    };
    const auto keys = [](std::int64_t first, std::int64_t end) {
        return [=](Differentiated& done) {
            for (std::int64_t h = 0; h < 4; ++h)
                for (std::int64_t j = first; j < end; ++j)
                    for (std::int64_t b = 0; b < 2; ++b) done.set("dv", b, h, j, j % 32, 9.0);
        };
    };
    EXPECT_THAT(pattern(bwd_dq_dk_dv, keys(40, 70)), HasSubstr("only keys that no row sees"));
    EXPECT_THAT(pattern(bwd_dq_dk_dv, keys(0, 70)), HasSubstr("everywhere"));
    EXPECT_THAT(pattern(bwd_dq_dk_dv, keys(30, 50)),
                testing::EndsWith("only keys 30 to 49 of 70 (mask edge)"));
    EXPECT_THAT(pattern(bwd_dq_dk_dv, keys(0, 19)),
                HasSubstr("only keys that more rows see than the median"));
    EXPECT_THAT(pattern(bwd_convert_dq,
                        [](auto& done) {
                            for (std::int64_t i = 0; i < 40; ++i)
                                for (std::int64_t b = 0; b < 2; ++b) done.set("dq", b, 1, i, i % 32, 9.0);
                        }),
                testing::EndsWith("only head 1 of 4 (head map or a per-head array)"));
    EXPECT_EQ(pattern(bwd_dot_do_o, [](auto& done) { done.set("d_sink", 0, 0, 2, 100.0); }),
              "1 of 4 checked heads: only head 2 of 4 (head map or a per-head array)");
}

TEST(BackwardGates, SeeGradientsThatAreALittleTooLarge) {
    const auto after = [](std::string_view name, KernelFamily stage) {
        Differentiated done(masked_case());
        done.scale(name, 1.05);
        return done.failures(stage);
    };
    EXPECT_THAT(after("dk", bwd_dq_dk_dv), testing::Contains("G2:dk"));
    EXPECT_THAT(after("dv", bwd_dq_dk_dv), testing::Contains("G2:dv"));
    EXPECT_THAT(after("dq", bwd_convert_dq), testing::Contains("G2:dq"));
}

/// Gates on the tensors of all stages, "G2:dq", and those of them that fail.
struct Asked {
    std::vector<std::string> all, failed;
};
Asked asked_of(Fill fill, const std::function<void(Differentiated&)>& change) {
    Case c = masked_case();
    c.fill = fill;
    Differentiated done(c);
    change(done);
    Asked asked;
    for (const KernelFamily stage : stages) {
        std::ranges::copy(done.gates(stage), std::back_inserter(asked.all));
        std::ranges::copy(done.failures(stage), std::back_inserter(asked.failed));
    }
    return asked;
}

// One key among many.
TEST(BackwardGates, SeeOneLineThatIsALittleTooLarge) {
    const auto asked = [](DataType type, BiasType bias, double factor) {
        Case c = masked_case();
        c.data_type = type;
        c.bias = bias;
        c.backward.dbias = false;
        Differentiated done(c);
        for (std::int64_t column = 0; column < c.hdim_q; ++column) {
            GuardedTensor& dk = done.tensor("dk");
            done.set("dk", 0, 9, column,
                     factor * reference::decode(dk.layout().type, dk.code(0, 0, 9, column)));
        }
        return Asked{done.gates(bwd_dq_dk_dv), done.failures(bwd_dq_dk_dv)};
    };
    for (const DataType type : {DataType::bf16, DataType::fp16})
        for (const BiasType bias : {BiasType::no_bias, BiasType::elementwise, BiasType::alibi}) {
            SCOPED_TRACE(fmt::format("{} {}", to_string(type), to_string(bias)));
            const Asked wrong = asked(type, bias, type == DataType::bf16 ? 1.05 : 1.006);
            EXPECT_THAT(wrong.failed, testing::Contains("G2.row:dk"));
            EXPECT_THAT(wrong.failed, testing::Not(testing::Contains("G2.row:dv")));
            EXPECT_THAT(wrong.all, testing::IsSupersetOf({"G2.row:dv", "G2.element:dk", "G2.element:dv"}));
            EXPECT_THAT(asked(type, bias, 1.0).failed, testing::IsEmpty());
        }
    EXPECT_THAT(asked(DataType::fp32, BiasType::no_bias, 1.0).all,
                testing::Not(testing::Contains(testing::StartsWith("G2"))));
}

// Where P takes few values, roundings are not independent. The other gates see a wrong gradient there.
TEST(BackwardGates, LeaveG2OutForDataOfFewValuesAndSeeWrongGradientsThereToo) {
    using testing::Contains;
    using testing::IsEmpty;
    using testing::Not;
    using testing::StartsWith;
    for (const Fill fill : {Fill::zeros, Fill::integers}) {
        const Asked right = asked_of(fill, [](Differentiated&) {});
        EXPECT_THAT(right.failed, IsEmpty()) << to_string(fill);
        EXPECT_THAT(right.all, Not(Contains(StartsWith("G2")))) << to_string(fill);
        const Asked wrong = asked_of(fill, [](Differentiated& done) { done.scale("dv", 1.1); });
        EXPECT_THAT(wrong.failed, Contains("G1:dv")) << to_string(fill);
    }
    for (const Fill fill : {Fill::normal, Fill::indexed, Fill::sharp, Fill::uniform, Fill::rising,
                            Fill::heavy_tailed, Fill::edge_first, Fill::edge_last}) {
        const Asked right = asked_of(fill, [](Differentiated&) {});
        EXPECT_THAT(right.failed, IsEmpty()) << to_string(fill);
        for (const char* gate : {"G2:dq", "G2:dk", "G2:dv"})
            EXPECT_THAT(right.all, Contains(gate)) << to_string(fill);
    }
}

TEST(BackwardGates, WantExactZerosWhereNothingIsSeen) {
    const auto after = [](std::string_view name, KernelFamily stage, std::int64_t row, std::int64_t c) {
        Differentiated done(masked_case());
        done.set(name, 2, row, c, 0x1p-20);
        return done.failures(stage);
    };
    using testing::Contains;
    using testing::IsEmpty;
    EXPECT_THAT(after("dk", bwd_dq_dk_dv, 40, 5), Contains("G5.2:dk"));
    EXPECT_THAT(after("dv", bwd_dq_dk_dv, 69, 0), Contains("G5.2:dv"));
    EXPECT_THAT(after("dbias", bwd_dq_dk_dv, 3, 4), Contains("G5.2:dbias"));
    // Rows of dQ without a key: bottom-right, fewer keys than queries.
    Case c = masked_case();
    c.seqlen_q = {70};
    c.seqlen_k = {40};
    c.mask = MaskType::bottom_right;
    Differentiated done(c);
    EXPECT_THAT(done.failures(bwd_convert_dq), IsEmpty());
    done.set("dq", 1, 29, 3, 0x1p-20);
    EXPECT_THAT(done.failures(bwd_convert_dq), Contains("G5.2:dq"));
}

TEST(BackwardGates, WantRowsOfDBiasThatAddUpToZero) {
    Differentiated done(masked_case());
    // Each element stays within its own limit, and all lean the same way.
    GuardedTensor& dbias = done.tensor("dbias");
    for (std::int64_t j = 0; j < 40; ++j) {
        const double value = reference::decode(ElementType::bf16, dbias.code(0, 0, 39, j));
        dbias.set_code(0, 0, 39, j, reference::encode(ElementType::bf16, value + 0.02));
    }
    EXPECT_THAT(done.failures(bwd_dq_dk_dv), testing::Contains("G1.sum:dbias"));
    dbias.set_code(0, 0, 39, 5, reference::encode(ElementType::bf16, std::nan("")));
    EXPECT_THAT(done.failures(bwd_dq_dk_dv), testing::Contains("G1.sum:dbias"));
}

TEST(BackwardGates, SeeAWrongDBiasOfAPackedBatch) {
    Case c = masked_case();
    c.mode = Mode::group;
    c.batch = 1; // whose rows are stored as those of a batch
    Differentiated done(c);
    EXPECT_THAT(done.failures(bwd_dq_dk_dv), testing::IsEmpty());
    GuardedTensor& dbias = done.tensor("dbias");
    const double value = reference::decode(ElementType::bf16, dbias.code(0, 0, 39, 5));
    dbias.set_code(0, 0, 39, 5, reference::encode(ElementType::bf16, value + 0.5));
    EXPECT_THAT(done.failures(bwd_dq_dk_dv), testing::Contains("G1:dbias"));
}

/// The first main kernel of the working list that `wanted` takes.
template <class Wanted>
KernelConfig main_kernel(Wanted wanted) {
    for (const KernelConfig& kernel : catalog::test::working_list("gfx950", bwd_dq_dk_dv))
        if (wanted(kernel)) return kernel;
    throw Error("no such kernel");
}

TEST(BackwardData, LaysOutTheWorkspaceOfTheKernelThatWillRun) {
    Case c = masked_case();
    c.seqlen_k = {300};
    const auto data = family_of(c.family).allocate(c, Fp8Flavour::ocp);
    const auto bytes = [&](const KernelConfig& main) {
        data->prepare({&main, 1});
        data->tensors().refill(Poison::nan);
        return allocated_bytes(data->tensors().tensor("workspace").layout());
    };
    const KernelConfig wide = main_kernel([](const KernelConfig& k) { return k.algorithm.tile.n0 == 128; });
    const KernelConfig narrow = main_kernel([](const KernelConfig& k) { return k.algorithm.tile.n0 == 64; });
    const std::int64_t split = 4 * c.batch * c.nhead_q * 40 * c.hdim_q;
    EXPECT_EQ(bytes(wide), 16 + 3 * split);
    EXPECT_EQ(bytes(narrow), 16 + 5 * split);
    // Prepared: the number of splits stands at its beginning, and a persistent schedule begins with zeros.
    EXPECT_EQ(data->tensors().tensor("workspace").code(0, 0, 0, 0), 5U);
    EXPECT_EQ(data->tensors().tensor("workspace").code(0, 0, 0, 4), 0U);
    EXPECT_FALSE(data->writes(bwd_convert_dq, "workspace"));
    EXPECT_TRUE(data->writes(bwd_dq_dk_dv, "workspace"));
    EXPECT_TRUE(data->repeats(bwd_convert_dq, "dq"));
    const KernelConfig direct =
        main_kernel([](const KernelConfig& k) { return k.algorithm.max_seq_len_q > 0; });
    EXPECT_EQ(bytes(direct), 0);
    EXPECT_EQ(std::get<BwdArgs>(data->invocation()).workspace, nullptr);
    EXPECT_TRUE(data->writes(bwd_dq_dk_dv, "dq"));
    c.backward.deterministic = false;
    EXPECT_FALSE(family_of(c.family).allocate(c, Fp8Flavour::ocp)->repeats(bwd_convert_dq, "dq"));
    EXPECT_TRUE(family_of(c.family).allocate(c, Fp8Flavour::ocp)->repeats(bwd_dq_dk_dv, "dk"));
}

TEST(BackwardData, KeepsForwardsResultsWhateverMemoryHolds) {
    const Case c = masked_case();
    const auto data = family_of(c.family).allocate(c, Fp8Flavour::ocp);
    const auto digest = data->tensors().content_digest();
    data->tensors().refill(Poison::huge);
    EXPECT_EQ(data->tensors().content_digest(), digest);
    const GuardedTensor& o = data->tensors().tensor("o");
    EXPECT_TRUE(std::isfinite(reference::decode(o.layout().type, o.code(1, 3, 39, 31))));
    // Row 0 sees key 0 alone, so O is that row of V.
    EXPECT_EQ(o.code(0, 0, 0, 5), data->tensors().tensor("v").code(0, 0, 0, 5));
}

// Another program brings dq, dk, dv, dbias and d_sink; tensors between our stages are not asked for.
TEST(BackwardGates, JudgeFilesOfGradients) {
    const auto folder = std::filesystem::path(testing::TempDir()) / "backward_files";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    Case c = masked_case();
    c.sink_logits = SinkLogits::normal;
    Differentiated done(c);
    write_inputs(folder, done.data().tensors());
    write_outputs(folder, done.data().tensors());
    for (const char* name : {"q", "o", "lse", "d_o", "bias", "dq", "dk", "dv", "dbias", "d_sink"})
        EXPECT_TRUE(std::filesystem::exists(folder / (std::string(name) + ".npy"))) << name;
    for (const char* name : {"d", "workspace"})
        EXPECT_FALSE(std::filesystem::exists(folder / (std::string(name) + ".npy"))) << name;
    const auto given = family_of(c.family).allocate(c, Fp8Flavour::ocp);
    read_inputs(folder, given->tensors());
    read_outputs(folder, given->tensors());
    const Numerics numerics = reference::kernel_numerics(element_types(c.data_type, Fp8Flavour::ocp));
    const CaseResult right = judge_given_outputs(c, *given, numerics);
    EXPECT_EQ(right.outcome, Outcome::passed) << right.message;
    GuardedTensor& dv = given->tensors().tensor("dv");
    dv.set_code(1, 2, 0, 4, dv.code(1, 2, 0, 4) ^ 0x8000U);
    const CaseResult wrong = judge_given_outputs(c, *given, numerics);
    EXPECT_EQ(wrong.outcome, Outcome::failed);
    EXPECT_THAT(wrong.message, HasSubstr("G1 dv: first at b1 h2 key 0 column 4"));
}

} // namespace
} // namespace fmha::harness
