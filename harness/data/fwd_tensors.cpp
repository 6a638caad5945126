#include "harness/data/fwd_tensors.hpp"

#include "harness/data/attention_roles.hpp"

#include <array>

namespace fmha::harness {
namespace {

using namespace roles;
using Tensor = GuardedTensor;
using Line = Role<FwdArgs>;

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
template <const std::int32_t* QuantArgs::*argument, std::int64_t EntryGeometry::*member>
constexpr Line block_starts_role(std::string_view name) {
    return {.name = name,
            .flow = Flow::in,
            .present = is_group,
            .layout = layout_numbers<0>,
            .fill =
                [](const DataSource& source, Tensor& tensor) {
                    fill_entries(source, tensor, false,
                                 [](const EntryGeometry& entry) { return entry.*member; });
                },
            .logical = all_numbers<0>,
            .bind =
                [](FwdArgs& args, const Tensor& tensor) {
                    args.quant.*argument = static_cast<const std::int32_t*>(tensor.view().data);
                },
            .exchanged = false};
}

constexpr std::array<Line, 10> tensors{{
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
}};
constexpr std::array<Line, 2> block_starts{
    block_starts_role<&QuantArgs::block_scale_seqstart_q, &EntryGeometry::block_start_q>(
        "block_scale_seqstart_q"),
    block_starts_role<&QuantArgs::block_scale_seqstart_k, &EntryGeometry::block_start_k>(
        "block_scale_seqstart_k")};

constexpr auto table = joined(tensors, length_roles<FwdArgs>, block_starts, slope_and_sink_roles<FwdArgs>);

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
