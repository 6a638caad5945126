#pragma once

#include "harness/cases/case.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::harness {

/// Forward cases of an upstream shape matrix (YAML): the full product of the twelve axes of every test of
/// `forward_tests`, tiers up to `highest`, in file order with batch slowest and lse fastest; nothing zipped
/// and nothing dropped. A shape that the file repeats gets "#2", "#3" … behind its test's name.
/// `backward_tests` is checked for being readable and waits for the backward family. InputError for anything
/// unexpected in the file.
///
/// Head counts that do not divide expect the refusal H-1, head dimensions beyond the largest kernel of their
/// type expect a refusal by head dimension; upstream drops the latter silently.
std::vector<FwdCase> load_shape_matrix(const std::filesystem::path& path, Tier highest);

/// The file part of a matrix case's stem ("dir/matrix.yaml/Test" gives "dir/matrix.yaml"); empty for other
/// stems.
std::filesystem::path matrix_path(std::string_view stem);

/// One case by the parts of its name; `overrides` ("field=value,…") may change any field.
FwdCase load_matrix_case(const std::string& stem, const std::string& overrides,
                         std::optional<std::uint64_t> seed);

} // namespace fmha::harness
