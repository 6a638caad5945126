#include "harness/data/splitkv_tensors.hpp"
#include "harness/families/all_families.hpp"
#include "harness/gates/combine_gates.hpp"
#include "harness/npy/exchange.hpp"

#include <chrono>
#include <cmath>

namespace fmha::harness {
namespace {

/// The reference of the combine stage: S-4 on the partial results as they are stored.
class CombineExpectation final : public CaseExpectation {
  public:
    CombineExpectation(const SplitKvArgs& args, int threads)
        : args_(args), rows_(reference::all_rows(args_)), threads_(threads) {}

    double oracle_disagreement() override {
        return reference::oracle_disagreement(combined({}, true, reference::Oracle::matrix),
                                              combined({}, false, reference::Oracle::row_by_row));
    }
    StageVerdict judge(KernelFamily, const Outputs& outputs, const Numerics& numerics, bool) override {
        const auto start = std::chrono::steady_clock::now();
        const auto expected = combined(numerics, true, reference::Oracle::matrix);
        StageVerdict verdict;
        verdict.reference_seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        verdict.rows = static_cast<std::int64_t>(expected.rows.size());
        verdict.judgement = judge_combined(args_, outputs, expected);
        if (std::ranges::any_of(expected.o.values, [](double x) { return std::isnan(x); }))
            verdict.mistrust = "the reference is NaN";
        return verdict;
    }

  private:
    reference::CombinedRows combined(const Numerics& numerics, bool companions,
                                     reference::Oracle oracle) const {
        return reference::combine(
            args_, rows_, {.companions = companions, .numerics = numerics, .threads = threads_}, oracle);
    }

    SplitKvArgs args_;
    std::vector<reference::RowId> rows_;
    int threads_;
};

class SplitKvData final : public CaseData {
  public:
    SplitKvData(const Case& c, Fp8Flavour flavour) : tensors_(c, flavour) {}

    TensorSet& tensors() override { return tensors_.set(); }
    Invocation invocation() const override { return tensors_.args(); }
    Outputs outputs(KernelFamily) const override { return combined_outputs(tensors_.args()); }
    std::unique_ptr<CaseExpectation> expectation(int threads) const override {
        return std::make_unique<CombineExpectation>(tensors_.args(), threads);
    }
    std::size_t write_reference(const std::filesystem::path& folder) const override;

  private:
    SplitKvTensors tensors_;
};

std::size_t SplitKvData::write_reference(const std::filesystem::path& folder) const {
    const SplitKvArgs args = tensors_.args();
    const auto rows = reference::all_rows(args);
    const auto expected = reference::combine(args, rows, {.companions = false, .numerics = {}, .threads = 0});
    ReferenceFile o(tensors_.tensor("o").layout(), NpyType::float64);
    std::optional<ReferenceFile> lse;
    if (tensors_.has("lse")) lse.emplace(tensors_.tensor("lse").layout(), NpyType::float64);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const auto& id = rows[r];
        const Entry& entry = tensors_.geometry().entries[static_cast<std::size_t>(id.b)];
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
    std::vector<KernelFamily> stages(const Case&) const override {
        return {KernelFamily::fwd_splitkv_combine};
    }
    std::unique_ptr<CaseData> allocate(const Case& c, Fp8Flavour flavour) const override {
        return std::make_unique<SplitKvData>(c, flavour);
    }
    CaseBytes bytes(const Case& c, Fp8Flavour flavour, int) const override {
        // Four copies as forward keeps them; seven tables of a value a channel and six numbers a row, of two oracles.
        const std::int64_t rows = rows_of(c, flavour);
        CaseBytes bytes;
        bytes.tensors = tensor_bytes<SplitKvArgs>(c, flavour);
        bytes.copies = 4 * rows * (element_bytes(element_types(c.data_type, flavour).o, c.hdim_v) + 28);
        bytes.reference = 2 * 8 * rows * (7 * c.hdim_v + 6);
        return bytes;
    }
    /// A multiplication and an addition for every partial value.
    double flops(const Case& c) const override {
        return 2.0 * static_cast<double>(rows_of(c, Fp8Flavour::ocp) * c.split.num_splits * c.hdim_v);
    }
};

} // namespace

const Family& splitkv_family() {
    static const SplitKvFamily family;
    return family;
}

} // namespace fmha::harness
