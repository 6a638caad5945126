#include "harness/regression/side.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace fmha::regression {
namespace {

using store::RunRecord;

/// Runs with equal ones were made by the same program with the same kernels.
std::string program_of(const RunRecord& run) {
    return fmt::format("{} {} {}", run.commit, run.identity.value("program_sha256", std::string()),
                       run.identity.value("kernels_sha256", std::string()));
}

/// Of one commit and one binary. The kernels that they loaded do not count, because runs on other targets load others.
bool same_program(const RunRecord& a, const RunRecord& b) {
    const auto digest = [](const RunRecord& run) {
        return run.identity.value("program_sha256", std::string());
    };
    return a.commit == b.commit && digest(a) == digest(b);
}

std::string series_of(const RunRecord& run) {
    std::string name(to_string(run.kind));
    for (const std::string& part : {run.target, run.arch, run.selection})
        if (!part.empty()) name += " " + part;
    return name;
}

/// "family=", but not the "==" of an expression.
bool chooses_nothing(std::string_view word) {
    return word.empty() || word == "kernels=planned" ||
           (word.size() > 1 && word.find('=') == word.size() - 1);
}

Series gathered(const store::Store& store, const std::string& name,
                const std::vector<const RunRecord*>& runs) {
    Series series;
    series.name = name;
    series.run = *runs.back();
    if (series.run.kind == store::RunKind::verify)
        for (const RunRecord* run : runs) series.results.push_back(store.results(run->id));
    const std::size_t benches = std::min(runs.size(), bench_runs);
    if (series.run.kind == store::RunKind::bench)
        for (std::size_t n = runs.size() - benches; n < runs.size(); ++n) {
            series.of_bench.push_back(*runs[n]);
            series.times.push_back(store.times(runs[n]->id));
        }
    series.resources = store.resources(series.run.id);
    series.counts = store.counts(series.run.id);
    return series;
}

/// `chosen` gets the finished whole runs of a series, oldest first, and leaves those of one side.
using Choice = std::function<std::vector<const RunRecord*>(const std::vector<const RunRecord*>&)>;

/// `all`: the runs of the store.
Side side_of(const store::Store& store, const std::vector<RunRecord>& all, const Choice& chosen) {
    std::map<std::string, std::vector<const RunRecord*>> by_series;
    Side side;
    for (const RunRecord& run : all) {
        if (run.verdict.empty()) {
            side.notes.push_back(fmt::format("{}: a run of {} has not finished and is left out", run.started,
                                             shown(series_of(run))));
            if (run.shards <= 1 && same_program(run, all.back()))
                side.unfinished[series_of(run)] = run.started;
        } else if (run.shards > 1)
            side.notes.push_back(
                fmt::format("{}: shard {} of {} of {} is left out; `fmha merge` joins shards", run.started,
                            run.shard, run.shards, shown(series_of(run))));
        else {
            by_series[series_of(run)].push_back(&run);
            side.unfinished.erase(series_of(run));
        }
    }
    std::set<std::string> labels;
    for (const auto& [name, runs] : by_series) {
        const auto mine = chosen(runs);
        if (mine.empty()) continue;
        side.series.push_back(gathered(store, name, mine));
        constexpr std::size_t digits = 8;
        labels.insert(mine.back()->commit.substr(0, digits));
    }
    for (const std::string& label : labels) side.label += (side.label.empty() ? "" : ", ") + label;
    return side;
}

/// Those of `runs` that the program of the last of them made.
std::vector<const RunRecord*> of_last_program(const std::vector<const RunRecord*>& runs) {
    std::vector<const RunRecord*> mine;
    for (const RunRecord* run : runs)
        if (program_of(*run) == program_of(*runs.back())) mine.push_back(run);
    return mine;
}

/// Runs to compare the newest of all `runs` with: those of `candidates` by the last program that is not the newest run's. Where there is no
/// other program, all of them but the newest run, which is not compared with itself.
std::vector<const RunRecord*> before_the_newest(const std::vector<const RunRecord*>& runs,
                                                const std::vector<const RunRecord*>& candidates) {
    std::vector<const RunRecord*> others, earlier;
    for (const RunRecord* run : candidates) {
        if (program_of(*run) != program_of(*runs.back())) others.push_back(run);
        if (run != runs.back()) earlier.push_back(run);
    }
    return others.empty() ? earlier : of_last_program(others);
}

} // namespace

Side newest(const store::Store& store) {
    const std::vector<RunRecord> all = store.runs();
    Side side = side_of(store, all, of_last_program);
    std::vector<std::string> old;
    for (const Series& series : side.series)
        if (!same_program(series.run, all.back()))
            old.push_back(fmt::format("{} ({})", shown(series.name), series.run.started));
    constexpr std::size_t most_named = 3;
    if (old.empty()) return side;
    const std::string others =
        old.size() > most_named ? fmt::format(" and {} others", old.size() - most_named) : "";
    old.resize(std::min(old.size(), most_named));
    side.notes.push_back(
        fmt::format("the newest program, of {}, has not run {}{}; their last runs are compared",
                    all.back().started, fmt::join(old, ", "), others));
    return side;
}

Side previous(const store::Store& store) {
    return side_of(store, store.runs(),
                   [](const std::vector<const RunRecord*>& runs) { return before_the_newest(runs, runs); });
}

std::string shown(std::string_view name) {
    std::string text;
    while (!name.empty()) {
        const std::string_view word = name.substr(0, name.find(' '));
        name.remove_prefix(std::min(word.size() + 1, name.size()));
        if (!chooses_nothing(word)) text.append(text.empty() ? "" : " ").append(word);
    }
    return text;
}

Side of_commit(const store::Store& store, const std::string& commit) {
    Side side = side_of(store, store.runs(), [&](const std::vector<const RunRecord*>& runs) {
        std::vector<const RunRecord*> mine;
        for (const RunRecord* run : runs)
            if (run->commit.starts_with(commit)) mine.push_back(run);
        const auto before = before_the_newest(runs, mine);
        return before.empty() ? mine : before;
    });
    if (side.series.empty())
        throw InputError(
            fmt::format("{}: has no finished run of a commit that begins with \"{}\", and there is no file "
                        "of that name",
                        store.database().file().string(), commit));
    return side;
}

} // namespace fmha::regression
