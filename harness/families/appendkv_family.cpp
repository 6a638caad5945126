#include "harness/cases/cache_case.hpp"
#include "harness/data/append_tensors.hpp"
#include "harness/families/all_families.hpp"
#include "harness/gates/append_gates.hpp"
#include "harness/npy/exchange.hpp"
#include "reference/numerics/formats.hpp"

#include <limits>
#include <optional>

namespace fmha::harness {
namespace {

/// What the reference says, from the inputs as they are when this is made: Q is rotated in place.
class AppendExpectation final : public CaseExpectation {
  public:
    explicit AppendExpectation(const AppendKvArgs& args)
        : args_(args), expected_(reference::append(args)),
          disagreements_(reference::append_disagreements(
              expected_, reference::append(args, reference::Oracle::row_by_row))) {}

    double oracle_disagreement() override {
        return disagreements_ > 0 ? std::numeric_limits<double>::infinity() : 0.0;
    }
    StageVerdict judge(KernelFamily, const Outputs& outputs, const Numerics&, bool) override {
        StageVerdict verdict;
        verdict.rows = static_cast<std::int64_t>(expected_.rows.size());
        verdict.judgement = judge_appended(args_, outputs, expected_);
        return verdict;
    }

  private:
    AppendKvArgs args_;
    reference::AppendedRows expected_;
    std::int64_t disagreements_;
};

class AppendKvData final : public CaseData {
  public:
    AppendKvData(const Case& c, Fp8Flavour flavour) : tensors_(c, flavour) {}

    TensorSet& tensors() override { return tensors_.set(); }
    Invocation invocation() const override { return tensors_.args(); }
    Outputs outputs(KernelFamily) const override { return appended_outputs(tensors_.args()); }
    std::unique_ptr<CaseExpectation> expectation(int) const override {
        return std::make_unique<AppendExpectation>(tensors_.args());
    }
    std::size_t write_reference(const std::filesystem::path& folder) const override;

  private:
    AppendKvTensors tensors_;
};

/// The caches and Q afterwards; NaN wherever nothing is written.
std::size_t AppendKvData::write_reference(const std::filesystem::path& folder) const {
    const reference::AppendedRows expected = reference::append(tensors_.args());
    for (const auto& [target, name] :
         {std::pair(reference::AppendTarget::k, "k"), std::pair(reference::AppendTarget::v, "v"),
          std::pair(reference::AppendTarget::q, "q")}) {
        if (!tensors_.has(name)) continue;
        const TensorLayout& layout = tensors_.tensor(name).layout();
        ReferenceFile file(layout, NpyType::float64);
        for (const reference::AppendedRow& row : expected.rows)
            for (std::int64_t c = 0; row.target == target && c < row.cols; ++c)
                file.put(row.slot, row.h, row.row, c,
                         c < row.rotated ? expected.exact[static_cast<std::size_t>(row.first + c)]
                                         : reference::decode(layout.type, expected.code_of(row, c)));
        file.write(folder, updated_name(name));
    }
    return expected.rows.size();
}

struct Written {
    std::int64_t rows = 0, copied = 0, rotated = 0; ///< elements
};
Written written_by(const Case& c) {
    const std::int64_t keys = c.batch * c.nhead_k * c.append.seqlen_knew, dim = rotary_dim_of(c);
    const std::int64_t queries = dim > 0 ? c.batch * c.nhead_q * std::ranges::max(c.seqlen_q) : 0;
    return {2 * keys + queries, keys * (c.hdim_q - dim + c.hdim_v), (keys + queries) * dim};
}

class AppendKvFamily final : public Family {
  public:
    std::vector<KernelFamily> stages(const Case&) const override { return {KernelFamily::fwd_appendkv}; }
    std::unique_ptr<CaseData> allocate(const Case& c, Fp8Flavour flavour) const override {
        return std::make_unique<AppendKvData>(c, flavour);
    }
    CaseBytes bytes(const Case& c, Fp8Flavour flavour, int) const override {
        // Four copies as forward keeps them; a number and a code an element of two oracles, and the name of every row.
        constexpr std::int64_t row_name = 72;
        const Written written = written_by(c);
        const std::int64_t elements = written.copied + written.rotated;
        CaseBytes bytes;
        bytes.tensors = tensor_bytes<AppendKvArgs>(c, flavour);
        bytes.copies =
            4 * (element_bytes(element_types(c.data_type, flavour).k, elements) + written.rows * 24);
        bytes.reference = 2 * (elements * 12 + written.rows * row_name);
        return bytes;
    }
    /// Three for every rotated channel; a copy counts as one.
    double flops(const Case& c) const override {
        const Written written = written_by(c);
        return static_cast<double>(written.copied) + 3.0 * static_cast<double>(written.rotated);
    }
};

} // namespace

const Family& appendkv_family() {
    static const AppendKvFamily family;
    return family;
}

} // namespace fmha::harness
