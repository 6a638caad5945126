#include "harness/cli/waiver_choice.hpp"

#include "dispatcher/system/sha256.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/shape_matrix.hpp"
#include "harness/cli/input_text.hpp"
#include "harness/cli/today.hpp"
#include "harness/results/merge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fmha::cli {
namespace {

using harness::Case;
using harness::Waiver;

bool means_one(const Waiver& waiver, const std::vector<Case>& cases) {
    return std::ranges::any_of(cases, [&](const Case& c) { return harness::means_case(waiver.cases, c.id); });
}

/// How reports print the case, file or folder that a command line calls `text`; "" for what is none.
std::string printed_name(const std::string& text, CaseChoice& choice) {
    try {
        const auto cases = choice.at_every_tier({text});
        const std::string& first = cases.front().id;
        if (cases.size() == 1 && text.find_first_of("[@") != std::string::npos) return first;
        for (auto end = first.find_first_of("[@"); end != std::string::npos;
             end = first.rfind('/', end - 1)) {
            const std::string shared = first.substr(0, end);
            if (std::ranges::all_of(cases, [&](const Case& c) { return harness::means_case(shared, c.id); }))
                return shared;
            if (end == 0) break;
        }
    } catch (const InputError&) {
        // It is no such name.
    }
    return {};
}

/// "entry" or "entries" behind a number.
std::string so_many_entries(std::size_t number) {
    return fmt::format("{} {}", number, number == 1 ? "entry" : "entries");
}

} // namespace

void WaiverChoice::declare(OptionSet& options) {
    options.option(
        "--waivers", file_,
        "YAML file of cases that are known to be bad, each with a tracker: a failure is known then, a "
        "crash or a hang is not launched, and a pass makes the run red");
}

void WaiverChoice::read(const harness::Target& target, const std::vector<Case>& asked, CaseChoice& cases,
                        bool catalogue) {
    if (file_.empty()) return;
    const std::string text = input_text(file_);
    sha256_ = system::sha256(text);
    const arch::ArchSet archs = target.archs();
    std::vector<std::string> names;
    for (const auto& arch : archs.all()) names.emplace_back(arch.name().view());
    const auto all = harness::read_waivers(text, file_, names, harness::target_names());
    entries_.emplace(all, target.arch(), target.name());
    out_of_scope_ = all.size() - entries_->entries().size();
    for (const Waiver& waiver : entries_->entries()) {
        if (!waiver.expires.empty() && waiver.expires < today())
            objections_.push_back(
                fmt::format("{}: the entry has expired on {}, see {}; mend the cases, or give it "
                            "another day",
                            waiver.place, waiver.expires, waiver.tracker));
        if (means_one(waiver, asked)) continue;
        if (catalogue || can_be_asked(waiver, cases))
            of_others_.push_back(waiver.place.substr(file_.size() + 2));
        else if (const std::string printed = printed_name(waiver.cases, cases); !printed.empty())
            objections_.push_back(
                fmt::format("{}: cases: \"{}\" is not how reports print these cases; write \"{}\"",
                            waiver.place, waiver.cases, printed));
        else
            objections_.push_back(
                fmt::format("{}: cases: \"{}\" is no name of any case of any tier; delete the "
                            "entry, or mend the name",
                            waiver.place, waiver.cases));
    }
}

/// Whether another run has a case that the entry means: one of the matrix, or of a file that a user names.
bool WaiverChoice::can_be_asked(const Waiver& waiver, CaseChoice& cases) {
    if (waiver.cases.starts_with("catalogue"))
        return true; // witnesses, of a list that this run does not have
    // A name may state fields that no file has, and files that users name, shape matrices too, may lie anywhere.
    for (const std::string& name : {waiver.cases, waiver.cases.substr(0, waiver.cases.find_first_of("[@*")),
                                    harness::matrix_path(waiver.cases).generic_string()}) {
        try {
            if (!name.empty() && means_one(waiver, cases.at_every_tier({name}))) return true;
        } catch (const InputError&) {
            // It is no such name.
        }
    }
    if (!matrix_) matrix_ = cases.at_every_tier({});
    return means_one(waiver, *matrix_);
}

void WaiverChoice::identify(Json& identity) const {
    if (file_.empty()) return;
    identity["waivers_sha256"] = sha256_;
    if (!objections_.empty()) identity[harness::objections_key] = objections_;
}

std::vector<std::string> WaiverChoice::unused(const std::vector<Case>& cases,
                                              std::span<const harness::CaseResult> results) const {
    if (!entries_) return {};
    std::vector<std::string> sentences;
    if (out_of_scope_ > 0)
        sentences.push_back(
            fmt::format("{}: {} of other architectures or targets", file_, so_many_entries(out_of_scope_)));
    if (!of_others_.empty())
        sentences.push_back(fmt::format("{}: {} of cases that were not asked: {}", file_,
                                        so_many_entries(of_others_.size()), fmt::join(of_others_, ", ")));
    for (const Waiver& waiver : entries_->entries())
        if (!waiver.kernel.empty() && means_one(waiver, cases) &&
            std::ranges::none_of(results,
                                 [&](const auto& result) { return harness::is_about(waiver, result); }))
            sentences.push_back(
                fmt::format("{}: no result of the entry's cases is of a kernel with a name like {}",
                            waiver.place, waiver.kernel));
    return sentences;
}

std::vector<std::string> waiver_objections(const Json& identity) {
    if (!identity.contains(harness::objections_key)) return {};
    return identity.at(harness::objections_key).get<std::vector<std::string>>();
}

} // namespace fmha::cli
