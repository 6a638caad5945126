#include "harness/gates/outputs.hpp"

#include "dispatcher/types/error.hpp"
#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <numeric>

namespace fmha::harness {
namespace {

/// Bits for a person: a number where it tells more than a code does.
std::string shown(ElementType type, Axis columns, std::uint32_t code) {
    if (type == ElementType::uint8) return fmt::format("{}", code);
    if (columns == Axis::none && type == ElementType::fp32)
        return fmt::format("{}", std::bit_cast<float>(code));
    return fmt::format("{:#x}", code);
}

} // namespace

OutputRows::OutputRows(Axis axis, std::vector<reference::RowId> ids) : axis_(axis), ids_(std::move(ids)) {
    if (!std::ranges::is_sorted(ids_, std::ranges::less_equal{}))
        throw Error("the rows of an output are not in ascending order");
}

std::int64_t OutputRows::index(const reference::RowId& id) const {
    const auto at = std::ranges::lower_bound(ids_, id);
    if (at == ids_.end() || *at != id) throw Error("there is no output at " + place(id));
    return at - ids_.begin();
}

std::string OutputRows::place(const reference::RowId& id) const {
    if (axis_ == Axis::head) return fmt::format("head {}", id.h);
    return fmt::format("b{} h{} {} {}", id.b, id.h, one_of(axis_), id.i);
}

Outputs::Tensor::Tensor(std::string name, ElementType type, std::shared_ptr<const OutputRows> rows,
                        Axis columns)
    : name_(std::move(name)), type_(type), rows_(std::move(rows)), column_axis_(columns) {
    begin_.reserve(rows_->ids().size() + 1);
}

double Outputs::Tensor::value(std::int64_t row, std::int64_t c) const {
    return reference::decode(type_, code(row, c));
}

bool Outputs::Tensor::all_zero() const {
    const std::uint32_t sign = 1U << static_cast<unsigned>(element_bits(type_) - 1);
    // The only negative zero that is not one: FNUZ uses its code for NaN.
    const bool fnuz = type_ == ElementType::fp8_fnuz || type_ == ElementType::bf8_fnuz;
    for (std::int64_t e = 0; e < begin_.back(); ++e) {
        const std::uint32_t bits = load_code(codes_.data(), type_, e);
        if (bits != 0 && (bits != sign || fnuz)) return false;
    }
    return true;
}

Outputs::Tensor Outputs::Tensor::reordered(std::shared_ptr<const OutputRows> rows,
                                           const std::vector<std::int64_t>& order) const {
    Tensor tensor(name_, type_, std::move(rows), column_axis_);
    for (const std::int64_t row : order)
        tensor.append_row(columns(row), [&](std::int64_t c) { return code(row, c); });
    return tensor;
}

std::string Outputs::Tensor::first_difference(const Tensor& other) const {
    if (begin_ != other.begin_ || rows_->ids() != other.rows_->ids())
        return fmt::format("{}: the shapes differ", name_);
    if (codes_ == other.codes_) return {};
    for (std::int64_t row = 0; row < rows_->size(); ++row)
        for (std::int64_t c = 0; c < columns(row); ++c) {
            if (code(row, c) == other.code(row, c)) continue;
            const std::string column =
                column_axis_ == Axis::none ? "" : fmt::format(" {} {}", one_of(column_axis_), c);
            return fmt::format("{} at {}{}: {} and {}", name_, rows_->place(rows_->id(row)), column,
                               shown(type_, column_axis_, code(row, c)),
                               shown(type_, column_axis_, other.code(row, c)));
        }
    return {};
}

Outputs
Outputs::renamed(const std::function<reference::RowId(const reference::RowId&, std::int64_t)>& name) const {
    Outputs outputs;
    for (const Tensor& tensor : tensors_) {
        const std::vector<reference::RowId>& before = tensor.rows().ids();
        std::vector<reference::RowId> ids(before.size());
        std::ranges::transform(before, ids.begin(),
                               [&](const reference::RowId& id) { return name(id, tensor.heads()); });
        std::vector<std::int64_t> order(ids.size());
        std::iota(order.begin(), order.end(), 0);
        std::ranges::sort(order, {}, [&](std::int64_t row) { return ids[static_cast<std::size_t>(row)]; });
        std::ranges::sort(ids);
        outputs.tensors_.push_back(tensor.reordered(
            std::make_shared<const OutputRows>(tensor.rows().axis(), std::move(ids)), order));
    }
    return outputs;
}

Outputs::Tensor& Outputs::add(std::string name, ElementType type, std::shared_ptr<const OutputRows> rows,
                              Axis columns) {
    return tensors_.emplace_back(std::move(name), type, std::move(rows), columns);
}

void Outputs::remove(std::string_view name) {
    std::erase_if(tensors_, [&](const Tensor& tensor) { return tensor.name() == name; });
}

const Outputs::Tensor* Outputs::find(std::string_view name) const {
    const auto at = std::ranges::find(tensors_, name, &Tensor::name);
    return at == tensors_.end() ? nullptr : &*at;
}

const Outputs::Tensor& Outputs::at(std::string_view name) const {
    if (const Tensor* tensor = find(name)) return *tensor;
    throw Error(fmt::format("there is no output {}", name));
}

std::string Outputs::first_difference(const Outputs& other,
                                      const std::function<bool(const std::string&)>& compared) const {
    if (tensors_.size() != other.tensors_.size()) return "the outputs differ in number";
    for (std::size_t n = 0; n < tensors_.size(); ++n) {
        if (!compared(tensors_[n].name())) continue;
        if (auto difference = tensors_[n].first_difference(other.tensors_[n]); !difference.empty())
            return difference;
    }
    return {};
}

} // namespace fmha::harness
