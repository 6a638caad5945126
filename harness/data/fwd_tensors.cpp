#include "harness/data/fwd_tensors.hpp"

#include "harness/data/attention_roles.hpp"

#include <array>

namespace fmha::harness {
namespace {

using namespace roles;
using Tensor = GuardedTensor;
using Line = Role<FwdArgs>;

bool always(const Case&) {
    return true;
}
bool is_group(const Case& c) {
    return c.mode == Mode::group;
}
bool gives(LengthForm form, LengthForm wanted) {
    return form == wanted || form == LengthForm::both;
}
bool has_descales(const Case& c) {
    return c.qscale == QScale::pertensor || c.qscale == QScale::blockscale || c.qscale == QScale::mx;
}

template <TensorView FwdArgs::*member>
void bind(FwdArgs& args, const Tensor& tensor) {
    args.*member = tensor.view();
}
template <TensorView QuantArgs::*member>
void bind_descale(FwdArgs& args, const Tensor& tensor) {
    args.quant.*member = tensor.view();
}
template <const std::int32_t* LengthArrays::*member>
void bind_lengths(FwdArgs& args, const Tensor& tensor) {
    args.lengths.*member = static_cast<const std::int32_t*>(tensor.view().data);
}

template <std::int64_t extra>
TensorLayout entries_layout(const Case& c, const Geometry&) {
    return array_layout(ElementType::int32, c.batch + extra);
}
template <std::int64_t extra>
void all_entries(const DataSource& source, const RowVisit& visit) {
    visit({0, 0, 0, source.c.batch + extra});
}
template <bool cumulative, std::int64_t Entry::*member>
void entries(const DataSource& source, Tensor& tensor) {
    fill_entries(source, tensor, cumulative, [](const Entry& entry) { return entry.*member; });
}

/// Lengths and offsets of entries: `batch + 1` values of which each adds `member`, or `batch` values.
template <const std::int32_t* LengthArrays::*argument, bool cumulative, std::int64_t Entry::*member>
constexpr Line lengths_role(std::string_view name, bool (*present)(const Case&)) {
    constexpr std::int64_t extra = cumulative ? 1 : 0;
    return {.name = name,
            .flow = Flow::in,
            .present = present,
            .layout = entries_layout<extra>,
            .fill = entries<cumulative, member>,
            .logical = all_entries<extra>,
            .bind = bind_lengths<argument>,
            .exchanged = false};
}

template <const std::int32_t* QuantArgs::*argument, std::int64_t Entry::*member>
constexpr Line block_starts_role(std::string_view name) {
    return {.name = name,
            .flow = Flow::in,
            .present = is_group,
            .layout = entries_layout<0>,
            .fill = entries<false, member>,
            .logical = all_entries<0>,
            .bind =
                [](FwdArgs& args, const Tensor& tensor) {
                    args.quant.*argument = static_cast<const std::int32_t*>(tensor.view().data);
                },
            .exchanged = false};
}

constexpr std::array<Line, 20> table{{
    {"q", Flow::in, always, layout_q, fill_q, rows_of_q, bind<&FwdArgs::q>},
    {"k", Flow::in, always, layout_k, fill_k, rows_of_k, bind<&FwdArgs::k>},
    {"v", Flow::in, always, layout_v, fill_v, rows_of_v, bind<&FwdArgs::v>},
    {"o", Flow::out, always, layout_o, nullptr, rows_of_o, bind<&FwdArgs::o>},
    {"lse", Flow::out, [](const Case& c) { return c.lse; }, layout_lse, nullptr, rows_of_lse,
     bind<&FwdArgs::lse>},
    {"bias", Flow::in, [](const Case& c) { return c.bias == BiasType::elementwise; }, layout_bias, fill_bias,
     rows_of_bias, bind<&FwdArgs::bias>},
    {"randval", Flow::out, [](const Case& c) { return c.store_randval; }, layout_randval, nullptr,
     rows_of_randval, bind<&FwdArgs::randval>},
    {"q_descale", Flow::in, has_descales, layout_q_descale, fill_q_descale, rows_of_q_descale,
     bind_descale<&QuantArgs::q_descale>},
    {"k_descale", Flow::in, has_descales, layout_k_descale, fill_k_descale, rows_of_k_descale,
     bind_descale<&QuantArgs::k_descale>},
    {"v_descale", Flow::in, has_descales, layout_v_descale, fill_v_descale, rows_of_v_descale,
     bind_descale<&QuantArgs::v_descale>},
    lengths_role<&LengthArrays::seqstart_q, true, &Entry::physical_q>("seqstart_q", is_group),
    lengths_role<&LengthArrays::seqstart_k, true, &Entry::physical_k>("seqstart_k", is_group),
    lengths_role<&LengthArrays::seqlen_q, false, &Entry::seqlen_q>(
        "seqlen_q", [](const Case& c) { return gives(c.length_form_q, LengthForm::seqlen); }),
    lengths_role<&LengthArrays::seqlen_k, false, &Entry::seqlen_k>(
        "seqlen_k", [](const Case& c) { return gives(c.length_form_k, LengthForm::seqlen); }),
    lengths_role<&LengthArrays::cu_seqlen_q, true, &Entry::seqlen_q>(
        "cu_seqlen_q", [](const Case& c) { return gives(c.length_form_q, LengthForm::cu_seqlen); }),
    lengths_role<&LengthArrays::cu_seqlen_k, true, &Entry::seqlen_k>(
        "cu_seqlen_k", [](const Case& c) { return gives(c.length_form_k, LengthForm::cu_seqlen); }),
    block_starts_role<&QuantArgs::block_scale_seqstart_q, &Entry::block_start_q>("block_scale_seqstart_q"),
    block_starts_role<&QuantArgs::block_scale_seqstart_k, &Entry::block_start_k>("block_scale_seqstart_k"),
    {"alibi_slopes", Flow::in, [](const Case& c) { return c.bias == BiasType::alibi; }, layout_alibi_slopes,
     fill_alibi_slopes, rows_of_alibi_slopes,
     [](FwdArgs& args, const Tensor& tensor) {
         args.score.alibi_slopes = static_cast<const float*>(tensor.view().data);
     }},
    {"sink_logits", Flow::in, [](const Case& c) { return c.sink_logits != SinkLogits::none; },
     layout_sink_logits, fill_sink_logits, rows_of_sink_logits,
     [](FwdArgs& args, const Tensor& tensor) {
         args.score.sink_logit = static_cast<const float*>(tensor.view().data);
     }},
}};

} // namespace

template <>
std::span<const Role<FwdArgs>> roles_of<FwdArgs>() {
    return table;
}

template <>
void bind_values<FwdArgs>(const DataSource& source, FwdArgs& args) {
    const Case& c = source.c;
    args.shape = shape_args(source);
    args.mask = mask_args(c);
    args.score = score_args(c);
    args.dropout = dropout_args(c);
    args.quant.qscale = c.qscale;
    args.quant.block_scale_size_q = c.block_scale_q;
    args.quant.block_scale_size_k = c.block_scale_k;
}

} // namespace fmha::harness
