#include "harness/cli/tensor_difference.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace fmha::cli {
namespace {

/// Units in the last place between two codes of a type: how many of its values lie between them. Integers count themselves.
std::int64_t ulp(ElementType type, std::uint32_t x, std::uint32_t y) {
    if (type == ElementType::uint8)
        return std::abs(static_cast<std::int64_t>(x) - static_cast<std::int64_t>(y));
    const std::uint32_t sign = 1U << static_cast<unsigned>(element_bits(type) - 1);
    const auto position = [sign](std::uint32_t code) {
        const auto magnitude = static_cast<std::int64_t>(code & (sign - 1));
        return (code & sign) != 0 ? -magnitude : magnitude;
    };
    return std::abs(position(x) - position(y));
}

double distance(double a, double b) {
    if (a == b) return 0.0; // two infinities among them
    return std::isnan(a - b) ? std::numeric_limits<double>::infinity() : std::abs(a - b);
}

} // namespace

TensorDifference::TensorDifference(const harness::Outputs::Tensor& x, const harness::Outputs::Tensor& y)
    : x_(x), y_(y) {
    for (std::int64_t row = 0; row < x.rows().size(); ++row)
        for (std::int64_t column = 0; column < x.columns(row); ++column) add(row, column);
}

void TensorDifference::add(std::int64_t row, std::int64_t column) {
    ++elements_;
    const std::int64_t units = ulp(x_.type(), x_.code(row, column), y_.code(row, column));
    if (units == 0) return;
    ++differing_;
    const double a = x_.value(row, column), b = y_.value(row, column);
    const auto place = [&] {
        return fmt::format("{}{}: {:.9g} and {:.9g}", x_.rows().place(x_.rows().id(row)),
                           x_.column_axis() == harness::Axis::none
                               ? std::string()
                               : fmt::format(" {} {}", one_of(x_.column_axis()), column),
                           a, b);
    };
    if (differing_ == 1) first_ = place();
    worst_ulp_ = std::max(worst_ulp_, units);
    const double apart = distance(a, b);
    if (!worst_place_.empty() && apart <= worst_) return;
    worst_ = apart;
    worst_place_ = place();
}

void TensorDifference::relate(const harness::Bounded& bounded) {
    harness::BoundedRow expected;
    for (std::int64_t line = 0; line < bounded.rows(); ++line) {
        bounded.read(line, expected);
        const std::int64_t row = x_.rows().index(expected.id);
        for (std::size_t n = 0; n < expected.limit.size(); ++n) {
            const auto column = static_cast<std::int64_t>(n);
            const double apart = distance(x_.value(row, column), y_.value(row, column));
            of_limit_ = std::max(of_limit_, apart == 0.0 ? 0.0 : apart / expected.limit[n]);
        }
    }
}

std::string TensorDifference::text() const {
    if (differing_ == 0) return fmt::format("{} elements, all the same bits", elements_);
    const double same = 1.0 - static_cast<double>(differing_) / static_cast<double>(elements_);
    return fmt::format(
        "{} of {} elements differ ({:.3g} % the same bits), at most by {:.3g}{} and by {} ULP\n    worst "
        "{}\n    first {}",
        differing_, elements_, 100.0 * same, worst_,
        of_limit_ < 0.0 ? std::string() : fmt::format(", {:.3g} of the limit,", of_limit_), worst_ulp_,
        worst_place_, first_);
}

Json TensorDifference::json() const {
    Json json{{"tensor", x_.name()}, {"elements", elements_},     {"differing", differing_},
              {"largest", worst_},   {"largest_ulp", worst_ulp_}, {"text", text()}};
    if (of_limit_ >= 0.0) json["largest_of_limit"] = of_limit_;
    return json;
}

} // namespace fmha::cli
