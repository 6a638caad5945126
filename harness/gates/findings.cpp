#include "harness/gates/findings.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/data/infinity.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

namespace fmha::harness {
namespace {

constexpr std::size_t most_worst = 10;
constexpr std::size_t most_wrong =
    200'000; ///< enough for every pattern; bounds the memory of a wholly wrong result

double excess(const Deviation& deviation) {
    const double ratio = std::abs(deviation.got - deviation.expected) / deviation.limit;
    return std::isnan(ratio) ? infinity : ratio;
}

} // namespace

std::int64_t median(std::span<const std::int64_t> values) {
    if (values.empty()) return 0;
    std::vector<std::int64_t> sorted(values.begin(), values.end());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
}

void keep_worst(std::vector<Deviation>& deviations) {
    std::ranges::stable_sort(deviations, std::ranges::greater(), excess);
    if (deviations.size() > most_worst) deviations.resize(most_worst);
}

Findings::Findings(std::vector<RowSpace> spaces) {
    for (RowSpace& space : spaces) {
        Group group;
        group.space = std::move(space);
        groups_.push_back(std::move(group));
    }
}

Findings::Group& Findings::group_of(Axis axis) {
    const auto at =
        std::ranges::find_if(groups_, [axis](const Group& group) { return group.space.axis == axis; });
    if (at == groups_.end()) throw Error("an output has rows of which the gates know nothing");
    return *at;
}

void Findings::element(const Outputs::Tensor& tensor, const reference::RowId& row, std::int64_t column,
                       double got, double expected, double limit, double ratio) {
    if (!(ratio <= 1.0)) {
        maps_.add(tensor, row, column);
        count(tensor, row, column, ratio);
    }
    if (ranked_.size() == most_worst && ratio <= ranked_.back().ratio) return;
    const Ranked entry{ratio, {tensor.name(), row.b, row.h, row.i, column, got, expected, limit}};
    const auto at = std::upper_bound(ranked_.begin(), ranked_.end(), ratio,
                                     [](double value, const Ranked& other) { return value > other.ratio; });
    ranked_.insert(at, entry);
    if (ranked_.size() > most_worst) ranked_.pop_back();
}

void Findings::wrong(const Outputs::Tensor& tensor, const reference::RowId& row, std::int64_t column) {
    maps_.add(tensor, row, column);
    count(tensor, row, column, std::numeric_limits<double>::infinity());
}

void Findings::wrong_row(const Outputs::Tensor& tensor, const reference::RowId& row,
                         const std::vector<std::int64_t>& columns) {
    for (const std::int64_t column : columns) maps_.add(tensor, row, column);
    count(tensor, row, -1, std::numeric_limits<double>::infinity());
}

void Findings::count(const Outputs::Tensor& tensor, const reference::RowId& row, std::int64_t column,
                     double ratio) {
    Group& group = group_of(tensor.rows().axis());
    const RowSpace::Facts facts = group.space.facts(row);
    auto& list = facts.checked ? group.checked : group.elsewhere;
    if (list.size() >= most_wrong) return;
    list.push_back({tensor.name(), {row.b, row.h, row.i, column, facts.length, facts.partners, ratio}});
    if (column < 0) return;
    group.mixed_columns =
        group.mixed_columns || (group.columns != Axis::none && group.columns != tensor.column_axis());
    group.columns = tensor.column_axis();
    group.extent = std::max(group.extent, tensor.columns(tensor.rows().index(row)));
}

std::vector<Deviation> Findings::worst() const {
    std::vector<Deviation> worst;
    for (const Ranked& entry : ranked_) worst.push_back(entry.deviation);
    return worst;
}

/// An element that several gates reject is one wrong element, as far off as the strictest of them says.
std::vector<WrongElement> Findings::each_once(std::vector<Found> found) {
    const auto place = [](const Found& one) {
        const WrongElement& at = one.element;
        return std::tie(one.tensor, at.b, at.h, at.row, at.column);
    };
    std::ranges::sort(found, [&](const Found& left, const Found& right) {
        const auto one = place(left), other = place(right);
        return one != other ? one < other : left.element.ratio > right.element.ratio;
    });
    const auto same = std::ranges::unique(found, {}, place);
    found.erase(same.begin(), same.end());
    std::vector<WrongElement> wrong;
    for (const Found& one : found) wrong.push_back(one.element);
    return wrong;
}

std::string Findings::Group::pattern() const {
    const bool of_checked = !checked.empty();
    return classify(each_once(of_checked ? checked : elsewhere),
                    {.rows = space.axis,
                     .column_axis = mixed_columns ? Axis::none : columns,
                     .batch = space.batch,
                     .heads = space.heads,
                     .group_size = space.group_size,
                     .columns = extent,
                     .checked_rows = of_checked ? space.checked_rows : space.all_rows,
                     .median_partners = space.median_partners});
}

std::string Findings::pattern() const {
    std::string text;
    for (const Group& group : groups_) {
        const std::string part = group.pattern();
        if (part.empty()) continue;
        text += (text.empty() ? "" : "; ") + part;
    }
    return text;
}

} // namespace fmha::harness
