#include "tests/mutation/score.hpp"

#include <fmt/format.h>

namespace fmha::harness::test {
namespace {

void count(Score& score, bool survives, const KnownSurvivor* known) {
    if (!survives)
        ++score.killed;
    else if (known == nullptr)
        ++score.unlisted;
    else
        ++(known->equivalent ? score.equivalent : score.open);
}

std::string line(const std::string& title, const Score& score) {
    return fmt::format("{:<36}{:>6}{:>8}{:>12}{:>6}{:>10}{:>8.1f} %\n", title, score.tried(), score.killed,
                       score.equivalent, score.open, score.unlisted, score.percent());
}

Json json_of(const Score& score) {
    return Json{{"tried", score.tried()}, {"killed", score.killed},     {"equivalent", score.equivalent},
                {"open", score.open},     {"unlisted", score.unlisted}, {"percent", score.percent()}};
}

Json json_of(const std::map<std::string, Score>& scores) {
    Json all = Json::object();
    for (const auto& [name, score] : scores) all[name] = json_of(score);
    return all;
}

} // namespace

double Score::percent() const {
    const std::size_t that_matter = killed + open + unlisted;
    return that_matter == 0 ? 100.0 : 100.0 * static_cast<double>(killed) / static_cast<double>(that_matter);
}

void ScoreTable::add(const fmha::test::Mutant& mutant, const Verdict& verdict) {
    const std::string name = mutant.name();
    const KnownSurvivor* known = find_survivor(known_, name);
    for (Score* score :
         {&all_, &programs_[std::string(mutant.header)], &operators_[std::string(mutant.operation)]})
        count(*score, verdict.survives(), known);
    if (!verdict.survives()) {
        ++gates_[verdict.gate];
        ++files_[verdict.case_name.substr(0, verdict.case_name.find_first_of("[@"))];
    }
    Json told{{"verdict", std::string(to_string(verdict.kind))}};
    if (!verdict.gate.empty()) told["gate"] = verdict.gate;
    if (!verdict.case_name.empty()) told["case"] = verdict.case_name;
    verdicts_[name] = std::move(told);
    if (verdict.survives() && known == nullptr)
        contradictions_.push_back(fmt::format(
            "{}: survives ({}), and the table of survivors does not list it", name, to_string(verdict.kind)));
    if (!verdict.survives() && known != nullptr && known->equivalent)
        contradictions_.push_back(fmt::format("{}: the table lists it as equivalent, and {} of {} noticed it",
                                              name, verdict.gate, verdict.case_name));
}

std::string ScoreTable::text() const {
    std::string text = fmt::format("{:<36}{:>6}{:>8}{:>12}{:>6}{:>10}{:>10}\n", "", "tried", "killed",
                                   "equivalent", "open", "unlisted", "score");
    for (const auto& [program, score] : programs_) text += line(program, score);
    for (const auto& [name, score] : operators_) text += line("operator " + name, score);
    text += line("all", all_);
    for (const auto& [gate, kills] : gates_) text += fmt::format("gate {:<37}{:>8} killed\n", gate, kills);
    for (const auto& [file, kills] : files_) text += fmt::format("cases {:<36}{:>8} killed\n", file, kills);
    return text;
}

Json ScoreTable::record(std::size_t available) const {
    return Json{{"mutants", available},           {"all", json_of(all_)},
                {"programs", json_of(programs_)}, {"operators", json_of(operators_)},
                {"gates", Json(gates_)},          {"case_files", Json(files_)},
                {"verdicts", Json(verdicts_)}};
}

} // namespace fmha::harness::test
