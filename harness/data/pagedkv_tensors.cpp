#include "harness/data/pagedkv_tensors.hpp"

#include "harness/data/cache_roles.hpp"

namespace fmha::harness {
namespace {

using namespace roles;

bool always(const Case&) {
    return true;
}

constexpr std::array<Role<PagedKvArgs>, 2> outputs{{
    {"o", Flow::out, always, layout_o, nullptr, rows_of_o,
     [](PagedKvArgs& args, const GuardedTensor& tensor) { args.o = tensor.view(); }},
    {"lse", Flow::out, [](const Case& c) { return c.lse; }, layout_lse, nullptr, rows_of_lse,
     [](PagedKvArgs& args, const GuardedTensor& tensor) { args.lse = tensor.view(); }},
}};

constexpr auto table = joined(outputs, attention_roles<PagedKvArgs, always>, table_roles<PagedKvArgs>);

} // namespace

template <>
std::span<const Role<PagedKvArgs>> roles_of<PagedKvArgs>() {
    return table;
}

template <>
void bind_values<PagedKvArgs>(const DataSource& source, PagedKvArgs& args) {
    bind_attention(source, args);
}

} // namespace fmha::harness
