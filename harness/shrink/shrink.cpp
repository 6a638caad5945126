#include "harness/shrink/shrink.hpp"

#include "dispatcher/system/stopwatch.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/check_form.hpp"
#include "harness/cases/plain_case.hpp"
#include "harness/results/first_line.hpp"
#include "harness/shrink/steps.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace fmha::harness {
namespace {

class Shrinker {
  public:
    Shrinker(const Case& red, CaseResult result, const Case& plain, const CaseJudge& judge,
             const ShrinkOptions& options, const RedMark& mark)
        : plain_(plain), judge_(judge), options_(options), mark_(mark), current_(named_by_plain(red, plain)),
          result_(std::move(result)) {
        endings_[current_.id] = "";
    }

    void run() {
        for (;;) {
            const std::string before = current_.id;
            // The sooner a case is small, the less every further try takes.
            take_steps([&] { return size_steps(current_, plain_); });
            make_numbers_smaller();
            take_steps([&] { return feature_steps(current_, plain_); });
            take_steps([&] { return field_steps(current_, plain_); });
            take_steps([&] { return entry_steps(current_); });
            take_steps([&] { return value_steps(current_); });
            if (out_of_time_) return;
            if (current_.id != before) continue;
            take_steps([&] { return pair_steps(current_, plain_); });
            take_steps([&] { return exchange_steps(current_, plain_); });
            if (current_.id == before) return;
        }
    }

    Shrunk answer() {
        Shrunk shrunk{current_, result_, mark_, {}, 0, 0.0, !out_of_time_};
        for (const CaseField* field : unplain_fields(current_, plain_))
            shrunk.needed.push_back({std::string(field->name), field->print(current_), why_needed(*field)});
        shrunk.tried = tried_;
        shrunk.seconds = watch_.seconds();
        return shrunk;
    }

  private:
    /// How `candidate` ended: "" = red by the mark. Each case runs once.
    const std::string& ending_of(const Case& candidate) {
        const auto known = endings_.find(candidate.id);
        if (known != endings_.end()) return known->second;
        static const std::string too_late = not_tried;
        if (over()) return too_late;
        return endings_[candidate.id] = tried_ending(candidate);
    }

    std::string tried_ending(const Case& candidate) {
        ++tried_;
        try {
            check_form(candidate, candidate.id);
            const std::vector<CaseResult> results = judge_(candidate);
            if (const CaseResult* marked = find_marked(results, mark_)) {
                last_red_ = *marked;
                return "";
            }
            const auto red = std::ranges::find_if(
                results, [](const CaseResult& result) { return !is_green(result.outcome); });
            if (results.empty()) return over() ? not_tried : "without a result";
            return ending(red == results.end() ? results.front() : *red);
        } catch (const InputError& error) {
            std::string sentence = error.what();
            if (sentence.starts_with(candidate.id + ": ")) sentence.erase(0, candidate.id.size() + 2);
            return "not a case: " + first_line(sentence);
        }
    }

    bool over() {
        out_of_time_ = out_of_time_ ||
                       (options_.patience.count() > 0 &&
                        watch_.seconds() > std::chrono::duration<double>(options_.patience).count()) ||
                       (options_.stop && options_.stop());
        return out_of_time_;
    }

    /// Goes to `step` if that is red by the mark. A case that was left is never returned to, so that steps come to an end.
    bool take(Case step) {
        step = named_by_plain(std::move(step), plain_);
        if (endings_.contains(step.id) || !ending_of(step).empty() || out_of_time_) return false;
        current_ = std::move(step);
        result_ = last_red_;
        return true;
    }

    template <class Steps>
    void take_steps(const Steps& steps) {
        for (bool moved = true; moved && !out_of_time_;) {
            moved = false;
            for (Case& step : steps())
                if (take(std::move(step))) {
                    moved = true;
                    break;
                }
        }
    }

    void make_numbers_smaller() {
        // A number that became smaller may leave fewer to look at.
        for (std::size_t n = 0;; ++n) {
            const auto numbers = shrinkable_numbers(current_, plain_);
            if (n >= numbers.size() || out_of_time_) return;
            halve(numbers[n]);
        }
    }

    /// Halves the interval between a value that is not red and the present one, which is.
    void halve(const ShrinkableNumber& number) {
        std::size_t low = 0, high = number.to.size();
        if (number.to.empty() || take(with_number(current_, number, number.to.front()))) return;
        while (low + 1 < high && !out_of_time_) {
            const std::size_t middle = low + (high - low) / 2;
            (take(with_number(current_, number, number.to[middle])) ? high : low) = middle;
        }
    }

    /// With the plain value, and for a number with the next smaller one.
    std::string why_needed(const CaseField& field) {
        const auto with = [&](const Case& simpler) {
            const Case named = named_by_plain(simpler, plain_);
            const std::string& end = ending_of(named);
            return fmt::format("{} with {}", end.empty() ? "red too, but no simpler," : end,
                               field.print(named));
        };
        std::string why = with(with_plain(current_, plain_, field.elementary()));
        for (const ShrinkableNumber& number : shrinkable_numbers(current_, plain_))
            if (number.field == &field && number.to.size() > 1)
                why += ", " + with(with_number(current_, number, number.to.back()));
        return why;
    }

    static constexpr const char* not_tried = "not tried";

    const Case& plain_;
    const CaseJudge& judge_;
    const ShrinkOptions& options_;
    const RedMark& mark_;
    Case current_;
    CaseResult result_, last_red_;
    std::map<std::string, std::string> endings_; ///< of all cases that were run, by name
    std::int64_t tried_ = 0;
    bool out_of_time_ = false;
    system::Stopwatch watch_;
};

std::optional<Shrunk> shrink_marked(const Case& red, const Case& plain, const CaseJudge& judge,
                                    const ShrinkOptions& options, const std::vector<CaseResult>& results,
                                    const RedMark& mark) {
    const CaseResult* marked = find_marked(results, mark);
    if (marked == nullptr) return std::nullopt;
    Shrinker shrinker(red, *marked, plain, judge, options, mark);
    shrinker.run();
    return shrinker.answer();
}

} // namespace

std::optional<Shrunk> shrink(const Case& red, const Case& plain, const CaseJudge& judge,
                             const ShrinkOptions& options) {
    const std::vector<CaseResult> results = judge(red);
    const auto first =
        std::ranges::find_if(results, [](const CaseResult& result) { return !is_green(result.outcome); });
    if (first == results.end()) return std::nullopt;
    return shrink_marked(red, plain, judge, options, results, RedMark(*first));
}

std::optional<Shrunk> shrink(const Case& red, const Case& plain, const CaseJudge& judge,
                             const ShrinkOptions& options, const RedMark& mark) {
    return shrink_marked(red, plain, judge, options, judge(red), mark);
}

std::string to_text(const Shrunk& shrunk, const std::string& repeat) {
    std::string text = fmt::format("SMALLER {}\n  red by   {}\n", shrunk.smallest.id, shrunk.mark.text());
    if (!shrunk.result.kernel.empty()) text += fmt::format("  kernel   {}\n", shrunk.result.kernel);
    for (const NeededField& needed : shrunk.needed)
        text += fmt::format("  needs    {}={}: {}\n", needed.field, needed.value, needed.why);
    if (shrunk.needed.empty()) text += "  needs    nothing: the plain case of the family is red\n";
    text += fmt::format("  tried    {} cases in {:.1f} s{}\n", shrunk.tried, shrunk.seconds,
                        shrunk.complete ? "" : "; the time was up, so a smaller one may exist");
    return text + fmt::format("  repeat   {}\n", repeat);
}

} // namespace fmha::harness
