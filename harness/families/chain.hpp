#pragma once

#include "harness/data/cache_roles.hpp"
#include "harness/families/append_expectation.hpp"
#include "harness/families/attention_expectation.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

/// Chains over a cache: append-KV before attention, a prompt in chunks, its last rows alone (cases/README.md).
namespace fmha::harness {

/// The call that puts the last keys of every entry into the cache of `attention`, a case that appends, and with RoPE rotates them and
/// its queries.
template <class Args>
AppendKvArgs append_before(const FamilyTensors<Args>& tensors) {
    const Case& c = tensors.of_case();
    const Args attention = tensors.args();
    AppendKvArgs append;
    append.shape = attention.shape;
    append.shape.mode = Mode::batch;
    append.shape.seqlen_q = append.shape.max_seqlen_q = 0;
    append.shape.seqlen_k = room_of(c);
    append.seqlen_knew = c.chain.appended;
    append.k = attention.k;
    append.v = attention.v;
    append.k_new = tensors.tensor("k_new").view();
    append.v_new = tensors.tensor("v_new").view();
    append.lengths.seqlen_k = roles::array_of(tensors.tensor("cached_lengths"));
    append.place = attention.place;
    append.place.layout = KvLayout::unset;
    append.place.lookup = KvLookup::unset;
    if (!rotates(c)) return append;
    append.shape.seqlen_q = append.shape.max_seqlen_q = attention.shape.seqlen_q;
    append.q = attention.q;
    append.has_mask = c.mask != MaskType::no_mask;
    append.rope = {c.append.rope, rotary_dim_of(c), tensors.tensor("cos").view(),
                   tensors.tensor("sin").view()};
    return append;
}

/// The problem of that call, where `attention` is the problem of a case that appends.
Problem append_before(const Problem& attention, const Case& c);

/// Call number n of `calls_of`: some query rows of every entry, over the keys up to what the last of them sees.
template <class Args>
Args call_of(const FamilyTensors<Args>& tensors, std::size_t n) {
    const Case& c = tensors.of_case();
    const RowsOfCall rows = calls_of(c)[n];
    Args call = tensors.args();
    const auto forward = [&](TensorView& view) {
        if (view.present())
            view.data =
                static_cast<char*>(view.data) + element_bytes(view.type, rows.first * view.row_stride);
    };
    for (TensorView* const view : {&call.q, &call.bias, &call.o, &call.lse}) forward(*view);
    if constexpr (requires { call.partials; }) {
        forward(call.partials.o_acc);
        forward(call.partials.lse_acc);
    }
    const std::int32_t* const lengths =
        roles::array_of(tensors.tensor("call_lengths")) + 2 * static_cast<std::int64_t>(n) * c.batch;
    call.shape.seqlen_q = call.shape.max_seqlen_q = rows.count;
    if (c.mode == Mode::group) call.lengths.seqlen_q = lengths;
    if (c.chain.chunk_rows > 0 && rows_count_from_last_key(c)) call.lengths.seqlen_k = lengths + c.batch;
    return call;
}

/// The launches of the planned kernel: all rows of the case, or its last ones.
template <class Args>
Args planned_call(const FamilyTensors<Args>& tensors) {
    return tensors.of_case().chain.last_rows > 0 ? call_of(tensors, 0) : tensors.args();
}

/// The calls of a case that is divided into chunks.
template <class Args>
std::vector<Invocation> chunks(const FamilyTensors<Args>& tensors) {
    std::vector<Invocation> calls;
    if (tensors.of_case().chain.chunk_rows == 0) return calls;
    for (std::size_t n = 0; n < calls_of(tensors.of_case()).size(); ++n)
        calls.emplace_back(call_of(tensors, n));
    return calls;
}

/// Whether `stage` of a case that appends may write the tensor `name`: its cache, and queries that are rotated.
bool appends_to(KernelFamily stage, std::string_view name);

/// Distance of an oracle on a call's last rows from the other one on the rows of the whole, in units of the agreement bound.
double call_disagreement(const reference::AttentionArgs& call, const reference::AttentionArgs& whole,
                         std::int64_t first_row, int threads);

/// The memory of the appended keys, and of rotated queries, holds the results of the reference, until this goes; then its former content.
class StoredKeys {
  public:
    StoredKeys(const AppendKvArgs& args, const reference::AppendedRows& rows);
    StoredKeys(const StoredKeys&) = delete;
    StoredKeys& operator=(const StoredKeys&) = delete;
    ~StoredKeys();

  private:
    AppendKvArgs args_;
    const reference::AppendedRows& rows_;
    std::vector<std::uint32_t> before_;
};

/// The reference of a case that appends before it attends: attention is judged on the keys that append-KV's kernel stored.
class ChainedExpectation final : public CaseExpectation {
  public:
    using Attention = std::function<std::unique_ptr<CaseExpectation>()>;

    /// `attention` makes the reference of the other stages from the memory as it is then; `first` of them runs first.
    ChainedExpectation(const AppendKvArgs& append, KernelFamily first, Attention attention);

    double oracle_disagreement() override { return disagreement_; }
    StageVerdict judge(KernelFamily stage, const Outputs& outputs, const Numerics& numerics,
                       InputOrigin inputs) override;

  private:
    AppendExpectation append_;
    KernelFamily first_;
    Attention make_;
    std::unique_ptr<CaseExpectation> attention_; ///< of the memory at the first stage that was judged last
    double disagreement_ = 0.0;
};

/// The reference of a call for the last rows of a case, which must agree with the other oracle's on the rows of the whole.
class LastRowsExpectation final : public CaseExpectation {
  public:
    LastRowsExpectation(std::unique_ptr<CaseExpectation> call, std::function<double()> disagreement)
        : call_(std::move(call)), disagreement_(std::move(disagreement)) {}

    double oracle_disagreement() override { return std::max(call_->oracle_disagreement(), disagreement_()); }
    StageVerdict judge(KernelFamily stage, const Outputs& outputs, const Numerics& numerics,
                       InputOrigin inputs) override {
        return call_->judge(stage, outputs, numerics, inputs);
    }

  private:
    std::unique_ptr<CaseExpectation> call_;
    std::function<double()> disagreement_;
};

/// The expectation of a case over a cache, around that of its attention. `first`: the first stage of attention.
template <class Args>
std::unique_ptr<CaseExpectation> chained(const FamilyTensors<Args>& tensors, KernelFamily first, int threads,
                                         ChainedExpectation::Attention attention) {
    const Case& c = tensors.of_case();
    if (appends(c))
        return std::make_unique<ChainedExpectation>(append_before(tensors), first, std::move(attention));
    if (c.chain.last_rows == 0) return attention();
    return std::make_unique<LastRowsExpectation>(attention(), [&tensors, threads] {
        if (tensors.of_case().fill == Fill::huge) return 0.0;
        return call_disagreement(reference::attention_of(planned_call(tensors)),
                                 reference::attention_of(tensors.args()), first_row(tensors.of_case()),
                                 threads);
    });
}

} // namespace fmha::harness
