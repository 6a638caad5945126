#include "harness/cases/cache_case.hpp"
#include "harness/data/append_tensors.hpp"
#include "harness/families/all_families.hpp"
#include "harness/families/append_expectation.hpp"
#include "harness/gates/append_gates.hpp"

namespace fmha::harness {
namespace {

class AppendKvData final : public CaseData {
  public:
    AppendKvData(const Case& c, Fp8Flavour flavour) : tensors_(c, flavour) {}

    TensorSet& tensors() override { return tensors_.set(); }
    Invocation invocation() const override { return tensors_.args(); }
    Outputs outputs(KernelFamily) const override { return appended_outputs(tensors_.args()); }
    std::unique_ptr<CaseExpectation> expectation(int) const override {
        return std::make_unique<AppendExpectation>(tensors_.args());
    }
    std::size_t write_reference(const std::filesystem::path& folder, int) const override {
        return write_appended(tensors_.args(), tensors_.set(), folder);
    }

  private:
    AppendKvTensors tensors_;
};

struct Written {
    std::int64_t rows = 0, copied = 0, rotated = 0; ///< elements
    std::int64_t kept = 0;                          ///< elements of Q that stay
};
Written written_by(const Case& c) {
    const std::int64_t keys = c.batch * c.nhead_k * c.append.seqlen_knew, dim = rotary_dim_of(c);
    const std::int64_t queries = c.batch * c.nhead_q * std::ranges::max(c.seqlen_q);
    return {2 * keys + queries, keys * (c.hdim_q - dim + c.hdim_v), (keys + queries) * dim,
            queries * (c.hdim_q - dim)};
}

class AppendKvFamily final : public Family {
  public:
    std::vector<KernelFamily> stages(const Case&) const override { return {KernelFamily::fwd_appendkv}; }
    std::unique_ptr<CaseData> allocate(const Case& c, Fp8Flavour flavour) const override {
        return std::make_unique<AppendKvData>(c, flavour);
    }
    CaseBytes bytes(const Case& c, Fp8Flavour flavour, int) const override {
        // A number and a code an element of two oracles, and the name of every row.
        constexpr std::int64_t row_name = 72;
        const Written written = written_by(c);
        const std::int64_t elements = written.copied + written.rotated;
        const ElementType type = element_types(c.data_type, flavour).k;
        CaseBytes bytes;
        bytes.tensors = tensor_bytes<AppendKvArgs>(c, flavour);
        bytes.copies =
            CaseBytes::copies_of_run * (element_bytes(type, elements + written.kept) + written.rows * 24);
        bytes.reference = 2 * (elements * 12 + written.rows * row_name) +
                          element_bytes(type, written.kept + written.rotated);
        bytes.values = elements * 12 + written.rows * row_name;
        bytes.files = file_bytes<AppendKvArgs>(c, flavour);
        return bytes;
    }
    /// Three for every rotated channel; a copy counts as one.
    double flops(const Case& c) const override {
        const Written written = written_by(c);
        return static_cast<double>(written.copied) + 3.0 * static_cast<double>(written.rotated);
    }
    RandomTypes random_types() const override {
        using enum DataType;
        return {{fp16, bf16, fp8, fp8bf16}, {}};
    }
};

} // namespace

const Family& fwd_appendkv_family() {
    static const AppendKvFamily family;
    return family;
}

} // namespace fmha::harness
