#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/system/stopwatch.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/data/infinity.hpp"
#include "harness/data/splitkv_tensors.hpp"
#include "harness/families/all_families.hpp"
#include "harness/families/attention_data.hpp"
#include "harness/gates/append_gates.hpp"
#include "harness/gates/combine_gates.hpp"
#include "harness/gates/split_gates.hpp"
#include "harness/npy/exchange.hpp"

#include <bit>
#include <cmath>

namespace fmha::harness {
namespace {

bool attends(const Case& c) {
    return c.split.stage == SplitStage::both;
}

/// The reference of both stages: S-1 and S-2 on the keys of every split, S-4 on the partial results as they are stored, and
/// attention over all keys.
class SplitExpectation final : public CaseExpectation {
  public:
    SplitExpectation(const SplitKvTensors& tensors, int threads)
        : tensors_(tensors), rows_(expected_rows(tensors.of_case(), whole())), threads_(threads) {}

    double oracle_disagreement() override {
        const Case& c = tensors_.of_case();
        if (!attends(c))
            return reference::oracle_disagreement(combined({}, true, reference::Oracle::matrix),
                                                  combined({}, false, reference::Oracle::row_by_row));
        if (c.fill == Fill::huge) return 0.0;
        const SplitKvArgs args = planned_call(tensors_);
        double worst = attention_disagreement(whole(), rows_, threads_);
        for (const std::int64_t split : {std::int64_t{0}, args.partials.num_splits - 1})
            worst = std::max(worst,
                             attention_disagreement(reference::attention_of(args, split), rows_, threads_));
        return worst;
    }
    StageVerdict judge(KernelFamily stage, const Outputs& outputs, const Numerics& numerics,
                       InputOrigin inputs) override {
        if (attends(tensors_.of_case()) && stage == KernelFamily::fwd_splitkv)
            given_ = outputs.find("o_acc") == nullptr;
        return stage == KernelFamily::fwd_splitkv ? judge_main(outputs, numerics, inputs)
                                                  : judge_combine(outputs, numerics, inputs);
    }

  private:
    reference::AttentionArgs whole() const { return reference::attention_of(planned_call(tensors_)); }

    reference::CombinedRows combined(const Numerics& numerics, bool companions,
                                     reference::Oracle oracle) const {
        const SplitKvArgs args = planned_call(tensors_);
        return reference::combine(args, given_ ? rows_ : reference::all_rows(args),
                                  {.companions = companions, .numerics = numerics, .threads = threads_},
                                  oracle);
    }

    StageVerdict judge_main(const Outputs& outputs, const Numerics& numerics, InputOrigin inputs) {
        const system::Stopwatch watch;
        const SplitKvArgs args = planned_call(tensors_);
        reference::ForwardOptions options{.numerics = numerics, .threads = threads_};
        if (given_) { // B.7: partial results are fp32, for every type of O
            options.numerics.u_o = 0x1p-24;
            options.numerics.f_o = 0x1p-149;
        }
        splits_.clear();
        for (std::int64_t split = 0; split < args.partials.num_splits; ++split)
            splits_.push_back(reference::attention(reference::attention_of(args, split), rows_, options));
        unsplit_ = reference::attention(whole(), rows_, {.numerics = numerics, .threads = threads_});
        StageVerdict verdict;
        verdict.reference_seconds = watch.seconds();
        if (given_) {
            store_partials(args);
            return verdict;
        }
        verdict.rows = static_cast<std::int64_t>(rows_.size()) * args.partials.num_splits;
        const DataSource& source = tensors_.source();
        verdict.judgement = judge_partials(
            {args, outputs, splits_, source.c.fill, source.fill.edge(), source.geometry.types.p, inputs});
        if (std::ranges::any_of(splits_, has_nan)) verdict.mistrust = "the reference is NaN";
        return verdict;
    }

    StageVerdict judge_combine(const Outputs& outputs, const Numerics& numerics, InputOrigin inputs) {
        const system::Stopwatch watch;
        const auto expected = combined(numerics, true, reference::Oracle::matrix);
        StageVerdict verdict;
        verdict.reference_seconds = watch.seconds();
        verdict.rows = static_cast<std::int64_t>(expected.rows.size());
        const Case& c = tensors_.of_case();
        const std::optional<Fill> fill = attends(c) ? std::optional(c.fill) : std::nullopt;
        if (!given_) verdict.judgement = judge_combined(planned_call(tensors_), outputs, expected, fill);
        if (unsplit_) {
            const DataSource& source = tensors_.source();
            judge_whole({whole(), outputs, *unsplit_, splits_, expected, source.c.fill, source.fill.edge(),
                         source.geometry.types.p, inputs, given_},
                        verdict.judgement);
        }
        if (std::ranges::any_of(expected.o.values(), [](double x) { return std::isnan(x); }))
            verdict.mistrust = "the reference is NaN";
        return verdict;
    }

    /// Puts the reference's partial results where a main kernel's would be: who brings O alone is judged as if they had been
    /// exact.
    void store_partials(const SplitKvArgs& args) const {
        const Partials& partials = args.partials;
        const auto store = [](const TensorView& view, std::int64_t at, double value) {
            static_cast<float*>(view.data)[at] = static_cast<float>(value);
        };
        for (std::int64_t split = 0; split < partials.num_splits; ++split) {
            const reference::ForwardRows& rows = splits_[static_cast<std::size_t>(split)];
            for (std::size_t n = 0; n < rows_.size(); ++n) {
                const auto& [b, h, i] = rows_[n];
                const auto r = static_cast<std::int64_t>(n);
                const EntryGeometry& entry = tensors_.geometry().entries[static_cast<std::size_t>(b)];
                const std::int64_t head = h * partials.num_splits + split, row = entry.start_q + i;
                store(partials.lse_acc, partials.lse_acc.offset(b, head, row, 0), rows.lse(r));
                for (std::int64_t c = 0; c < args.shape.hdim_v; ++c)
                    store(partials.o_acc, partials.o_acc.offset(b, head, row, c), rows.o(r, c));
            }
        }
    }

    const SplitKvTensors& tensors_;
    std::vector<reference::RowId> rows_; ///< that the main stage is judged in
    int threads_;
    bool given_ = false;                         ///< O and LSE come from elsewhere, without partial results
    std::vector<reference::ForwardRows> splits_; ///< of the main kernel that was judged last
    std::optional<reference::ForwardRows> unsplit_; ///< absent where no main kernel runs
};

class SplitKvData final : public CaseData {
  public:
    SplitKvData(const Case& c, Fp8Flavour flavour)
        : chosen_(c.split.num_splits < 1), case_(with_splits(c)), tensors_(case_, flavour) {
        if (attends(c)) require_cache(tensors_);
    }

    TensorSet& tensors() override { return tensors_.set(); }
    void complete_inputs() override;
    /// The number of splits that S-6 chooses depends on the device.
    void prepare(std::span<const KernelConfig> kernels) override {
        if (!chosen_ || kernels.empty()) return;
        case_.split.num_splits = 0;
        case_.split.num_splits = splits_on_device(to_problem(case_, kernels.front().arch.view()));
        for (const Role<SplitKvArgs>& role : roles_of<SplitKvArgs>())
            if (role.present(case_) && (role.name == "o_acc" || role.name == "lse_acc"))
                tensors_.set().lay_out(role.name, layout_of(role, case_, tensors_.geometry()));
    }
    Invocation invocation() const override { return planned_call(tensors_); }
    Invocation invocation_of(KernelFamily stage) const override {
        return stage == KernelFamily::fwd_appendkv ? Invocation(append_before(tensors_)) : invocation();
    }
    Outputs outputs(KernelFamily stage) const override {
        if (stage == KernelFamily::fwd_appendkv) return appended_outputs(append_before(tensors_));
        return stage == KernelFamily::fwd_splitkv ? partial_outputs(planned_call(tensors_))
                                                  : combined_outputs(planned_call(tensors_));
    }
    bool writes(KernelFamily stage, std::string_view name) const override {
        if (appends(case_) && !appends_to(stage, name)) return false;
        return stage == KernelFamily::fwd_appendkv ||
               (name == "o" || name == "lse") == (stage == KernelFamily::fwd_splitkv_combine);
    }
    std::unique_ptr<CaseExpectation> expectation(int threads) const override {
        return chained(tensors_, KernelFamily::fwd_splitkv, threads, [this, threads] {
            return std::unique_ptr<CaseExpectation>(std::make_unique<SplitExpectation>(tensors_, threads));
        });
    }
    std::size_t write_reference(const std::filesystem::path& folder, int threads) const override;

  private:
    static Case with_splits(Case c) {
        c.split.num_splits = std::max<std::int64_t>(1, c.split.num_splits);
        return c;
    }

    bool chosen_;
    Case case_; ///< lays out the tensors; it always states a number of splits
    SplitKvTensors tensors_;
};

/// Our combining does not read the partial O of a split without keys, so it is poison. S-2 has 0 there, which S-4 multiplies by 0.
void SplitKvData::complete_inputs() {
    if (attends(case_)) return;
    const GuardedTensor& lse = tensors_.tensor("lse_acc");
    GuardedTensor& o = tensors_.set().tensor("o_acc");
    const TensorLayout& rows = lse.layout();
    for (std::int64_t b = 0; b < rows.batches; ++b)
        for (std::int64_t head = 0; head < rows.heads; ++head)
            for (std::int64_t row = 0; row < rows.rows; ++row)
                if (std::bit_cast<float>(lse.code(b, head, row, 0)) == -infinity)
                    for (std::int64_t c = 0; c < case_.hdim_v; ++c) o.set_code(b, head, row, c, 0);
}

std::size_t SplitKvData::write_reference(const std::filesystem::path& folder, int threads) const {
    if (attends(case_)) return write_chained_reference(tensors_, folder, threads);
    const SplitKvArgs args = tensors_.args();
    const auto rows = reference::all_rows(args);
    const auto expected =
        reference::combine(args, rows, {.companions = false, .numerics = {}, .threads = threads});
    ReferenceFile o(tensors_.tensor("o").layout());
    std::optional<ReferenceFile> lse;
    if (tensors_.has("lse")) lse.emplace(tensors_.tensor("lse").layout());
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const auto& id = rows[r];
        const EntryGeometry& entry = tensors_.geometry().entries[static_cast<std::size_t>(id.b)];
        const std::int64_t b = args.shape.mode == Mode::group ? 0 : id.b, row = entry.start_q + id.i;
        for (std::int64_t d = 0; d < args.shape.hdim_v; ++d)
            o.put(b, id.h, row, d, expected.scale_o * expected.o(static_cast<std::int64_t>(r), d));
        if (lse) lse->put(b, id.h, row, 0, expected.lse[r]);
    }
    o.write(folder, "o");
    if (lse) lse->write(folder, "lse");
    return rows.size();
}

std::int64_t rows_of(const Case& c, Fp8Flavour flavour) {
    const Geometry geometry = geometry_of(c, flavour);
    return c.nhead_q * geometry.rows_q * geometry.stored_batch;
}

class SplitKvFamily final : public Family {
  public:
    std::vector<KernelFamily> stages(const Case& c) const override {
        if (!attends(c)) return {KernelFamily::fwd_splitkv_combine};
        if (appends(c))
            return {KernelFamily::fwd_appendkv, KernelFamily::fwd_splitkv, KernelFamily::fwd_splitkv_combine};
        return {KernelFamily::fwd_splitkv, KernelFamily::fwd_splitkv_combine};
    }
    Problem problem_of(KernelFamily stage, Problem whole, const Case& c) const override {
        if (stage == KernelFamily::fwd_appendkv) return append_before(whole, c);
        return Family::problem_of(stage, whole, c);
    }
    std::unique_ptr<CaseData> allocate(const Case& c, Fp8Flavour flavour) const override {
        return std::make_unique<SplitKvData>(c, flavour);
    }
    CaseBytes bytes(const Case& c, Fp8Flavour flavour, int threads) const override {
        // Seven tables of a value a channel and six numbers a row, of two oracles.
        const std::int64_t rows = rows_of(c, flavour);
        CaseBytes bytes;
        bytes.tensors = tensor_bytes<SplitKvArgs>(c, flavour);
        bytes.copies = CaseBytes::copies_of_run * rows *
                       (element_bytes(element_types(c.data_type, flavour).o, c.hdim_v) + 28);
        bytes.reference = 2 * 8 * rows * (7 * c.hdim_v + 6);
        bytes.values = 8 * rows * (c.hdim_v + 6);
        bytes.files = file_bytes<SplitKvArgs>(c, flavour);
        if (!attends(c)) return bytes;
        // Each split has a forward problem's rows and copies, and so has attention over all keys, which are read once for each.
        const std::int64_t splits = c.split.num_splits < 1 ? 128 : c.split.num_splits;
        bytes.copies += CaseBytes::copies_of_run * splits * rows * (4 * c.hdim_v + 28);
        const CaseBytes attention = attention_bytes(c, flavour, threads, 0, {}, splits + 1);
        bytes.reference += attention.reference;
        bytes.values = attention.values; // of all splits as one
        return bytes;
    }
    double flops(const Case& c) const override {
        // Combining multiplies and adds once for every partial value.
        const double combining =
            2.0 * static_cast<double>(rows_of(c, Fp8Flavour::ocp) * c.split.num_splits * c.hdim_v);
        return attends(c) ? attention_flops(c) + combining : combining;
    }
    RandomTypes random_types() const override {
        using enum DataType;
        return {{fp16, bf16, fp16, bf16, fp8, fp8bf16}, {QScale::pertensor}};
    }
};

} // namespace

const Family& fwd_splitkv_family() {
    static const SplitKvFamily family;
    return family;
}

} // namespace fmha::harness
