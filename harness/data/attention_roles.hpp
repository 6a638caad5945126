#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/data/role.hpp"

/// Lines of the tables that the attention families share.
namespace fmha::harness::roles {

TensorLayout layout_q(const Case& c, const Geometry& g);
TensorLayout layout_k(const Case& c, const Geometry& g);
TensorLayout layout_v(const Case& c, const Geometry& g);
TensorLayout layout_o(const Case& c, const Geometry& g);
TensorLayout layout_lse(const Case& c, const Geometry& g);
TensorLayout layout_bias(const Case& c, const Geometry& g);
TensorLayout layout_randval(const Case& c, const Geometry& g);
TensorLayout layout_q_descale(const Case& c, const Geometry& g);
TensorLayout layout_k_descale(const Case& c, const Geometry& g);
TensorLayout layout_v_descale(const Case& c, const Geometry& g);
TensorLayout layout_alibi_slopes(const Case& c, const Geometry& g);
TensorLayout layout_sink_logits(const Case& c, const Geometry& g);

void fill_q(const DataSource& source, GuardedTensor& tensor);
void fill_k(const DataSource& source, GuardedTensor& tensor);
void fill_v(const DataSource& source, GuardedTensor& tensor);
void fill_bias(const DataSource& source, GuardedTensor& tensor);
void fill_q_descale(const DataSource& source, GuardedTensor& tensor);
void fill_k_descale(const DataSource& source, GuardedTensor& tensor);
void fill_v_descale(const DataSource& source, GuardedTensor& tensor);
void fill_alibi_slopes(const DataSource& source, GuardedTensor& tensor);
void fill_sink_logits(const DataSource& source, GuardedTensor& tensor);

/// Rows of Q, of K, of V; rows of O, LSE and random bytes, without entries that min_seqlen_q skips.
void rows_of_q(const DataSource& source, const RowVisit& visit);
void rows_of_k(const DataSource& source, const RowVisit& visit);
void rows_of_v(const DataSource& source, const RowVisit& visit);
void rows_of_o(const DataSource& source, const RowVisit& visit);
void rows_of_lse(const DataSource& source, const RowVisit& visit);
void rows_of_bias(const DataSource& source, const RowVisit& visit);
void rows_of_randval(const DataSource& source, const RowVisit& visit);
void rows_of_q_descale(const DataSource& source, const RowVisit& visit);
void rows_of_k_descale(const DataSource& source, const RowVisit& visit);
void rows_of_v_descale(const DataSource& source, const RowVisit& visit);
void rows_of_alibi_slopes(const DataSource& source, const RowVisit& visit);
void rows_of_sink_logits(const DataSource& source, const RowVisit& visit);

/// Which tensor of a case a row or a descale belongs to, as FwdFill numbers them.
enum Stream : int { stream_q = 0, stream_k = 1, stream_v = 2 };
/// A row of the real numbers of one tensor: of entry b, head h and position i, stored as row `row` of batch index `slot`.
struct StoredRow {
    std::int64_t b = 0, h = 0, i = 0, slot = 0, row = 0;
};
/// Stores `values` divided by their descale, on the grid of the type. Changes them.
void encode_row(const DataSource& source, GuardedTensor& tensor, Stream stream, const StoredRow& at,
                std::span<double> values);

/// An array of one number an entry, or of one more: `value(entry)` for each, after a 0 when `cumulative`.
using EntryNumber = std::int64_t (*)(const Entry&);
void fill_entries(const DataSource& source, GuardedTensor& tensor, bool cumulative, EntryNumber value);

/// Mask, scales and dropout of the case.
MaskArgs mask_args(const Case& c);
Shape shape_args(const DataSource& source);
ScoreArgs score_args(const Case& c);
DropoutArgs dropout_args(const Case& c);

} // namespace fmha::harness::roles
