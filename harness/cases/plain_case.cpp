#include "harness/cases/plain_case.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "harness/cases/case_name.hpp"
#include "harness/cases/load.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace fmha::harness {
namespace {

/// The file of a family, without ".json".
std::string stem_of(ApiFamily family) {
    return fmt::format("{}/plain", traits_of(family).short_name);
}

bool differs(const CaseField& field, const Case& c, const Case& plain) {
    return field.families.contains(c.family) && field.print(c) != field.print(plain);
}

/// Compounds of which both halves differ.
std::set<const CaseField*> pairs_in(const Case& c, const Case& plain) {
    std::set<const CaseField*> pairs;
    for (const CaseField& field : case_fields())
        if (field.compound() && !field.print(c).empty() &&
            std::ranges::all_of(field.elementary(),
                                [&](std::string_view half) { return differs(*find_field(half), c, plain); }))
            pairs.insert(&field);
    return pairs;
}

} // namespace

Case plain_case(ApiFamily family, const std::filesystem::path& root) {
    const std::filesystem::path file = root / (stem_of(family) + ".json");
    if (!std::filesystem::is_regular_file(file))
        throw InputError(
            fmt::format("{}: there is no such file; a case that was made smaller or drawn at random is "
                        "named by how it differs from the plain case of its family",
                        file.string()));
    return load_case(fmt::format("{}@1", stem_of(family)), root);
}

std::string plain_name(const Case& c, const Case& plain) {
    return print_name(stem_of(c.family), c, plain, pairs_in(c, plain));
}

Case named_by_plain(Case fields, const Case& plain) {
    fields.about = plain.about;
    fields.tier = plain.tier;
    fields.labels = plain.labels;
    fields.id = plain_name(fields, plain);
    return fields;
}

std::vector<const CaseField*> unplain_fields(const Case& c, const Case& plain) {
    const auto pairs = pairs_in(c, plain);
    std::set<std::string_view> halves;
    std::vector<const CaseField*> fields;
    for (const CaseField& field : case_fields()) {
        const bool whole = pairs.contains(&field);
        if ((field.compound() && !whole) || halves.contains(field.name) || !differs(field, c, plain))
            continue;
        fields.push_back(&field);
        if (whole) halves.insert(field.sets.begin(), field.sets.end());
    }
    return fields;
}

} // namespace fmha::harness
