// The mistakes that each criterion lets through: those of a bf16 kernel over 4096 keys, against fills. The table of docs/gates.md is computed
// again and compared, so that a gate, a fill or a limit that loses its edge shows in that document.

#include "harness/cases/case_problem.hpp"
#include "harness/data/fwd_tensors.hpp"
#include "harness/data/random.hpp"
#include "harness/gates/attention_gates.hpp"
#include "harness/gates/attention_outputs.hpp"
#include "kernels/targets/host/faults/fault.hpp"
#include "reference/forward.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/harness/gate_support.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

namespace fmha::harness::test {
namespace {

using host_target::Fault;

constexpr std::int64_t channels = 128;

struct Data {
    const char* name;
    Fill fill;
    double factor = 1.0; ///< of Q, K and V
    std::int64_t keys = 4096;
};

constexpr Data data_sets[] = {{"uniform", Fill::uniform},     {"0.1 normal", Fill::normal, 0.1},
                              {"normal", Fill::normal},       {"sharp", Fill::sharp},
                              {"rising", Fill::rising},       {"heavy_tailed", Fill::heavy_tailed},
                              {"indexed", Fill::indexed},     {"zeros", Fill::zeros},
                              {"edge_last", Fill::edge_last}, {"rising, 128 keys", Fill::rising, 1.0, 128}};

/// Launches a kernel with a mistake.
using Launch = std::function<void(const KernelInstance& kernel, FwdArgs args)>;

Launch with_fault(Fault fault) {
    return [fault](const KernelInstance& kernel, const FwdArgs& args) {
        host_target::run_fwd_with_fault(kernel.config(), args, fault);
    };
}

std::uint16_t* value_row(const FwdArgs& args, std::int64_t row) {
    return static_cast<std::uint16_t*>(args.v.data) + args.v.offset(0, 0, row, 0);
}

/// The kernel sees the last `count` rows of V turned by one; they are as before afterwards.
Launch with_turned_values(std::int64_t count) {
    return [count](const KernelInstance& kernel, const FwdArgs& args) {
        const auto swap_with_row_before = [&](std::int64_t row) {
            std::swap_ranges(value_row(args, row), value_row(args, row) + channels, value_row(args, row - 1));
        };
        const std::int64_t first = args.shape.seqlen_k - count;
        for (std::int64_t row = args.shape.seqlen_k - 1; row > first; --row) swap_with_row_before(row);
        kernel.launch(args, {});
        for (std::int64_t row = first + 1; row < args.shape.seqlen_k; ++row) swap_with_row_before(row);
    };
}

/// Columns [first, end) of row 17 of O are 2 % too large.
Launch with_scaled_outputs(std::int64_t first, std::int64_t end) {
    return [first, end](const KernelInstance& kernel, const FwdArgs& args) {
        kernel.launch(args, {});
        for (std::int64_t c = first; c < end; ++c) set_o(args, 0, 0, 17, c, 1.02 * get_o(args, 0, 0, 17, c));
    };
}

struct Mistake {
    const char* name;
    Launch launch;
};

const std::vector<Mistake>& mistakes() {
    static const std::vector<Mistake> all{
        {"none", [](const KernelInstance& kernel, const FwdArgs& args) { kernel.launch(args, {}); }},
        {"last key dropped", with_fault(Fault::last_key_dropped)},
        {"a middle key dropped", with_fault(Fault::middle_key_dropped)},
        {"output not rescaled in the second tile", with_fault(Fault::rescale_missed)},
        {"last two rows of V exchanged", with_turned_values(2)},
        {"last 16 rows of V turned by one", with_turned_values(16)},
        {"softmax scale 1 % too large",
         [](const KernelInstance& kernel, FwdArgs args) {
             args.score.scale_s *= 1.01F;
             kernel.launch(args, {});
         }},
        {"P truncated instead of rounded", with_fault(Fault::weights_truncated)},
        {"one row 2 % too large", with_scaled_outputs(0, channels)},
        {"one element 2 % too large", with_scaled_outputs(5, 6)},
        {"output all zeros",
         [](const KernelInstance&, const FwdArgs& args) {
             for (std::int64_t row = 0; row < args.shape.seqlen_q; ++row)
                 for (std::int64_t c = 0; c < channels; ++c)
                     static_cast<std::uint16_t*>(args.o.data)[args.o.offset(0, 0, row, c)] = 0;
         }},
    };
    return all;
}

Case case_of(const Data& data) {
    Case c;
    c.id = "test/sharpness@2";
    c.data_type = DataType::bf16;
    c.batch = c.nhead_q = c.nhead_k = 1;
    c.hdim_q = c.hdim_v = channels;
    c.seqlen_q = {64};
    c.seqlen_k = {data.keys};
    c.fill = data.fill;
    c.seed = 2;
    return c;
}

struct Cell {
    std::string letters;
    double closest = 1.0; ///< smallest distance of a ratio from 1, where a verdict turns
};

/// One data set: its tensors, the kernel and the expected outputs.
class Bench {
  public:
    explicit Bench(const Data& data)
        : fill_(data.fill), case_(case_of(data)), tensors_(case_, Fp8Flavour::ocp),
          kernel_(FittingHostKernel().planned(to_problem(case_, "gfx950"), nullptr)) {
        if (data.factor != 1.0) shrink(data.factor);
        const FwdArgs args = tensors_.args();
        expected_ = reference::forward(args, reference::all_rows(args), {.numerics = kernel_.numerics});
    }

    /// The criteria that notice the mistake: F the flat 1e-2, 4 gate G4, and of the gates that are required 1 G1, 2 G2, R G2.row, S G2.element, M G2.mean, 3 G3, E the exact one.
    Cell noticed_by(const Mistake& mistake) {
        const FwdArgs args = tensors_.args();
        mistake.launch(*kernel_.instance, args);
        const reference::AttentionArgs judged = reference::attention_of(args);
        const Outputs outputs = attention_outputs(judged);
        const JudgeContext context{
            judged, outputs, expected_, fill_, tensors_.fill().edge(), tensors_.geometry().types.p};
        Judgement judgement = judge(context);
        judgement.gates.push_back(low_precision_yardstick(context, tensors_.geometry().types));
        judgement.gates.push_back(flat(outputs));
        Cell cell;
        const std::pair<const char*, char> marks[] = {{"flat", 'F'},    {"G4", '4'},     {"G1", '1'},
                                                      {"G2", '2'},      {"G2.row", 'R'}, {"G2.element", 'S'},
                                                      {"G2.mean", 'M'}, {"G3", '3'},     {"exact", 'E'}};
        for (const auto& [gate, letter] : marks)
            for (const auto& verdict : judgement.gates) {
                if (verdict.gate != gate) continue;
                if (!verdict.passed) cell.letters += letter;
                cell.closest = std::min(cell.closest, std::abs(verdict.ratio - 1.0));
            }
        if (cell.letters.empty()) cell.letters = "·";
        return cell;
    }

  private:
    void shrink(double factor) {
        for (const char* name : {"q", "k", "v"}) {
            GuardedTensor& tensor = tensors_.tensor(name);
            const std::int64_t rows = tensor.layout().rows;
            for (std::int64_t row = 0; row < rows; ++row)
                for (std::int64_t c = 0; c < channels; ++c)
                    tensor.set_code(0, 0, row, c,
                                    reference::encode(ElementType::bf16,
                                                      factor * reference::decode(ElementType::bf16,
                                                                                 tensor.code(0, 0, row, c))));
        }
    }

    /// The customary absolute and relative 1e-2.
    GateVerdict flat(const Outputs& outputs) const {
        GateVerdict verdict{.gate = "flat", .tensor = "o"};
        for (std::int64_t row = 0; row < expected_.o.rows(); ++row)
            for (std::int64_t c = 0; c < expected_.o.cols(); ++c) {
                const double got = outputs.at("o").value(row, c);
                const double exact = expected_.o(row, c);
                verdict.ratio =
                    std::max(verdict.ratio, std::abs(got - exact) / (1e-2 + 1e-2 * std::abs(exact)));
            }
        verdict.passed = verdict.ratio <= 1.0;
        return verdict;
    }

    Fill fill_;
    Case case_;
    FwdTensors tensors_;
    StageKernel kernel_;
    reference::ForwardRows expected_;
};

using Table = std::vector<std::vector<Cell>>; ///< [mistake][data set]

const Table& computed() {
    static const Table table = [] {
        Table cells(mistakes().size());
        for (const Data& data : data_sets) {
            Bench bench(data);
            for (std::size_t m = 0; m < mistakes().size(); ++m)
                cells[m].push_back(bench.noticed_by(mistakes()[m]));
        }
        return cells;
    }();
    return table;
}

std::string markdown() {
    std::string text = "| mistake |", rule = "|---|";
    for (const Data& data : data_sets) {
        text += fmt::format(" {} |", data.name);
        rule += "---|";
    }
    text += "\n" + rule + "\n";
    for (std::size_t m = 0; m < mistakes().size(); ++m) {
        text += fmt::format("| {} |", mistakes()[m].name);
        for (const Cell& cell : computed()[m]) text += fmt::format(" {} |", cell.letters);
        text += "\n";
    }
    return text;
}

/// Letters of gates that decide, which F and 4 do not.
bool caught(const Cell& cell) {
    return cell.letters.find_first_of("12RSM3E") != std::string::npos;
}

TEST(Sharpness, ACorrectKernelIsNoticedByNothing) {
    for (const Cell& cell : computed().front()) EXPECT_EQ(cell.letters, "·");
}

TEST(Sharpness, EveryMistakeIsCaughtByAGateOnSomeFill) {
    for (std::size_t m = 1; m < mistakes().size(); ++m) {
        const auto& row = computed()[m];
        EXPECT_TRUE(std::any_of(row.begin(), row.end(), caught)) << mistakes()[m].name;
    }
}

TEST(Sharpness, NoVerdictHangsOnALastBit) {
    for (std::size_t m = 0; m < mistakes().size(); ++m)
        for (std::size_t d = 0; d < std::size(data_sets); ++d)
            EXPECT_GT(computed()[m][d].closest, 0.01) << mistakes()[m].name << ", " << data_sets[d].name;
}

TEST(Sharpness, TheTableOfTheDocumentIsWhatIsComputed) {
    std::ifstream file(FMHA_SOURCE_DIR "/docs/gates.md");
    std::ostringstream document;
    document << file.rdbuf();
    EXPECT_TRUE(document.str().find(markdown()) != std::string::npos) << "docs/gates.md should have\n"
                                                                      << markdown();
}

} // namespace
} // namespace fmha::harness::test
