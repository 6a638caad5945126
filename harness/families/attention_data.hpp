#pragma once

#include "dispatcher/types/check_cache.hpp"
#include "harness/families/attention_expectation.hpp"
#include "harness/families/few_rows.hpp"
#include "harness/gates/attention_outputs.hpp"

#include <type_traits>
#include <utility>
#include <vector>

/// What the families have in common that compute attention in one stage: forward, paged-KV, batch prefill.
namespace fmha::harness {

/// Writes O times scale_o and LSE of the rows that the case judges; other rows are NaN. Random bytes at positions that the
/// mask hides are 0. Returns the number of rows.
std::size_t write_attention_reference(const DataSource& source, const TensorSet& set,
                                      const reference::AttentionArgs& args,
                                      const std::filesystem::path& folder);

/// `tensors`: bytes of the case's tensors.
CaseBytes attention_bytes(const Case& c, Fp8Flavour flavour, int threads, std::int64_t tensors);

/// Of both products, with hidden keys.
double attention_flops(const Case& c);

/// Checks tables and lengths of a case that lies in host memory as the C interface checks a caller's.
template <class Args>
void require_cache(const FamilyTensors<Args>& tensors) {
    const Args args = tensors.args();
    check_cache(args.shape, args.lengths, args.place);
}

/// A case in memory. `Args` are those of the family.
template <class Args>
class AttentionData final : public CaseData {
  public:
    AttentionData(const Case& c, Fp8Flavour flavour) : tensors_(c, flavour) {
        if constexpr (requires(Args args) { args.place; }) require_cache(tensors_);
    }

    /// Of few rows. The lengths of the case must follow from its shape.
    AttentionData(const Case& c, Fp8Flavour flavour, std::int64_t tile_rows)
        : tensors_(c, flavour, [&](const Args& args) {
              few_rows_ = harness::few_rows(reference::attention_of(args), c.seed);
              return NeededRows(few_rows_, tile_rows, c.nhead_q / c.nhead_k);
          }) {}

    TensorSet& tensors() override { return tensors_.set(); }
    Invocation invocation() const override { return tensors_.args(); }
    std::span<const reference::RowId> few_rows() const override { return few_rows_; }
    Outputs outputs(KernelFamily) const override {
        return few_rows_.empty() ? attention_outputs(judged()) : attention_outputs(judged(), few_rows_);
    }
    std::unique_ptr<CaseExpectation> expectation(int threads) const override {
        const reference::AttentionArgs args = judged();
        auto rows = few_rows_.empty() ? expected_rows(tensors_.source().c, args) : few_rows_;
        return std::make_unique<AttentionExpectation>(tensors_.source(), args, std::move(rows), threads);
    }
    std::size_t write_reference(const std::filesystem::path& folder) const override {
        return write_attention_reference(tensors_.source(), tensors_.set(), judged(), folder);
    }

  private:
    reference::AttentionArgs judged() const { return reference::attention_of(tensors_.args()); }

    std::vector<reference::RowId> few_rows_; ///< empty: all count; before the tensors, which choose them
    FamilyTensors<Args> tensors_;
};

template <class Args>
class AttentionFamily final : public Family {
  public:
    explicit AttentionFamily(KernelFamily stage) : stage_(stage) {}

    std::vector<KernelFamily> stages(const Case&) const override { return {stage_}; }
    std::unique_ptr<CaseData> allocate(const Case& c, Fp8Flavour flavour) const override {
        return std::make_unique<AttentionData<Args>>(c, flavour);
    }
    std::unique_ptr<CaseData> allocate_few_rows(const Case& c, Fp8Flavour flavour,
                                                std::int64_t tile_rows) const override {
        const bool from_shape = c.mode == Mode::batch && c.length_form_q == LengthForm::none &&
                                c.length_form_k == LengthForm::none;
        if constexpr (std::is_same_v<Args, FwdArgs>)
            if (from_shape) return std::make_unique<AttentionData<Args>>(c, flavour, tile_rows);
        return allocate(c, flavour);
    }
    CaseBytes bytes(const Case& c, Fp8Flavour flavour, int threads) const override {
        return attention_bytes(c, flavour, threads, tensor_bytes<Args>(c, flavour));
    }
    double flops(const Case& c) const override { return attention_flops(c); }

  private:
    KernelFamily stage_;
};

} // namespace fmha::harness
