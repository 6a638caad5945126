#include "harness/results/journal.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/results/merge.hpp"
#include "harness/results/result_json.hpp"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace fmha::harness {
namespace {

constexpr const char* schema = "fmha-verify-journal-1";

using Finished = std::map<std::string, std::vector<CaseResult>>;

/// Takes a line that `append` wrote. False for another one. Throws InputError for a case that an earlier line is about: a run
/// appends each case once, so that one of the lines is not its own.
bool take_line(std::string_view line, Finished& finished) {
    std::string name;
    std::vector<CaseResult> results;
    try {
        const Json object = Json::parse(line);
        for (const Json& result : object.at("results")) results.push_back(result_from_json(result));
        name = object.at("case").get<std::string>();
    } catch (const InputError&) {
        return false;
    }
    if (!finished.try_emplace(name, std::move(results)).second)
        throw InputError(fmt::format("{} has an earlier line", name));
    return true;
}

} // namespace

Journal::Journal(std::filesystem::path file, const Json& identity, std::string run_id)
    : lines_(std::move(file), "fmha verify", schema, identity, std::move(run_id),
             [this](std::string_view line) { return take_line(line, finished_); }) {}

void Journal::append(const std::string& name, std::span<const CaseResult> results) {
    Json line{{"case", name}, {"results", Json::array()}};
    for (const CaseResult& result : results) line["results"].push_back(to_json(result));
    lines_.append(name, line);
}

std::optional<Part> read_journal(const std::string& text, const std::filesystem::path& file) {
    Finished finished;
    const auto identity = read_journal_lines(
        text, file, schema, [&finished](std::string_view line) { return take_line(line, finished); });
    if (!identity) return std::nullopt;
    Part part{file.string(), *identity, {}};
    std::vector<std::string> without_results;
    for (auto& [name, results] : finished) {
        if (results.empty()) without_results.push_back(name);
        std::move(results.begin(), results.end(), std::back_inserter(part.results));
    }
    if (!without_results.empty()) part.identity[without_results_key] = without_results;
    return part;
}

} // namespace fmha::harness
