#pragma once

#include "harness/cases/case_fields.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

/// Steps from a case towards the plain case of its family. A step may lead to a case that contradicts itself or that the
/// specification refuses; whoever takes it finds out.
namespace fmha::harness {

/// `c` with those of `fields` that its family has as they are in `plain`.
Case with_plain(const Case& c, const Case& plain, std::span<const std::string_view> fields);

/// The whole case becomes plain, then its lengths, its channels, its heads, and its entries become fewer.
std::vector<Case> size_steps(const Case& c, const Case& plain);

/// Fields that only make sense together become plain together: a feature with all that belongs to it.
std::vector<Case> feature_steps(const Case& c, const Case& plain);

/// One field of `unplain_fields` becomes plain.
std::vector<Case> field_steps(const Case& c, const Case& plain);

/// Two of them.
std::vector<Case> pair_steps(const Case& c, const Case& plain);

/// Two of them, while a plain length becomes one longer: two fields are sometimes there for what one more key alone does too.
std::vector<Case> exchange_steps(const Case& c, const Case& plain);

/// An entry less, and lengths that are the same for all entries.
std::vector<Case> entry_steps(const Case& c);

/// Values that are simpler than those of `c` and yet not plain: masks without window, biases of lower rank, fewer heads.
std::vector<Case> value_steps(const Case& c);

/// A number of a case that can be smaller: a field, or one length of a list.
struct ShrinkableNumber {
    const CaseField* field = nullptr;
    std::size_t entry = 0;          ///< of a list
    std::vector<std::int64_t> to{}; ///< smaller values that it may take, ascending, from the plain one on
};

/// Numbers that exceed those of `plain`.
std::vector<ShrinkableNumber> shrinkable_numbers(const Case& c, const Case& plain);

Case with_number(const Case& c, const ShrinkableNumber& number, std::int64_t value);

} // namespace fmha::harness
