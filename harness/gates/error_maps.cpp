#include "harness/gates/error_maps.hpp"

#include <algorithm>

namespace fmha::harness {
namespace {

constexpr std::int64_t most_blocks = 48;        ///< along one axis
constexpr std::int64_t most_elements = 400'000; ///< bounds the memory of a wholly wrong result

/// The smallest power of two of elements in which `extent` is at most `most_blocks` blocks, so that tiles end where blocks do.
std::int64_t block_of(std::int64_t extent) {
    std::int64_t block = 1;
    while (extent > block * most_blocks) block *= 2;
    return block;
}

std::string_view name_of(Axis axis) {
    switch (axis) {
    case Axis::none:
        return "";
    case Axis::query:
        return "query";
    case Axis::key:
        return "key";
    case Axis::head:
        return "head";
    case Axis::qk_channel:
    case Axis::v_channel:
        return "channel";
    }
    return "";
}

} // namespace

ErrorMaps::Output& ErrorMaps::output_of(const Outputs::Tensor& tensor) {
    const auto found = std::ranges::find(outputs_, tensor.name(), &Output::tensor);
    if (found != outputs_.end()) return *found;
    return outputs_.emplace_back(Output{tensor.name(), tensor.rows().axis(), tensor.column_axis(), {}});
}

void ErrorMaps::add(const Outputs::Tensor& tensor, const reference::RowId& row, std::int64_t column) {
    if (elements_ >= most_elements) return;
    auto& heads = output_of(tensor).heads;
    const auto [at, is_new] = heads.try_emplace({row.b, row.h});
    Head& head = at->second;
    if (is_new)
        for (const reference::RowId& id : tensor.rows().ids())
            if (id.b == row.b && id.h == row.h) head.rows = std::max(head.rows, id.i + 1);
    const std::int64_t columns = tensor.columns(tensor.rows().index(row));
    head.columns = std::max(head.columns, columns);
    const std::int64_t first = column < 0 ? 0 : column, last = column < 0 ? columns : column + 1;
    for (std::int64_t c = first; c < last; ++c) elements_ += head.wrong.emplace(row.i, c).second ? 1 : 0;
}

ErrorMap ErrorMaps::drawn(const Output& output, std::int64_t b, std::int64_t h, const Head& head) {
    ErrorMap map;
    map.tensor = output.tensor;
    map.b = b;
    map.h = h;
    map.row_axis = name_of(output.rows);
    map.column_axis = name_of(output.columns);
    map.rows = head.rows;
    map.columns = head.columns;
    map.block_rows = block_of(head.rows);
    map.block_columns = block_of(head.columns);
    map.wrong.assign(static_cast<std::size_t>(map.blocks_down() * map.blocks_across()), 0);
    for (const auto& [row, column] : head.wrong)
        ++map.wrong[static_cast<std::size_t>(row / map.block_rows * map.blocks_across() +
                                             column / map.block_columns)];
    return map;
}

std::vector<ErrorMap> ErrorMaps::worst() const {
    std::vector<ErrorMap> maps;
    for (const Output& output : outputs_) {
        const auto most = std::ranges::max_element(output.heads, {},
                                                   [](const auto& head) { return head.second.wrong.size(); });
        maps.push_back(drawn(output, most->first.first, most->first.second, most->second));
        maps.back().complete = elements_ < most_elements;
    }
    return maps;
}

} // namespace fmha::harness
