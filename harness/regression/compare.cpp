#include "harness/regression/compare.hpp"

#include "harness/regression/margins.hpp"
#include "harness/regression/noise.hpp"
#include "harness/results/case_seed.hpp"
#include "harness/results/first_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace fmha::regression {
namespace {

using harness::CaseResult;
using store::TimeRecord;

constexpr const char* no_family = "lists";
constexpr const char* any_family = "runs";

/// The API family whose name a kernel's begins with.
std::string family_of_kernel(const std::string& kernel) {
    std::string_view longest;
    for (const auto& [family, name] : EnumTable<ApiFamily>::names)
        if (kernel.starts_with(name) && name.size() > longest.size()) longest = name;
    return longest.empty() ? no_family : std::string(longest);
}

/// Of a count: "house gfx950 fwd_splitkv" counts kernels of a family, "house gfx950" does not.
std::string family_of_count(const std::string& subject) {
    return family_of_kernel(subject.substr(subject.rfind(' ') + 1));
}

std::string outcome_of(const CaseResult& result) {
    std::string text(to_string(result.outcome));
    if (result.device) text += fmt::format(" on device {}", *result.device);
    if (!result.message.empty()) text += ": " + harness::first_line(result.message);
    return text;
}

/// The worst result of one case.
struct CaseEnd {
    std::string family, text;
    bool green = true, executed = false;
};

std::map<std::string, CaseEnd> ends_of(const std::vector<CaseResult>& results) {
    std::map<std::string, CaseEnd> ends;
    for (const CaseResult& result : results) {
        CaseEnd& end = ends[harness::without_seed(result.name)];
        const bool green = harness::is_green(result.outcome);
        if (end.family.empty() || (end.green && !green)) {
            end.family = to_string(result.family);
            end.text = outcome_of(result);
        }
        end.green = end.green && green;
        end.executed = end.executed || harness::is_judged(result.outcome);
    }
    return ends;
}

std::set<std::string> kernels_run(const std::vector<CaseResult>& results) {
    std::set<std::string> kernels;
    for (const CaseResult& result : results)
        if (!result.kernel.empty() && harness::is_executed(result.outcome)) kernels.insert(result.kernel);
    return kernels;
}

class Comparison {
  public:
    Comparison(const Budget& budget, std::span<const store::AcceptedRecord> accepted,
               std::optional<ApiFamily> family)
        : budget_(budget), accepted_(accepted) {
        if (family) only_ = to_string(*family);
    }

    void series(const Series& before, const Series& after) {
        series_ = before.name;
        if (!before.results.empty() && !after.results.empty()) {
            cases(before.results.back(), after.results.back());
            margins(before, after);
        }
        times(before, after);
        resources(before.resources, after.resources);
        counts(before.counts, after.counts);
    }

    void lost_series(const Series& before) {
        series_ = before.name;
        of_series(Kind::series_lost, families_of(before), "run at " + before.run.started, "not run");
    }

    /// A run that was killed says nothing good, whatever an older one says.
    void unfinished_series(const std::string& name, const std::string& began, const Series* older) {
        series_ = name;
        of_series(Kind::not_green, older == nullptr ? std::set<std::string>() : families_of(*older),
                  older == nullptr ? "not run" : "finished at " + older->run.started,
                  "begun at " + began + " and not finished");
    }

    Verdict conclude() && {
        for (auto& [name, family] : families_)
            if (family.compared() > 0 || !family.findings.empty())
                verdict_.families.push_back(std::move(family));
        return std::move(verdict_);
    }
    void note(std::string sentence) { verdict_.notes.push_back(std::move(sentence)); }

  private:
    /// Those that the last run of a series told of.
    static std::set<std::string> families_of(const Series& series) {
        std::set<std::string> families;
        if (!series.results.empty())
            for (const CaseResult& result : series.results.back())
                families.insert(std::string(to_string(result.family)));
        if (!series.times.empty())
            for (const TimeRecord& time : series.times.back()) families.insert(family_of_kernel(time.kernel));
        for (const auto& used : series.resources) families.insert(family_of_kernel(used.kernel));
        for (const auto& count : series.counts) families.insert(family_of_count(count.subject));
        return families;
    }

    /// A finding about a whole series, which concerns each of its families; where none is known, all.
    void of_series(Kind kind, const std::set<std::string>& families, std::string before, std::string after) {
        std::string family = families.empty() ? any_family : *families.begin();
        if (!only_.empty() && (families.empty() || families.contains(only_))) family = only_;
        found({kind, std::move(family), series_, series_, std::move(before), std::move(after), ""});
    }
    bool wanted(const std::string& family) const { return only_.empty() || only_ == family; }
    FamilyVerdict& family(const std::string& name) {
        families_[name].family = name;
        return families_[name];
    }

    void found(Finding finding) {
        if (!wanted(finding.family)) return;
        finding.series = series_;
        for (const auto& accepted : accepted_) {
            // A number that was accepted may stay, and vary a little, but not get worse again.
            constexpr double slack = 1.02;
            const bool as_good = finding.kind == Kind::count ? finding.value == accepted.value
                                                             : finding.value <= slack * accepted.value;
            if (accepted.kind == to_string(finding.kind) && accepted.series == series_ &&
                accepted.subject == finding.subject && as_good)
                finding.accepted = accepted.reason;
        }
        family(finding.family).findings.push_back(std::move(finding));
    }

    void cases(const std::vector<CaseResult>& before, const std::vector<CaseResult>& after) {
        const auto was = ends_of(before), is = ends_of(after);
        for (const auto& [name, old] : was) {
            if (!wanted(old.family)) continue;
            ++family(old.family).cases;
            const auto now = is.find(name);
            if (now == is.end())
                found({Kind::case_lost, old.family, "", name, old.text, "not there", ""});
            else if (old.green && (!now->second.green || (old.executed && !now->second.executed)))
                found({Kind::not_green, old.family, "", name, old.text, now->second.text, ""});
        }
        for (const auto& [name, now] : is)
            if (!now.green && !was.contains(name))
                found({Kind::not_green, now.family, "", name, "not there", now.text, "new and red"});
        const auto kernels_after = kernels_run(after);
        for (const std::string& kernel : kernels_run(before)) kernel_is_in(kernel, kernels_after, "run");
    }

    void kernel_is_in(const std::string& kernel, const std::set<std::string>& there, const char* what) {
        const std::string name = family_of_kernel(kernel);
        if (!wanted(name)) return;
        ++family(name).kernels;
        if (!there.contains(kernel))
            found({Kind::kernel_lost, name, "", kernel, what, fmt::format("not {}", what), ""});
    }

    void margins(const Series& before, const Series& after) {
        const MarginVerdict verdict = compare_margins(before.results, after.results.back(), budget_.margin);
        for (const auto& [name, compared] : verdict.compared)
            if (wanted(name)) family(name).margins += compared;
        for (const MarginChange& change : verdict.worse)
            found({Kind::margin, change.family, "", change.subject, fmt::format("{:.3g}", change.before),
                   fmt::format("{:.3g}", change.after),
                   fmt::format("{:+.0f} %, {}", percent(change.after / change.before), change.explanation),
                   change.after});
        if (verdict.without_spread > 0)
            note(fmt::format(
                "{}: {} margins were not judged: the program before was run with fewer than 3 seeds "
                "(--seed)",
                shown(series_), verdict.without_spread));
    }

    static double percent(double ratio) { return 100.0 * (ratio - 1.0); }

    using TimedKey = std::pair<std::string, std::string>; ///< case, kernel

    /// The rounds of one run by case and kernel; without a measurement there are none.
    static std::map<TimedKey, Rounds> rounds_of(const std::vector<TimeRecord>& times) {
        std::map<TimedKey, Rounds> rounds;
        for (const TimeRecord& time : times) {
            Rounds& mine = rounds[{time.name, time.kernel}];
            if (time.outcome == harness::BenchOutcome::measured) mine.push_back(time);
        }
        return rounds;
    }

    /// Whether the runs of both sides took turns.
    static bool interleaved(const Series& before, const Series& after) {
        for (std::size_t n = 0; n + 1 < before.of_bench.size(); ++n) {
            const auto between = [n](const Series& outer, const Series& inner) {
                return outer.of_bench[n].started <= inner.of_bench[n].started &&
                       inner.of_bench[n].started <= outer.of_bench[n + 1].started;
            };
            if (!between(before, after) && !between(after, before)) return false;
        }
        return true;
    }

    void times(const Series& before, const Series& after) {
        if (before.times.empty() || after.times.empty()) return;
        std::vector<std::map<TimedKey, Rounds>> was, is;
        for (const auto& run : before.times) was.push_back(rounds_of(run));
        for (const auto& run : after.times) is.push_back(rounds_of(run));
        const bool enough = was.size() == bench_runs && is.size() == bench_runs;
        const bool comparable = before.run.machine == after.run.machine;
        if (!comparable)
            note(fmt::format("{}: times were not compared: {} before, {} after", shown(series_),
                             before.run.machine, after.run.machine));
        else if (!enough)
            note(fmt::format(
                "{}: times were not compared: that takes {} runs a side, best taken in turns; there are {} "
                "before and {} after",
                shown(series_), bench_runs, was.size(), is.size()));
        const bool turns = enough && interleaved(before, after);
        std::int64_t blind = 0;
        for (const auto& [key, rounds] : was.back()) {
            if (rounds.empty()) continue;
            const auto& [name, kernel] = key;
            const std::string of = family_of_kernel(kernel);
            if (!wanted(of)) continue;
            const auto now = is.back().find(key);
            if (now == is.back().end())
                found({Kind::kernel_lost, of, "", kernel + " on " + name, "timed", "not timed", ""});
            else if (now->second.empty())
                found({Kind::not_green, of, "", kernel + " on " + name, "timed",
                       message_of(after.times.back(), key), ""});
            else if (comparable && enough)
                blind += compare_one(of, key, was, is, turns) ? 0 : 1;
        }
        if (blind > 0)
            note(fmt::format("{}: of {} times noise would hide a slowdown of 10 %{}", shown(series_), blind,
                             turns ? "" : "; runs of both sides that take turns see more"));
    }

    static std::string message_of(const std::vector<TimeRecord>& times, const TimedKey& key) {
        for (const TimeRecord& time : times)
            if (time.name == key.first && time.kernel == key.second &&
                time.outcome != harness::BenchOutcome::measured)
                return fmt::format("{}: {}", to_string(time.outcome), time.message);
        return "not timed";
    }

    /// False when noise is above 10 %.
    bool compare_one(const std::string& of, const TimedKey& key,
                     const std::vector<std::map<TimedKey, Rounds>>& was,
                     const std::vector<std::map<TimedKey, Rounds>>& is, bool turns) {
        std::vector<Rounds> old_runs, new_runs;
        for (const auto* side : {&was, &is})
            for (const auto& run : *side) {
                const auto found = run.find(key);
                if (found == run.end() || found->second.empty()) return false;
                (side == &was ? old_runs : new_runs).push_back(found->second);
            }
        ++family(of).times;
        const TimeChange change = compare_times(old_runs, new_runs, budget_.slower, turns);
        constexpr double hundred = 100.0, milli = 1e-3, visible = 0.10;
        if (change.slower) {
            const double time = new_runs.back().back().median;
            found({Kind::slower, of, "", key.second + " on " + key.first,
                   fmt::format("{:.4g} ms", old_runs.back().back().median / milli),
                   fmt::format("{:.4g} ms", time / milli),
                   fmt::format("{:+.0f} % in {} of {} pairs, noise {:.0f} %", hundred * change.by,
                               change.seen, bench_runs, hundred * change.noise),
                   time});
        }
        return change.noise <= visible;
    }

    void resources(const std::vector<store::ResourceRecord>& before,
                   const std::vector<store::ResourceRecord>& after) {
        std::map<std::pair<std::string, std::string>, const store::ResourceRecord*> is;
        for (const auto& used : after) is[{used.kernel, used.arch}] = &used;
        for (const auto& old : before) {
            const std::string of = family_of_kernel(old.kernel);
            if (!wanted(of)) continue;
            ++family(of).resources;
            const auto now = is.find({old.kernel, old.arch});
            if (now == is.end())
                found({Kind::kernel_lost, of, "", old.kernel, "compiled", "not compiled", ""});
            else if (!old.spills() && now->second->spills())
                found({Kind::spill, of, "", old.kernel, "no spill",
                       fmt::format("{} bytes of scratch a lane, {} values spilled",
                                   now->second->scratch_bytes, now->second->vgpr_spills),
                       fmt::format("{} vector registers before, {} after", old.vgprs, now->second->vgprs),
                       static_cast<double>(std::max(now->second->scratch_bytes, now->second->vgpr_spills))});
        }
    }

    void counts(const std::vector<store::CountRecord>& before, const std::vector<store::CountRecord>& after) {
        std::map<std::string, std::int64_t> is;
        for (const auto& count : after) is[count.subject] = count.value;
        for (const auto& old : before) {
            const std::string of = family_of_count(old.subject);
            if (!wanted(of)) continue;
            ++family(of).counts;
            const auto now = is.find(old.subject);
            const std::int64_t value = now == is.end() ? 0 : now->second;
            if (value != old.value)
                found({Kind::count, of, "", old.subject, fmt::format("{} {}", old.value, old.unit),
                       fmt::format("{} {}", value, old.unit), fmt::format("{:+}", value - old.value),
                       static_cast<double>(value)});
        }
        std::set<std::string_view> was;
        for (const auto& old : before) was.insert(old.subject);
        for (const auto& count : after)
            if (!was.contains(count.subject))
                found({Kind::count, family_of_count(count.subject), "", count.subject, "not there",
                       fmt::format("{} {}", count.value, count.unit), "", static_cast<double>(count.value)});
    }

    Budget budget_;
    std::span<const store::AcceptedRecord> accepted_;
    std::string only_, series_;
    std::map<std::string, FamilyVerdict> families_;
    Verdict verdict_;
};

} // namespace

std::vector<std::string> family_names() {
    std::vector<std::string> names{no_family, any_family};
    for (const auto& [family, name] : EnumTable<ApiFamily>::names) names.emplace_back(name);
    return names;
}

std::int64_t FamilyVerdict::red_findings() const {
    return std::count_if(findings.begin(), findings.end(), [](const Finding& f) { return f.red(); });
}

std::int64_t Verdict::compared() const {
    std::int64_t sum = 0;
    for (const FamilyVerdict& family : families) sum += family.compared();
    return sum;
}

std::int64_t Verdict::red_findings() const {
    std::int64_t sum = 0;
    for (const FamilyVerdict& family : families) sum += family.red_findings();
    return sum;
}

Verdict compare(const Side& before, const Side& after, const Budget& budget,
                std::span<const store::AcceptedRecord> accepted, std::optional<ApiFamily> family) {
    Comparison comparison(budget, accepted, family);
    for (const Series& old : before.series) {
        const auto now = std::find_if(after.series.begin(), after.series.end(),
                                      [&](const Series& series) { return series.name == old.name; });
        if (now == after.series.end())
            comparison.lost_series(old);
        else if (!old.run.id.empty() && now->run.id == old.run.id)
            comparison.note(
                fmt::format("{}: the run of {} stands on both sides, and was not compared with itself",
                            shown(old.name), old.run.started));
        else
            comparison.series(old, *now);
    }
    for (const auto& [name, began] : after.unfinished) {
        const auto older = std::ranges::find(after.series, name, &Series::name);
        comparison.unfinished_series(name, began, older == after.series.end() ? nullptr : &*older);
    }
    for (const Series& series : after.series)
        if (std::none_of(before.series.begin(), before.series.end(),
                         [&](const Series& old) { return old.name == series.name; }))
            comparison.note(
                fmt::format("{}: is new, there is nothing to compare it with", shown(series.name)));
    for (const Side* side : {&before, &after})
        for (const std::string& sentence : side->notes)
            if (side == &before || std::ranges::find(before.notes, sentence) == before.notes.end())
                comparison.note(sentence);
    Verdict verdict = std::move(comparison).conclude();
    verdict.before = before.label;
    verdict.after = after.label;
    return verdict;
}

std::vector<store::AcceptedRecord> acceptable(const Verdict& verdict, std::string_view only,
                                              const std::string& reason, const std::string& date) {
    std::vector<store::AcceptedRecord> records;
    for (const FamilyVerdict& family : verdict.families)
        for (const Finding& finding : family.findings)
            if (finding.red() && finding.kind != Kind::not_green &&
                (to_string(finding.kind) == only || finding.subject.find(only) != std::string::npos))
                records.push_back({date, std::string(to_string(finding.kind)), finding.series,
                                   finding.subject, finding.before, finding.after, finding.value, reason});
    return records;
}

} // namespace fmha::regression
