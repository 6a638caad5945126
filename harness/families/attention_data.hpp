#pragma once

#include "dispatcher/types/check_cache.hpp"
#include "harness/families/attention_expectation.hpp"
#include "harness/families/chain.hpp"
#include "harness/families/few_rows.hpp"
#include "harness/gates/append_gates.hpp"
#include "harness/gates/attention_outputs.hpp"

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

/// The shared parts of families that compute attention in one stage: forward, paged-KV, batch prefill.
namespace fmha::harness {

/// Writes O times scale_o and LSE of the rows that the case judges; other rows are NaN. Random bytes at positions that the
/// mask hides are 0. `threads`: of the reference; 0 = all. Returns the number of rows.
std::size_t write_attention_reference(const DataSource& source, const TensorSet& set,
                                      const reference::AttentionArgs& args,
                                      const std::filesystem::path& folder, int threads);

/// The same of a case over a cache, after the caches that its append-KV leaves.
template <class Args>
std::size_t write_chained_reference(const FamilyTensors<Args>& tensors, const std::filesystem::path& folder,
                                    int threads) {
    const auto write = [&] {
        return write_attention_reference(tensors.source(), tensors.set(),
                                         reference::attention_of(planned_call(tensors)), folder, threads);
    };
    if (!appends(tensors.of_case())) return write();
    const AppendKvArgs append = append_before(tensors);
    const reference::AppendedRows rows = reference::append(append);
    const std::size_t appended = write_appended(append, tensors.set(), folder);
    const StoredKeys stored(append, rows);
    return appended + write();
}

/// `tensors`: bytes of the case's tensors, to which the caller adds those of its files. `rows`: of the outputs that are copied and judged, at most; absent = those of the case.
/// `results`: of the reference that are held together.
CaseBytes attention_bytes(const Case& c, Fp8Flavour flavour, int threads, std::int64_t tensors,
                          std::optional<std::int64_t> rows = {}, std::int64_t results = 1);

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
    AttentionData(const Case& c, Fp8Flavour flavour, KernelFamily stage)
        : tensors_(c, flavour), stage_(stage) {
        if constexpr (over_cache) require_cache(tensors_);
    }

    /// Of few rows. The lengths of the case must follow from its shape.
    AttentionData(const Case& c, Fp8Flavour flavour, const RowTile& tile)
        : tensors_(c, flavour,
                   [&](const Args& args) {
                       few_rows_ = harness::few_rows(reference::attention_of(args), c.seed);
                       return NeededRows(few_rows_, tile, c.nhead_q / c.nhead_k);
                   }),
          stage_(KernelFamily::fwd) {}

    TensorSet& tensors() override { return tensors_.set(); }
    Invocation invocation() const override { return call(); }
    Invocation invocation_of(KernelFamily stage) const override {
        if constexpr (over_cache)
            if (stage == KernelFamily::fwd_appendkv) return append_before(tensors_);
        return invocation();
    }
    std::vector<Invocation> parts(KernelFamily) const override {
        if constexpr (over_cache)
            return chunks(tensors_);
        else
            return {};
    }
    bool writes(KernelFamily stage, std::string_view name) const override {
        return !appends(tensors_.of_case()) || appends_to(stage, name);
    }
    std::span<const reference::RowId> few_rows() const override { return few_rows_; }
    Outputs outputs(KernelFamily stage) const override {
        if constexpr (over_cache)
            if (stage == KernelFamily::fwd_appendkv) return appended_outputs(append_before(tensors_));
        return few_rows_.empty() ? attention_outputs(judged()) : attention_outputs(judged(), few_rows_);
    }
    std::unique_ptr<CaseExpectation> expectation(int threads) const override {
        if constexpr (over_cache)
            return chained(tensors_, stage_, threads, [this, threads] { return attention(threads); });
        else
            return attention(threads);
    }
    std::size_t write_reference(const std::filesystem::path& folder, int threads) const override {
        if constexpr (over_cache) return write_chained_reference(tensors_, folder, threads);
        return write_attention_reference(tensors_.source(), tensors_.set(), judged(), folder, threads);
    }

  private:
    static constexpr bool over_cache = requires(Args args) { args.place; };

    Args call() const {
        if constexpr (over_cache)
            return planned_call(tensors_);
        else
            return tensors_.args();
    }
    reference::AttentionArgs judged() const { return reference::attention_of(call()); }
    std::unique_ptr<CaseExpectation> attention(int threads) const {
        const reference::AttentionArgs args = judged();
        auto rows = few_rows_.empty() ? expected_rows(tensors_.source().c, args) : few_rows_;
        return std::make_unique<AttentionExpectation>(tensors_.source(), args, std::move(rows), threads);
    }

    std::vector<reference::RowId> few_rows_; ///< empty: all count; before the tensors, which choose them
    FamilyTensors<Args> tensors_;
    KernelFamily stage_;
};

template <class Args>
class AttentionFamily final : public Family {
  public:
    AttentionFamily(KernelFamily stage, RandomTypes random_types)
        : stage_(stage), random_types_(std::move(random_types)) {}

    std::vector<KernelFamily> stages(const Case& c) const override {
        if (appends(c)) return {KernelFamily::fwd_appendkv, stage_};
        return {stage_};
    }
    Problem problem_of(KernelFamily stage, Problem whole, const Case& c) const override {
        if (stage != stage_) return append_before(whole, c);
        return Family::problem_of(stage, whole, c);
    }
    std::unique_ptr<CaseData> allocate(const Case& c, Fp8Flavour flavour) const override {
        return std::make_unique<AttentionData<Args>>(c, flavour, stage_);
    }
    std::unique_ptr<CaseData> allocate_few_rows(const Case& c, Fp8Flavour flavour,
                                                const RowTile& tile) const override {
        if constexpr (std::is_same_v<Args, FwdArgs>)
            if (has_few_rows(c)) return std::make_unique<AttentionData<Args>>(c, flavour, tile);
        return allocate(c, flavour);
    }
    CaseBytes bytes(const Case& c, Fp8Flavour flavour, int threads) const override {
        CaseBytes bytes = attention_bytes(c, flavour, threads, tensor_bytes<Args>(c, flavour));
        bytes.files = file_bytes<Args>(c, flavour);
        return bytes;
    }
    CaseBytes bytes_of_few_rows(const Case& c, Fp8Flavour flavour, int threads) const override {
        if (!has_few_rows(c)) return bytes(c, flavour, threads);
        return attention_bytes(c, flavour, threads, tensor_bytes<Args>(c, flavour),
                               most_few_rows(c.batch, c.nhead_q));
    }
    double flops(const Case& c) const override { return attention_flops(c); }
    RandomTypes random_types() const override { return random_types_; }

  private:
    /// Whether the lengths of the case follow from its shape.
    static bool has_few_rows(const Case& c) {
        return std::is_same_v<Args, FwdArgs> && c.mode == Mode::batch &&
               c.length_form_q == LengthForm::none && c.length_form_k == LengthForm::none;
    }

    KernelFamily stage_;
    RandomTypes random_types_;
};

} // namespace fmha::harness
