#pragma once

#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/problem.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fmha {

/// A field of a problem that has no say in some of them. Fields without a row have one everywhere, or `validate` refuses their
/// values where they have none.
struct FieldUse {
    std::string_view path;                         ///< dotted, as in files: `signature.page_size`
    bool (*of_family)(const ApiTraits&) = nullptr; ///< which families use it
    /// Whether a problem of such a family does; null = always.
    bool (*of_problem)(const Problem&) = nullptr;
    std::string_view without; ///< what a problem that does not lacks: "without a mask"
};

/// The rows of all such fields, the one place that says who uses them.
std::span<const FieldUse> field_uses();

/// A sentence for each field of `stated` that is not as in a blank problem and that nothing reads: "num_splits is 4, which fwd does not
/// use". `stated` is as the caller stated it, before `normalised` derives fields from others.
std::vector<std::string> unused_fields(const Problem& stated);

} // namespace fmha
