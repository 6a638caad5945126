#pragma once

#include "harness/regression/compare.hpp"

#include <string>

/// The verdict of `fmha gate`, rendered.
namespace fmha::reports {

/// JUnit XML of one family: a test case for each sort of comparison that was made and for each finding.
std::string junit(const regression::Verdict& verdict, const regression::FamilyVerdict& family);

/// JUnit XML of the comparison as a whole: one test case, which fails where nothing was compared and no family has a file to say so.
std::string junit(const regression::Verdict& verdict);

/// A section for the page of a run: before, after, and by how much. No script, no style of its own.
std::string section(const regression::Verdict& verdict);

} // namespace fmha::reports
