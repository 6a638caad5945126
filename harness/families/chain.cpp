#include "harness/families/chain.hpp"

#include "reference/bounds.hpp"

#include <utility>

namespace fmha::harness {

bool appends_to(KernelFamily stage, std::string_view name) {
    return (name == "k" || name == "v" || name == "q") == (stage == KernelFamily::fwd_appendkv);
}

Problem append_before(const Problem& attention, const Case& c) {
    const Signature& s = attention.signature;
    Problem append;
    append.api_family = ApiFamily::fwd_appendkv;
    append.arch = attention.arch;
    append.signature.family = KernelFamily::fwd_appendkv;
    append.signature.data_type = s.data_type;
    append.signature.hdim_q = s.hdim_q;
    append.signature.hdim_v = s.hdim_v;
    append.signature.v_layout = s.v_layout;
    append.signature.use_paged_kv = s.use_paged_kv;
    append.signature.page_size = s.page_size;
    append.batch = attention.batch;
    append.nhead_q = attention.nhead_q;
    append.nhead_k = attention.nhead_k;
    append.seqlen_k = attention.seqlen_k;
    append.presence = {.seqlen_k = true,
                       .block_table = attention.presence.block_table,
                       .cache_batch_idx = attention.presence.cache_batch_idx};
    if (!rotates(c)) return append;
    append.signature.rope = c.append.rope;
    append.rotary_dim = rotary_dim_of(c);
    append.presence.rotary = true;
    append.seqlen_q = attention.seqlen_q;
    return append;
}

double call_disagreement(const reference::AttentionArgs& call, const reference::AttentionArgs& whole,
                         std::int64_t first_row, int threads) {
    const std::vector<reference::RowId> rows = reference::all_rows(call);
    std::vector<reference::RowId> same = rows;
    for (reference::RowId& row : same) row.i += first_row;
    reference::ForwardRows there =
        reference::attention(whole, same, {.companions = false, .numerics = {}, .threads = threads},
                             reference::Oracle::row_by_row);
    there.rows = rows;
    return reference::oracle_disagreement(
        reference::attention(call, rows, {.numerics = {}, .threads = threads}, reference::Oracle::matrix),
        there);
}

StoredKeys::StoredKeys(const AppendKvArgs& args, const reference::AppendedRows& rows)
    : args_(args), rows_(rows) {
    each_appended(args_, rows_,
                  [&](const TensorView& view, std::int64_t at, std::int64_t c, const auto& row) {
                      before_.push_back(load_code(view.data, view.type, at));
                      store_code(view.data, view.type, at, rows_.code_of(row, c));
                  });
}

StoredKeys::~StoredKeys() {
    std::size_t n = 0;
    each_appended(args_, rows_, [&](const TensorView& view, std::int64_t at, std::int64_t, const auto&) {
        store_code(view.data, view.type, at, before_[n++]);
    });
}

ChainedExpectation::ChainedExpectation(const AppendKvArgs& append, KernelFamily first, Attention attention)
    : append_(append), first_(first), make_(std::move(attention)) {
    const StoredKeys stored(append, append_.expected());
    disagreement_ = std::max(append_.oracle_disagreement(), make_()->oracle_disagreement());
}

StageVerdict ChainedExpectation::judge(KernelFamily stage, const Outputs& outputs, const Numerics& numerics,
                                       InputOrigin inputs) {
    if (stage == KernelFamily::fwd_appendkv) return append_.judge(stage, outputs, numerics, inputs);
    if (stage == first_ || !attention_) attention_ = make_();
    return attention_->judge(stage, outputs, numerics, inputs);
}

} // namespace fmha::harness
