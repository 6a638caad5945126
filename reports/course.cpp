#include "reports/course.hpp"

#include "dispatcher/types/markup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fmha::reports {
namespace {

using store::Course;
using store::CoursePoint;

constexpr double picture_width = 480.0, picture_height = 96.0, picture_margin = 8.0;

std::string value_text(double value) {
    return std::isnan(value) ? std::string("-") : fmt::format("{:.4g}", value);
}

/// Lowest and highest finite value; lowest > highest when there is none.
struct Span {
    double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();

    explicit Span(const Course& course) {
        for (const CoursePoint& point : course.points)
            if (std::isfinite(point.value)) {
                low = std::min(low, point.value);
                high = std::max(high, point.value);
            }
    }
    double y(double value) const {
        const double share = !std::isfinite(value) ? 1.0 : high > low ? (value - low) / (high - low) : 0.5;
        return picture_height - picture_margin - share * (picture_height - 2.0 * picture_margin);
    }
};

std::string picture(const Course& course, const Span& span) {
    std::string line, dots;
    const auto steps = static_cast<double>(std::max<std::size_t>(course.points.size(), 2) - 1);
    for (std::size_t i = 0; i < course.points.size(); ++i) {
        const CoursePoint& point = course.points[i];
        if (std::isnan(point.value)) continue;
        const double x = picture_margin +
                         static_cast<double>(i) / steps * (picture_width - 2.0 * picture_margin),
                     y = span.y(point.value);
        line += fmt::format("{:.1f},{:.1f} ", x, y);
        dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"{}><title>{} {}: {}</title></circle>",
                            x, y, std::isfinite(point.value) ? " fill=\"currentColor\"" : " class=\"wrong\"",
                            escaped(point.started), escaped(point.commit), value_text(point.value));
    }
    return fmt::format(
        "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\"><rect class=\"field\" width=\"{:.0f}\" "
        "height=\"{:.0f}\"/><polyline fill=\"none\" stroke=\"currentColor\" points=\"{}\"/>{}</svg>",
        picture_width, picture_height, picture_width, picture_height, line, dots);
}

std::string figure(const Course& course) {
    const Span span(course);
    std::string rows;
    for (const CoursePoint& point : course.points)
        rows +=
            fmt::format("<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"name\">{}</td></tr>\n",
                        escaped(point.started), escaped(point.commit.substr(0, 8)), value_text(point.value),
                        escaped(point.note));
    const std::string ends =
        span.low > span.high ? std::string()
                             : fmt::format(", from {} to {}", value_text(span.low), value_text(span.high));
    return fmt::format(
        "<figure class=\"map\"><figcaption>{}<br>{}{}</figcaption>{}</figure>\n<div class=\"scroll\">"
        "<table><thead><tr><th>started</th><th>commit</th><th>value</th><th></th></tr></thead>"
        "<tbody>\n{}</tbody></table></div>\n",
        escaped(course.subject), escaped(course.what), ends, picture(course, span), rows);
}

} // namespace

std::string section(std::span<const store::Course> courses) {
    std::string figures;
    for (const Course& course : courses) figures += figure(course);
    return fmt::format("<section><h2>Course over runs</h2>\n{}</section>\n", figures);
}

} // namespace fmha::reports
