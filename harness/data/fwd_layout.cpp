#include "harness/data/fwd_layout.hpp"

#include "dispatcher/types/error.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace fmha::harness {
namespace {

std::int64_t pick(const std::vector<std::int64_t>& lengths, std::int64_t entry, std::int64_t batch,
                  const char* what) {
    const auto n = static_cast<std::int64_t>(lengths.size());
    if (n != 1 && n != batch)
        throw InputError(fmt::format("{} has {} values; allowed: 1 or the batch, {}", what, n, batch));
    return lengths[static_cast<std::size_t>(n == 1 ? 0 : entry)];
}

constexpr std::int64_t blocks(std::int64_t length, std::int64_t size) {
    return (length + size - 1) / size;
}

std::vector<Entry> make_entries(const FwdCase& c) {
    std::vector<Entry> entries;
    const auto& physical_q = c.physical_q.empty() ? c.seqlen_q : c.physical_q;
    const auto& physical_k = c.physical_k.empty() ? c.seqlen_k : c.physical_k;
    Entry next;
    std::int64_t widest_q = 0, widest_k = 0;
    for (std::int64_t b = 0; b < c.batch; ++b) {
        next.seqlen_q = pick(c.seqlen_q, b, c.batch, "seqlen_q");
        next.seqlen_k = pick(c.seqlen_k, b, c.batch, "seqlen_k");
        next.physical_q = std::max(next.seqlen_q, pick(physical_q, b, c.batch, "physical_q"));
        next.physical_k = std::max(next.seqlen_k, pick(physical_k, b, c.batch, "physical_k"));
        next.skipped = c.mode == Mode::group && c.min_seqlen_q > 0 && next.seqlen_q <= c.min_seqlen_q;
        widest_q = std::max(widest_q, next.physical_q);
        widest_k = std::max(widest_k, next.physical_k);
        entries.push_back(next);
        if (c.mode == Mode::batch) continue;
        const std::int64_t key_block = c.qscale == QScale::mx ? 32 : c.block_scale_k;
        next.start_q += next.physical_q;
        next.start_k += next.physical_k;
        next.block_start_q += blocks(next.physical_q, c.block_scale_q);
        next.block_start_k += blocks(next.physical_k, key_block);
    }
    if (c.mode == Mode::batch)
        for (Entry& entry : entries) {
            entry.physical_q = widest_q;
            entry.physical_k = widest_k;
        }
    return entries;
}

/// Gives strides to [batch, heads, rows, cols], of which group mode has one batch.
class StrideMaker {
  public:
    StrideMaker(const FwdCase& c) : padding_(c.stride_padding), group_(c.mode == Mode::group) {}

    /// `seq_major`: [batch, rows, heads, cols] instead of [batch, heads, rows, cols] (L-3).
    TensorLayout make(ElementType type, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                      std::int64_t cols, bool seq_major) const {
        TensorLayout layout;
        layout.type = type;
        const std::int64_t inner = padded(cols, type);
        const std::int64_t outer = padded(inner * (seq_major ? heads : rows), type);
        layout.row_stride = seq_major ? outer : inner;
        layout.head_stride = seq_major ? inner : outer;
        layout.batch_stride = padded(outer * (seq_major ? rows : heads), type);
        layout.segment_elements = std::max<std::int64_t>(layout.batch_stride * batch, 1);
        if (group_) layout.batch_stride = 0;
        layout.batches = batch;
        layout.heads = heads;
        layout.rows = rows;
        layout.columns = cols;
        layout.seq_major = seq_major;
        return layout;
    }

  private:
    std::int64_t padded(std::int64_t extent, ElementType type) const {
        const std::int64_t with = extent + padding_;
        return type == ElementType::fp4 ? with + with % 2 : with;
    }
    std::int64_t padding_;
    bool group_;
};

/// [batch, heads, cols, rows]: what is a row of memory is a channel of the tensor (column-major V).
void swap_rows_and_columns(TensorLayout& layout) {
    std::swap(layout.row_stride, layout.col_stride);
    std::swap(layout.rows, layout.columns);
    layout.transposed = true;
}

void widen(const FwdCase& c, TensorLayout& layout, const char* name) {
    if (c.wide_tensor != name || c.mode == Mode::group) return;
    if (c.wide_batch_stride < layout.batch_stride)
        throw InputError(fmt::format("wide_batch_stride {} is below the {} elements of one entry of {}",
                                     c.wide_batch_stride, layout.batch_stride, name));
    layout.segments = c.batch;
    layout.segment_elements = layout.batch_stride;
    layout.segment_stride = layout.batch_stride = c.wide_batch_stride;
}

} // namespace

FwdLayout lay_out(const FwdCase& c, Fp8Flavour flavour) {
    FwdLayout layout;
    layout.entries = make_entries(c);
    layout.types = element_types(c.data_type, flavour);
    const StrideMaker strides(c);
    const bool group = c.mode == Mode::group;
    const Entry& last = layout.entries.back();
    const std::int64_t rows_q = group ? last.start_q + last.physical_q : last.physical_q;
    const std::int64_t rows_k = group ? last.start_k + last.physical_k : last.physical_k;
    for (const Entry& entry : layout.entries) {
        layout.max_seqlen_q = std::max(layout.max_seqlen_q, entry.seqlen_q);
        layout.max_seqlen_k = std::max(layout.max_seqlen_k, entry.seqlen_k);
    }
    const std::int64_t batch = group ? 1 : c.batch;
    const bool seq_major_in = c.iperm == Layout::bshd, seq_major_out = c.operm == Layout::bshd;

    layout.q = strides.make(layout.types.q, batch, c.nhead_q, rows_q, c.hdim_q, seq_major_in);
    layout.k = strides.make(layout.types.k, batch, c.nhead_k, rows_k, c.hdim_q, seq_major_in);
    if (c.v_layout == VLayout::row) {
        layout.v = strides.make(layout.types.v, batch, c.nhead_k, rows_k, c.hdim_v, seq_major_in);
    } else {
        layout.v = strides.make(layout.types.v, batch, c.nhead_k, c.hdim_v, rows_k, seq_major_in);
        swap_rows_and_columns(layout.v);
    }
    layout.o = strides.make(layout.types.o, batch, c.nhead_q, rows_q, c.hdim_v, seq_major_out);
    widen(c, layout.q, "q");
    widen(c, layout.k, "k");
    widen(c, layout.v, "v");
    widen(c, layout.o, "o");

    if (c.lse) {
        // The lengths are the contiguous axis of LSE (L-2): one column, rows one element apart.
        layout.lse = strides.make(ElementType::fp32, batch, 1, c.nhead_q, rows_q, false);
        layout.lse->head_stride = layout.lse->row_stride;
        layout.lse->row_stride = 1;
        layout.lse->heads = c.nhead_q;
        layout.lse->rows = rows_q;
        layout.lse->columns = 1;
        layout.lse->axes = 3;
    }
    const std::int64_t row_keys = group ? layout.max_seqlen_k : rows_k;
    if (c.store_randval)
        layout.randval = strides.make(ElementType::uint8, batch, c.nhead_q, rows_q, row_keys, false);
    if (c.bias == BiasType::elementwise) {
        layout.bias_batch = c.bias_rank >= 2 ? batch : 1;
        layout.bias_heads = c.bias_rank >= 1 ? c.nhead_q : 1;
        layout.bias = strides.make(layout.types.bias, layout.bias_batch, layout.bias_heads, rows_q, row_keys,
                                   seq_major_in);
        if (c.bias_rank < 2) layout.bias->batch_stride = 0;
        if (c.bias_rank < 1) layout.bias->head_stride = 0;
    }

    const std::int64_t blocks_q = group ? last.block_start_q + blocks(last.physical_q, c.block_scale_q)
                                        : blocks(rows_q, c.block_scale_q);
    const std::int64_t key_block = c.qscale == QScale::mx ? 32 : c.block_scale_k;
    const std::int64_t blocks_k =
        group ? last.block_start_k + blocks(last.physical_k, key_block) : blocks(rows_k, key_block);
    switch (c.qscale) {
    case QScale::pertensor:
        layout.q_descale = layout.k_descale = layout.v_descale =
            TensorLayout{.type = ElementType::fp32, .col_stride = 0, .segment_elements = 1, .axes = 0};
        break;
    case QScale::blockscale:
        layout.q_descale = strides.make(ElementType::fp32, batch, c.nhead_q, blocks_q, 1, false);
        layout.k_descale = strides.make(ElementType::fp32, batch, c.nhead_k, blocks_k, 1, false);
        layout.v_descale = strides.make(ElementType::fp32, batch, c.nhead_k, blocks_k, 1, false);
        layout.q_descale->axes = layout.k_descale->axes = layout.v_descale->axes = 3;
        break;
    case QScale::mx:
        layout.q_descale =
            strides.make(ElementType::e8m0, batch, c.nhead_q, rows_q, blocks(c.hdim_q, 32), false);
        layout.k_descale =
            strides.make(ElementType::e8m0, batch, c.nhead_k, rows_k, blocks(c.hdim_q, 32), false);
        // Stored [channel][key block]; the view's row is the key block.
        layout.v_descale = strides.make(ElementType::e8m0, batch, c.nhead_k, c.hdim_v, blocks_k, false);
        swap_rows_and_columns(*layout.v_descale);
        break;
    case QScale::no_scale:
    case QScale::kv_blockscale:
    case QScale::per_token_head:
        break;
    }
    return layout;
}

} // namespace fmha::harness
