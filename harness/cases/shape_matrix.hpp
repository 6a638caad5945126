#pragma once

#include "harness/cases/case.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fmha::harness {

/// (hdim_q, hdim_v) of the kernels that an architecture has for a family, by data type.
using KernelDims = std::map<DataType, std::set<std::pair<std::int64_t, std::int64_t>>>;

/// Cases of an upstream shape matrix (YAML): the full product of the twelve axes of every test of `forward_tests`, or for
/// `family` bwd of `backward_tests`, tiers up to `highest`, in file order with batch slowest and lse fastest; nothing zipped
/// and nothing dropped. A shape that the file repeats gets "#2", "#3" … behind its test's name, and names of backward's tests
/// begin with "backward_tests/". InputError for anything unexpected in the file.
///
/// Head counts that do not divide expect the refusal H-1. Head dimensions beyond every kernel of their type in `dims`
/// expect a refusal by head dimension; upstream drops such shapes silently. A type that `dims` lacks expects nothing:
/// its refusal is T-1.
std::vector<Case> load_shape_matrix(const std::filesystem::path& path, Tier highest, const KernelDims& dims,
                                    ApiFamily family = ApiFamily::fwd);

/// How many shapes each section of the file has up to that tier.
struct MatrixCount {
    std::string_view section;
    ApiFamily family = ApiFamily::fwd;
    std::int64_t shapes = 0;
};
std::vector<MatrixCount> count_shapes(const std::filesystem::path& path, Tier highest);

/// The families that sections become shapes of, in file order.
std::vector<ApiFamily> matrix_families();

/// The file part of a matrix case's stem ("dir/matrix.yaml/Test" gives "dir/matrix.yaml"); empty for other
/// stems.
std::filesystem::path matrix_path(std::string_view stem);

/// Whether `c` is a shape of a matrix.
inline bool is_of_matrix(const Case& c) {
    return !matrix_path(c.id).empty();
}

/// One case by the parts of its name; `overrides` ("field=value,…") may change any field.
Case load_matrix_case(const std::string& stem, const std::string& overrides,
                      std::optional<std::uint64_t> seed);

} // namespace fmha::harness
