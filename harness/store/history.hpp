#pragma once

#include "harness/store/store.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace fmha::store {

/// One run of a course.
struct CoursePoint {
    std::string started, commit;
    double value = 0.0; ///< NaN when the run has none
    std::string note;   ///< outcome and kernel, or other facts of the value
};

/// One value of a case or of a kernel, run after run, oldest first.
struct Course {
    std::string subject; ///< name of the case or kernel
    std::string what;    ///< the value, with its unit and where it comes from
    std::vector<CoursePoint> points;
};

/// The courses of the case or kernel called `text`, or called so before its seed, else of those whose names contain it (at most
/// `most_subjects`). The seeds of a case are one course, unless `text` names one of them. Each has its last `last` points. Throws InputError when nothing fits, or too much.
std::vector<Course> courses(const Store& store, const std::string& text, std::size_t last);

/// How many subjects `courses` shows at once.
inline constexpr std::size_t most_subjects = 20;

/// A bar a value, from the lowest to the highest of the finite ones; infinity is the highest, NaN a blank.
std::string sparkline(std::span<const double> values);

/// For people, below the name of the subject.
std::string to_text(const Course& course);
Json to_json(const Course& course);

} // namespace fmha::store
