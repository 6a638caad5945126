#include "harness/data/pagedkv_tensors.hpp"

#include "harness/data/cache_roles.hpp"

namespace fmha::harness {
namespace {

using namespace roles;

constexpr auto table = joined(output_roles<PagedKvArgs>, attention_roles<PagedKvArgs, always>,
                              table_roles<PagedKvArgs>, chain_roles<PagedKvArgs>);

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
