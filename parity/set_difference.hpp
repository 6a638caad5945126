#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fmha::parity {

/// Names that one side has and the other has not, gathered by where they part from the other side.
struct NameGroup {
    std::string beginning; ///< the shortest beginning (whole tokens) that no name of the other side has
    std::vector<std::string> names;
    std::string cause; ///< the rule or table entry responsible; empty when nobody was asked
};

/// Names that both sides have under different spellings: exactly one token differs, was added or removed, and
/// each name has one partner only.
struct RenameGroup {
    std::string from, to; ///< the token; empty = was not there
    std::vector<std::pair<std::string, std::string>> names;
};

/// The changes between an expected list and an actual one.
struct SetDifference {
    std::size_t expected = 0, actual = 0;
    std::vector<NameGroup> lost;   ///< expected, not there
    std::vector<NameGroup> gained; ///< there, not expected
    std::vector<RenameGroup> renamed;
    std::vector<std::string> duplicates; ///< names that either list has more than once

    bool empty() const { return lost.empty() && gained.empty() && renamed.empty() && duplicates.empty(); }
    std::size_t lost_count() const;
    std::size_t gained_count() const;
    std::size_t renamed_count() const;
};

enum class Renames : std::uint8_t { pair, ignore };

/// Compares two lists of names whose tokens, joined by `_` (or by '.' before a suffix), run from coarse to
/// fine.
SetDifference difference(std::vector<std::string> expected, std::vector<std::string> actual,
                         Renames renames = Renames::pair);

/// Answers for one name of a group: the sentence that says why it is in the actual list or not in it.
using CauseOf = std::function<std::string(const std::string& name)>;

/// Asks for the cause of the first name of each group and merges groups of one cause and one kind of kernel.
/// After `limit` questions the remaining groups keep an empty cause.
void explain(SetDifference& difference, const CauseOf& lost_cause, const CauseOf& gained_cause,
             std::size_t limit = 48);

} // namespace fmha::parity
