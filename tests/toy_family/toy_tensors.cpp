#include "dispatcher/types/args/toy.hpp"
#include "harness/data/attention_roles.hpp"

namespace fmha::harness {
namespace {

using namespace roles;
using Tensor = GuardedTensor;

TensorLayout layout_result(const Case& c, const Geometry& g) {
    return StrideMaker(c).make(g.types.o, g.stored_batch, c.nhead_q, g.rows_q, c.hdim_q,
                               c.operm == Layout::bshd);
}

constexpr std::array<Role<ToyArgs>, 2> own{{
    {"q", Flow::in, always, layout_q, fill_q, rows_of_q,
     [](ToyArgs& args, const Tensor& tensor) { args.q = tensor.view(); }},
    {"o", Flow::out, always, layout_result, nullptr, rows_of_q,
     [](ToyArgs& args, const Tensor& tensor) { args.o = tensor.view(); }},
}};

constexpr auto table = joined(own, length_roles<ToyArgs>);

} // namespace

template <>
std::span<const Role<ToyArgs>> roles_of<ToyArgs>() {
    return table;
}

template <>
void bind_values<ToyArgs>(const DataSource& source, ToyArgs& args) {
    args.shape = shape_args(source);
}

} // namespace fmha::harness
