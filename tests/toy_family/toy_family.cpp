#include "harness/families/all_families.hpp"

#include "harness/data/role.hpp"
#include "harness/npy/exchange.hpp"
#include "tests/toy_family/toy_gates.hpp"

#include <algorithm>

namespace fmha::harness {
namespace {

class ToyExpectation final : public CaseExpectation {
  public:
    explicit ToyExpectation(const ToyArgs& args) : args_(args) {}

    double oracle_disagreement() override { return 0.0; } // there is one oracle
    StageVerdict judge(KernelFamily, const Outputs& outputs, const Numerics&, InputOrigin) override {
        StageVerdict verdict;
        verdict.judgement = judge_toy(args_, outputs);
        verdict.rows = ToyBounded(args_).rows();
        return verdict;
    }
    void each_bounded(KernelFamily, const Outputs&,
                      const std::function<void(const Bounded&)>& visit) override {
        visit(ToyBounded(args_));
    }

  private:
    ToyArgs args_;
};

class ToyData final : public CaseData {
  public:
    ToyData(const Case& c, Fp8Flavour flavour) : tensors_(c, flavour) {}

    TensorSet& tensors() override { return tensors_.set(); }
    Invocation invocation() const override { return tensors_.args(); }
    Outputs outputs(KernelFamily) const override { return toy_outputs(tensors_.args()); }
    std::unique_ptr<CaseExpectation> expectation(int) const override {
        return std::make_unique<ToyExpectation>(tensors_.args());
    }
    std::size_t write_reference(const std::filesystem::path& folder, int) const override {
        const ToyArgs args = tensors_.args();
        ReferenceFile file(tensors_.tensor("o").layout());
        const auto rows = reference::toy_rows(args);
        for (const reference::RowId& id : rows)
            for (std::int64_t c = 0; c < args.shape.hdim_q; ++c)
                file.put(args.shape.mode == Mode::group ? 0 : id.b, id.h,
                         reference::toy_start(args, id.b) + id.i, c, reference::toy_value(args, id, c));
        file.write(folder, "o");
        return rows.size();
    }

  private:
    FamilyTensors<ToyArgs> tensors_;
};

class ToyFamily final : public Family {
  public:
    std::vector<KernelFamily> stages(const Case&) const override { return {KernelFamily::toy}; }
    std::unique_ptr<CaseData> allocate(const Case& c, Fp8Flavour flavour) const override {
        return std::make_unique<ToyData>(c, flavour);
    }
    CaseBytes bytes(const Case& c, Fp8Flavour flavour, int) const override {
        const std::int64_t tensors = tensor_bytes<ToyArgs>(c, flavour);
        return {.tensors = tensors, .copies = 2 * tensors, .reference = 0};
    }
    double flops(const Case& c) const override {
        return static_cast<double>(c.batch * c.nhead_q * c.hdim_q * std::ranges::max(c.seqlen_q));
    }
};

} // namespace

const Family& toy_family() {
    static const ToyFamily family;
    return family;
}

} // namespace fmha::harness
