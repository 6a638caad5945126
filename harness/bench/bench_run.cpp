#include "harness/bench/bench_run.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/field_json.hpp"
#include "harness/run/worker_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace fmha::harness {
namespace {

std::string key_of(const std::string& name, const std::string& kernel, std::int64_t round) {
    return fmt::format("{}\n{}\n{}", name, kernel, round);
}

/// Takes a line that `append` wrote. False for another one. Throws InputError for a row that an earlier line tells of: a run appends
/// each row once, so that one of the lines is not its own.
bool take_line(std::string_view line, std::unordered_map<std::string, BenchRow>& finished) {
    BenchRow row;
    try {
        row = unpack_row(Json::parse(line));
    } catch (const InputError&) {
        return false;
    }
    const std::string name = row.name, kernel = row.kernel;
    const std::int64_t round = row.round;
    if (!finished.try_emplace(key_of(name, kernel, round), std::move(row)).second)
        throw InputError(fmt::format("{} on {} in round {} has an earlier line", kernel, name, round));
    return true;
}

/// One kernel, or all of its stages, on one case.
struct Pair {
    std::size_t c = 0;
    std::string kernel;
    std::vector<KernelConfig> configs; ///< of its stages
    std::int64_t round = 1;
};

/// The state that a worker process keeps from one task to the next. In the process that forks workers it stays empty; one that forks none opens
/// its device first, because that looks in a child, which a device that planning has opened already does not survive.
class Bencher {
  public:
    explicit Bencher(const BenchRun& run) : run_(run) {
        if (run.workers == 0) timing_ = run.timing();
    }

    /// The names of the kernels of a case, or the row that says why there are none.
    Json plan(std::size_t c) {
        const PlannedCase planned = plan_case(run_.cases[c], run_.source, run_.arch, run_.options);
        if (planned.refused) return {{"refused", pack(*planned.refused)}};
        Json kernels = Json::array();
        for (const Candidate& candidate : planned.candidates) {
            Json configs = Json::array();
            for (const StageKernel& stage : candidate.stages)
                if (stage.instance) configs.push_back(fields_to_json(stage.instance->config()));
            kernels.push_back(Json{{"name", candidate.name()}, {"configs", std::move(configs)}});
        }
        return {{"kernels", std::move(kernels)}};
    }

    BenchRow time(const Pair& pair) {
        if (!timing_) timing_ = run_.timing();
        if (!timed_ || case_ != pair.c) {
            const Case& of = run_.cases[pair.c];
            timed_.reset();
            planned_ = plan_case(of, run_.source, run_.arch, run_.options);
            try {
                timed_ = std::make_unique<CaseBench>(of, run_.arch, *timing_, run_.options);
            } catch (const NoRoomForTensor& error) {
                return without_room(of, pair, error.what());
            }
            case_ = pair.c;
        }
        const auto found = std::ranges::find(planned_.candidates, pair.kernel, &Candidate::name);
        if (found == planned_.candidates.end())
            throw Error(fmt::format("{} is planned once and not again", pair.kernel));
        BenchRow row = timed_->time(*found);
        row.round = pair.round;
        return row;
    }

    static BenchRow without_room(const Case& c, const Pair& pair, const std::string& why) {
        BenchRow row;
        row.name = c.id;
        row.kernel = pair.kernel;
        row.round = pair.round;
        row.message = why;
        return row;
    }

    bool spent() const { return timing_ && timing_->target()->spent(); }

  private:
    const BenchRun& run_;
    std::unique_ptr<TimingTarget> timing_;
    PlannedCase planned_;
    std::unique_ptr<CaseBench> timed_;
    std::size_t case_ = 0;
};

/// Runs task(0) … task(count − 1) as the run says. Returns false when it was stopped.
bool run_tasks(const BenchRun& run, std::size_t count, const Bencher& bencher,
               const std::function<Json(std::size_t)>& task,
               const std::function<void(std::size_t, const TaskEnd&)>& on_end) {
    std::size_t ended = 0;
    if (run.workers == 0) {
        for (; ended < count && !(run.stop && run.stop()); ++ended) {
            TaskEnd end;
            try {
                end.answer = task(ended).dump();
            } catch (...) {
                end = end_of_exception();
            }
            on_end(ended, end);
        }
    } else {
        const PoolOptions pool{run.workers, run.timeout, run.stop, [&] { return bencher.spent(); }};
        run_isolated(
            count, pool, [&](std::size_t n) { return task(n).dump(); },
            [&](std::size_t n, const TaskEnd& end) {
                ++ended;
                on_end(n, end);
                return true;
            });
    }
    return ended == count;
}

/// A kernel, or the planning of a case, that ended without an answer.
BenchRow lost_row(const Case& c, const Pair& pair, const TaskEnd& end) {
    if (end.kind == TaskEnd::Kind::bad_input) throw InputError(fmt::format("{}: {}", c.id, end.answer));
    BenchRow row;
    row.name = c.id;
    row.kernel = pair.kernel;
    row.kernels = pair.configs;
    row.round = pair.round;
    row.message = end.answer;
    row.outcome = end.kind == TaskEnd::Kind::timed_out   ? BenchOutcome::timed_out
                  : end.kind == TaskEnd::Kind::no_memory ? BenchOutcome::not_run
                                                         : BenchOutcome::crashed;
    return row;
}

/// The row that a worker sent. A worker whose answer cannot be read has crashed: a kernel wrote over its memory.
BenchRow answered(const Case& c, const Pair& pair, const TaskEnd& end) {
    if (end.kind != TaskEnd::Kind::done) return lost_row(c, pair, end);
    try {
        return unpack_row(Json::parse(end.answer));
    } catch (const InputError& error) {
        return lost_row(c, pair, {TaskEnd::Kind::crashed, fmt::format("sent no row: {}", error.what())});
    }
}

} // namespace

BenchJournal::BenchJournal(const std::filesystem::path& file, const Json& identity, const std::string& run_id)
    : lines_(file, "fmha bench", "fmha-bench-journal-1", identity, run_id,
             [this](std::string_view line) { return take_line(line, finished_); }) {}

const BenchRow* BenchJournal::finished(const std::string& name, const std::string& kernel,
                                       std::int64_t round) const {
    const auto found = finished_.find(key_of(name, kernel, round));
    return found == finished_.end() ? nullptr : &found->second;
}

void BenchJournal::append(const BenchRow& row) {
    lines_.append(row.name, pack(row));
}

BenchEnd bench_cases(const BenchRun& run, BenchJournal* journal,
                     const std::function<void(std::size_t, const BenchRow&)>& on_row) {
    Bencher bencher(run);
    BenchEnd result;
    std::vector<std::vector<Pair>> kernels(run.cases.size());
    const auto planned = [&](std::size_t c, const TaskEnd& end) {
        if (end.kind != TaskEnd::Kind::done) {
            on_row(c, lost_row(run.cases[c], {c, {}, {}, 1}, end));
            return;
        }
        const Json answer = Json::parse(end.answer);
        if (answer.contains("refused")) {
            on_row(c, unpack_row(answer.at("refused")));
            return;
        }
        for (const Json& kernel : answer.at("kernels")) {
            Pair pair{c, kernel.at("name").get<std::string>(), {}, 1};
            for (const Json& config : kernel.at("configs"))
                pair.configs.push_back(fields_from_json<KernelConfig>(config, pair.kernel));
            kernels[c].push_back(std::move(pair));
        }
    };
    if (!run_tasks(
            run, run.cases.size(), bencher, [&](std::size_t c) { return bencher.plan(c); }, planned))
        return {.interrupted = true};

    std::vector<Pair> pairs;
    for (std::int64_t round = 1; round <= run.rounds; ++round)
        for (std::size_t c = 0; c < run.cases.size(); ++c)
            for (Pair pair : kernels[c]) {
                pair.round = round;
                const BenchRow* earlier =
                    journal == nullptr ? nullptr : journal->finished(run.cases[c].id, pair.kernel, round);
                if (earlier == nullptr) {
                    pairs.push_back(std::move(pair));
                    continue;
                }
                ++result.resumed;
                on_row(c, *earlier);
            }
    if (run.on_planned) run.on_planned(pairs.size());
    const auto timed = [&](std::size_t n, const TaskEnd& end) {
        const Pair& pair = pairs[n];
        const BenchRow row = answered(run.cases[pair.c], pair, end);
        // Neither a kill from outside nor a lack of memory settles anything about the kernel.
        if (journal != nullptr && !end.killed_from_outside && end.kind != TaskEnd::Kind::no_memory)
            journal->append(row);
        on_row(pair.c, row);
    };
    result.interrupted = !run_tasks(
        run, pairs.size(), bencher, [&](std::size_t n) { return pack(bencher.time(pairs[n])); }, timed);
    return result;
}

} // namespace fmha::harness
