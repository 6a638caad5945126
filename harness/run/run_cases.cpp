#include "harness/run/run_cases.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/results/result_json.hpp"
#include "harness/run/case_tensors.hpp"
#include "harness/run/worker_pool.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <optional>

namespace fmha::harness {
namespace {

class CaseRun {
  public:
    CaseRun(const std::vector<Case>& cases, const KernelSource& source, const Target& target,
            const RunOptions& options, const InterruptWatch& interrupt, Journal* journal)
        : cases_(cases), source_(source), target_(target), options_(options), interrupt_(interrupt),
          journal_(journal), results_(cases.size()), ledger_(options.rules) {
        for (std::size_t i = 0; i < cases.size(); ++i)
            if (const auto* earlier = finished_before(cases[i].id)) {
                keep(i, *earlier);
            } else {
                require_runnable(cases[i], options.of_case.arch);
                open_.push_back(i);
            }
    }

    void in_this_process() {
        for (const std::size_t i : open_) {
            if (over() || interrupt_.requested()) return;
            report_progress(i);
            std::vector<CaseResult> results;
            TaskEnd end;
            try {
                results = run_case(cases_[i], source_, of_case(0));
            } catch (...) {
                end = end_of_exception();
            }
            // Not within the try: what a listener throws is no end of the case.
            if (end.kind == TaskEnd::Kind::done)
                settle(i, on_device(0, std::move(results)));
            else
                settle_end(i, end);
            // Nothing can do it while the next case runs, however long that takes.
            if (journal_ != nullptr) journal_->synchronise();
        }
    }

    void in_workers() {
        if (over()) return;
        const auto stop = [this] {
            if (journal_ != nullptr) journal_->keep_durable();
            return interrupt_.requested();
        };
        PoolOptions pool{options_.jobs, options_.timeout, stop, [this] { return target_.spent(); }};
        std::size_t my_place = 0; // in a worker
        if (!target_.devices().empty())
            pool.prepare = [&](std::size_t place) {
                my_place = place;
                target_.enter(place);
            };
        pool.on_closed = [this](std::size_t place, const std::string& why) { lose_device(place, why); };
        run_isolated(
            open_.size(), pool,
            [&](std::size_t n) { return pack(run_case(cases_[open_[n]], source_, of_case(my_place))); },
            [this](std::size_t n, const TaskEnd& end) {
                const std::size_t i = open_[n];
                report_progress(i);
                settle_end(i, end);
                return !over();
            });
    }

    /// Everything in the order of the cases.
    std::vector<CaseResult> all() && {
        if (journal_ != nullptr) journal_->synchronise();
        std::vector<CaseResult> all;
        for (std::size_t i = 0; i < cases_.size(); ++i) {
            if (!results_[i])
                results_[i] = {
                    unfinished_result(cases_[i], options_.of_case,
                                      over() ? NotRunReason::after_failure : NotRunReason::interrupted)};
            std::move(results_[i]->begin(), results_[i]->end(), std::back_inserter(all));
        }
        return all;
    }

  private:
    const std::vector<CaseResult>* finished_before(const std::string& name) const {
        if (journal_ == nullptr) return nullptr;
        const auto found = journal_->finished().find(name);
        return found == journal_->finished().end() ? nullptr : &found->second;
    }

    void settle(std::size_t i, std::vector<CaseResult> results) {
        judge_known(results);
        // A case that had no memory may have it when the run is continued.
        const bool settled = std::ranges::none_of(results, [](const CaseResult& result) {
            return result.not_run_reason == NotRunReason::no_memory ||
                   result.not_run_reason == NotRunReason::no_device;
        });
        if (journal_ != nullptr && settled) journal_->append(cases_[i].id, results);
        keep(i, std::move(results));
    }

    /// Bad input ends the run, in a worker as in this process.
    void settle_end(std::size_t i, const TaskEnd& end) {
        if (end.kind == TaskEnd::Kind::bad_input)
            throw InputError(fmt::format("{}: {}", cases_[i].id, end.answer));
        std::vector<CaseResult> results;
        if (end.kind == TaskEnd::Kind::no_process)
            results = {lost_result(cases_[i], options_.of_case, {end.kind, all_devices_lost()})};
        else
            results = on_device(end.place, answered(cases_[i], of_case(end.place), end));
        if (!end.killed_from_outside) return settle(i, std::move(results));
        judge_known(results);
        keep(i, std::move(results));
    }

    void judge_known(std::vector<CaseResult>& results) const {
        if (options_.of_case.waivers != nullptr) options_.of_case.waivers->judge(results);
    }

    void keep(std::size_t i, std::vector<CaseResult> results) {
        for (const CaseResult& result : results) ledger_.add(result);
        if (options_.on_results) options_.on_results(cases_[i].id, results);
        results_[i] = std::move(results);
    }

    /// The options for a case on the device of a worker, whose reproducing command names this device alone.
    CaseRunOptions of_case(std::size_t place) const {
        CaseRunOptions options = options_.of_case;
        if (target_.devices().size() > 1) options.given.target_flags = target_.flags_of(place);
        return options;
    }

    std::vector<CaseResult> on_device(std::size_t place, std::vector<CaseResult> results) const {
        for (CaseResult& result : results) result.device = target_.device_of(place);
        return results;
    }

    void lose_device(std::size_t place, const std::string& why) {
        lost_devices_.push_back(fmt::format("device {}: {}", target_.device_of(place).value_or(0), why));
        if (options_.on_device_lost)
            options_.on_device_lost(fmt::format("a device got no more cases because it cannot be opened: {}",
                                                lost_devices_.back()));
    }

    std::string all_devices_lost() const {
        return fmt::format("no device is left that can be opened: {}", fmt::join(lost_devices_, "; "));
    }

    /// The run is red for good, and was to end then.
    bool over() const { return options_.fail_fast && ledger_.red(); }

    void report_progress(std::size_t i) const {
        if (options_.on_case) options_.on_case(cases_[i].id);
    }

    const std::vector<Case>& cases_;
    const KernelSource& source_;
    const Target& target_;
    const RunOptions& options_;
    const InterruptWatch& interrupt_;
    Journal* journal_;
    std::vector<std::optional<std::vector<CaseResult>>> results_; ///< absent: not finished
    std::vector<std::size_t> open_;                               ///< indices of the cases to run
    std::vector<std::string> lost_devices_;                       ///< and why, a clause each
    Ledger ledger_;                                               ///< of the finished cases
};

} // namespace

std::vector<CaseResult> run_cases(const std::vector<Case>& cases, const KernelSource& source,
                                  const Target& target, const RunOptions& options,
                                  const InterruptWatch& interrupt, Journal* journal) {
    CaseRun run(cases, source, target, options, interrupt, journal);
    if (options.jobs == 0)
        run.in_this_process();
    else
        run.in_workers();
    return std::move(run).all();
}

} // namespace fmha::harness
