#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/data/role.hpp"

#include <algorithm>
#include <array>

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
using EntryNumber = std::int64_t (*)(const EntryGeometry&);
void fill_entries(const DataSource& source, GuardedTensor& tensor, bool cumulative, EntryNumber value);

inline bool always(const Case&) {
    return true;
}
inline bool is_group(const Case& c) {
    return c.mode == Mode::group;
}
template <LengthForm Case::*form, LengthForm wanted>
bool gives(const Case& c) {
    return c.*form == wanted || c.*form == LengthForm::both;
}

/// `batch + extra` whole numbers that follow from the case.
template <std::int64_t extra>
TensorLayout layout_numbers(const Case& c, const Geometry&) {
    return array_layout(ElementType::int32, c.batch + extra);
}
template <std::int64_t extra>
void all_numbers(const DataSource& source, const RowVisit& visit) {
    visit({0, 0, 0, source.c.batch + extra});
}

/// Lengths or offsets of entries: `batch` values, or `batch + 1` of which each adds `member` to the one before.
template <class Args, const std::int32_t* LengthArrays::*argument, bool cumulative,
          std::int64_t EntryGeometry::*member>
constexpr Role<Args> lengths_role(std::string_view name, bool (*present)(const Case&)) {
    constexpr std::int64_t extra = cumulative ? 1 : 0;
    return {.name = name,
            .flow = Flow::in,
            .present = present,
            .layout = layout_numbers<extra>,
            .fill =
                [](const DataSource& source, GuardedTensor& tensor) {
                    fill_entries(source, tensor, cumulative,
                                 [](const EntryGeometry& entry) { return entry.*member; });
                },
            .logical = all_numbers<extra>,
            .bind =
                [](Args& args, const GuardedTensor& tensor) {
                    args.lengths.*argument = static_cast<const std::int32_t*>(tensor.view().data);
                },
            .exchanged = false};
}

/// The lengths of forward and backward, in every form (G-1 to G-4).
template <class Args>
constexpr std::array<Role<Args>, 6> length_roles{
    lengths_role<Args, &LengthArrays::seqstart_q, true, &EntryGeometry::physical_q>("seqstart_q", is_group),
    lengths_role<Args, &LengthArrays::seqstart_k, true, &EntryGeometry::physical_k>("seqstart_k", is_group),
    lengths_role<Args, &LengthArrays::seqlen_q, false, &EntryGeometry::seqlen_q>(
        "seqlen_q", gives<&Case::length_form_q, LengthForm::seqlen>),
    lengths_role<Args, &LengthArrays::seqlen_k, false, &EntryGeometry::seqlen_k>(
        "seqlen_k", gives<&Case::length_form_k, LengthForm::seqlen>),
    lengths_role<Args, &LengthArrays::cu_seqlen_q, true, &EntryGeometry::seqlen_q>(
        "cu_seqlen_q", gives<&Case::length_form_q, LengthForm::cu_seqlen>),
    lengths_role<Args, &LengthArrays::cu_seqlen_k, true, &EntryGeometry::seqlen_k>(
        "cu_seqlen_k", gives<&Case::length_form_k, LengthForm::cu_seqlen>)};

template <class Args>
constexpr std::array<Role<Args>, 2> slope_and_sink_roles{{
    {"alibi_slopes", Flow::in, [](const Case& c) { return c.bias == BiasType::alibi; }, layout_alibi_slopes,
     fill_alibi_slopes, rows_of_alibi_slopes,
     [](Args& args, const GuardedTensor& tensor) {
         args.score.alibi_slopes = static_cast<const float*>(tensor.view().data);
     }},
    {"sink_logits", Flow::in, [](const Case& c) { return c.sink_logits != SinkLogits::none; },
     layout_sink_logits, fill_sink_logits, rows_of_sink_logits,
     [](Args& args, const GuardedTensor& tensor) {
         args.score.sink_logit = static_cast<const float*>(tensor.view().data);
     }},
}};

/// O and LSE of an attention that stores them by itself.
template <class Args>
constexpr std::array<Role<Args>, 2> output_roles{{
    {"o", Flow::out, always, layout_o, nullptr, rows_of_o,
     [](Args& args, const GuardedTensor& tensor) { args.o = tensor.view(); }},
    {"lse", Flow::out, [](const Case& c) { return c.lse; }, layout_lse, nullptr, rows_of_lse,
     [](Args& args, const GuardedTensor& tensor) { args.lse = tensor.view(); }},
}};

/// One table of several.
template <class Args, std::size_t... counts>
constexpr auto joined(const std::array<Role<Args>, counts>&... tables) {
    std::array<Role<Args>, (counts + ...)> all{};
    auto next = all.begin();
    (..., (next = std::copy(tables.begin(), tables.end(), next)));
    return all;
}

/// Mask, scales and dropout of the case.
MaskArgs mask_args(const Case& c);
Shape shape_args(const DataSource& source);
ScoreArgs score_args(const Case& c);
DropoutArgs dropout_args(const Case& c);

} // namespace fmha::harness::roles
