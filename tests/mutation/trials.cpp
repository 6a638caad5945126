#include "tests/mutation/trials.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/run/candidate.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/case_tensors.hpp"
#include "harness/run/execution.hpp"
#include "tests/mutation/checks.hpp"
#include "tests/mutation/planted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <sys/resource.h>
#include <utility>

namespace fmha::harness::test {

using fmha::test::checks;
using fmha::test::Mutant;
using fmha::test::mutants;
using fmha::test::mutation;

namespace {

constexpr std::array<std::string_view, 4> kind_names{"killed", "unminded", "unchanged", "unreached"};

/// Cases whose results a mutant may change without that a gate minds before it is given up.
constexpr std::size_t most_unminded = 12;

/// Seconds of the processor. Kernels with a mistake may take so many and ten times what they take without, which is seconds for 2^16 keys.
constexpr rlim_t least_patience = 3, patience_to_judge = 20;
/// The same of a check. The longest takes three, and more beside others: what ended there counted as noticed.
constexpr rlim_t patience_to_check = 15;

/// Seconds of the processor that this process has taken.
double processor_time() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}
rlim_t whole_seconds(double seconds) {
    return static_cast<rlim_t>(std::ceil(seconds));
}

/// Ends this process when it has computed for so many seconds more: a loop that is wrong by one may have no end.
void limit_processor_time(rlim_t seconds) {
    rlimit limit{};
    getrlimit(RLIMIT_CPU, &limit);
    limit.rlim_cur = whole_seconds(processor_time()) + seconds;
    setrlimit(RLIMIT_CPU, &limit);
}

void leave_no_core() {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
}

/// Whether the cases of a folder run the program of a header; true for headers that programs share.
bool concerns(std::string_view header, std::string_view folder) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 14> programs{
        {{"fmha_bwd", "bwd"},
         {"bwd_", "bwd"},
         {"dq_partials", "bwd"},
         {"key_jobs", "bwd"},
         {"fmha_fwd_appendkv", "appendkv"},
         {"fmha_fwd_splitkv", "splitkv"},
         {"fmha_fwd_pagedkv", "pagedkv"},
         {"fmha_batch_prefill", "batch_prefill"},
         {"prefill_cache", "batch_prefill"},
         {"fmha_fwd", "fwd"},
         {"cache", "pagedkv splitkv batch_prefill"},
         {"packed_heads", "pagedkv splitkv batch_prefill"},
         {"pages", "pagedkv splitkv batch_prefill appendkv"},
         {"", "fwd"}}};
    for (const auto& [begin, folders] : programs)
        if (header.starts_with(begin)) return folders.find(folder) != std::string_view::npos;
    return true;
}

std::size_t place_count() {
    return static_cast<std::size_t>(mutants().back().place) + 1;
}

std::string_view folder_of(const Case& c) {
    return std::string_view(c.id).substr(0, c.id.find('/'));
}

} // namespace

std::string_view to_string(Verdict::Kind kind) {
    return kind_names[static_cast<std::size_t>(kind)];
}

/// A case, its kernels, their results without a mistake, and the places that they come through.
class Trials::Prepared {
  public:
    Prepared(const Case& c, const KernelSource& source, const KernelSource& original, const std::string& arch)
        : tensors_(family_of(c.family), c, fp8_flavour(arch), CaseRunOptions{}),
          candidate_(planned_candidate(source, family_of(c.family), c, to_problem(c, arch))),
          visited_(place_count()) {
        const auto planted = std::exchange(mutation(), {.place = -1, .by = 0, .visited = visited_.data()});
        const double before = processor_time();
        right_ = outputs();
        patience_ += whole_seconds(10.0 * (processor_time() - before));
        mutation() = planted;

        Candidate mutated = std::exchange(candidate_, {});
        candidate_ = planned_candidate(original, family_of(c.family), c, to_problem(c, arch));
        if (differs())
            throw InputError(c.id + ": the copies of the headers compute something else, without a mistake");
        candidate_ = std::move(mutated);
    }

    bool comes_through(int place) const { return visited_[static_cast<std::size_t>(place)] != 0; }
    /// Seconds of the processor that the kernels may take with a mistake.
    rlim_t patience() const { return patience_; }
    /// Whether the kernels write something else by now.
    bool differs() {
        const StageOutputs now = outputs();
        for (std::size_t stage = 0; stage < now.size(); ++stage)
            if (!right_[stage].first_difference(now[stage], [](const std::string&) { return true; }).empty())
                return true;
        return stray_;
    }

  private:
    StageOutputs outputs() {
        Execution execution(tensors_.here(), {}, candidate_);
        StageOutputs written = execution.first();
        stray_ = std::ranges::any_of(execution.gates(), &GateVerdict::failed);
        return written;
    }

    CaseTensors tensors_;
    Candidate candidate_;
    std::vector<unsigned char> visited_;
    bool stray_ = false;
    rlim_t patience_ = least_patience;
    StageOutputs right_;
};

Trials::Trials(std::vector<Case> cases, std::shared_ptr<const KernelSource> source,
               std::shared_ptr<const KernelSource> original, std::string arch, bool with_checks)
    : cases_(std::move(cases)), source_(std::move(source)), original_(std::move(original)),
      arch_(std::move(arch)), prepared_(cases_.size()), kills_(cases_.size()) {
    if (!with_checks) return;
    for (const auto& check : checks()) {
        std::vector<unsigned char>& through = through_.emplace_back(place_count());
        const auto planted = std::exchange(mutation(), {.place = -1, .by = 0, .visited = through.data()});
        const bool right = check.right();
        mutation() = planted;
        if (!right) throw InputError(fmt::format("checks/{}: wrong without a mistake", check.name));
    }
}

Trials::~Trials() = default;

Trials::Prepared& Trials::prepared(std::size_t i) {
    if (!prepared_[i]) prepared_[i] = std::make_unique<Prepared>(cases_[i], *source_, *original_, arch_);
    return *prepared_[i];
}

void Trials::prepare_all() {
    for (std::size_t i = 0; i < cases_.size(); ++i) (void)prepared(i);
}

std::vector<std::size_t> Trials::order_for(const Mutant& mutant) const {
    std::vector<std::uint32_t> rank(cases_.size());
    for (std::size_t i = 0; i < rank.size(); ++i)
        rank[i] = (concerns(mutant.header, folder_of(cases_[i])) ? 1'000'000U : 0U) + kills_[i];
    std::vector<std::size_t> order(cases_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return rank[i]; });
    return order;
}

std::string Trials::failed_check(const Mutant& mutant, std::atomic<std::uint32_t>& tried_on,
                                 bool& reached) const {
    for (std::size_t i = 0; i < through_.size(); ++i) {
        if (through_[i][static_cast<std::size_t>(mutant.place)] == 0) continue;
        reached = true;
        tried_on = static_cast<std::uint32_t>(cases_.size() + i + 1);
        limit_processor_time(patience_to_check);
        mutation().place = mutant.place;
        mutation().by = mutant.by;
        const bool right = checks()[i].right();
        mutation().place = -1;
        if (!right) return name_of(tried_on);
    }
    return {};
}

std::string Trials::name_of(std::uint32_t tried_on) const {
    const std::size_t i = tried_on - 1;
    if (i >= cases_.size() + checks().size()) return "unknown";
    return i < cases_.size() ? cases_[i].id : fmt::format("checks/{}", checks()[i - cases_.size()].name);
}

std::string Trials::notice(const Mutant& mutant, std::atomic<std::uint32_t>& tried_on) {
    leave_no_core();
    CaseRunOptions options;
    options.arch = arch_;
    Verdict verdict;
    bool reached = false;
    if (const std::string check = failed_check(mutant, tried_on, reached); !check.empty())
        return fmt::format("{}\tcheck\t{}", to_string(Verdict::Kind::killed), check);
    if (reached) verdict.kind = Verdict::Kind::unchanged;
    std::size_t unminded = 0;
    for (const std::size_t i : order_for(mutant)) {
        limit_processor_time(patience_to_judge);
        mutation().place = -1;
        Prepared& here = prepared(i);
        if (!here.comes_through(mutant.place)) continue;
        tried_on = static_cast<std::uint32_t>(i + 1);
        mutation().place = mutant.place;
        mutation().by = mutant.by;
        if (verdict.kind == Verdict::Kind::unreached) verdict.kind = Verdict::Kind::unchanged;
        limit_processor_time(here.patience());
        if (!here.differs()) continue;
        limit_processor_time(patience_to_judge);
        for (const CaseResult& result : run_case(cases_[i], *source_, options)) {
            if (is_green(result.outcome)) continue;
            const GateVerdict* gate = result.first_failure();
            ++kills_[i];
            return fmt::format("{}\t{}\t{}", to_string(Verdict::Kind::killed),
                               gate != nullptr ? gate->gate : std::string(fmha::to_string(result.outcome)),
                               result.name);
        }
        verdict = {Verdict::Kind::unminded, "", cases_[i].id};
        if (++unminded == most_unminded) break;
    }
    return fmt::format("{}\t{}\t{}", to_string(verdict.kind), verdict.gate, verdict.case_name);
}

void Trials::run(std::span<const Mutant> tried, int jobs,
                 const std::function<void(std::size_t, const Verdict&)>& on_verdict) {
    const SharedNumbers tried_on(tried.size());
    PoolOptions options;
    options.jobs = jobs;
    run_isolated(
        tried.size(), options, [&](std::size_t i) { return notice(tried[i], tried_on[i]); },
        [&](std::size_t i, const TaskEnd& end) {
            Verdict verdict{Verdict::Kind::killed, "process ended"};
            const auto first = end.answer.find('\t'), second = end.answer.find('\t', first + 1);
            const auto kind = std::ranges::find(kind_names, end.answer.substr(0, first));
            // A kernel may write over everything that its process knows.
            if (end.kind == TaskEnd::Kind::done && second != std::string::npos && kind != kind_names.end()) {
                verdict.kind = static_cast<Verdict::Kind>(kind - kind_names.begin());
                verdict.gate = end.answer.substr(first + 1, second - first - 1);
                verdict.case_name = end.answer.substr(second + 1);
            } else {
                const std::uint32_t at = tried_on[i];
                // Without a kernel that ran with the mistake, or with a sentence of the harness, nothing was noticed.
                if (at == 0 || end.kind == TaskEnd::Kind::bad_input)
                    throw std::runtime_error(tried[i].name() + ": " + end.answer);
                if (at <= cases_.size()) ++kills_[at - 1];
                verdict.case_name = name_of(at);
            }
            on_verdict(i, verdict);
            return true;
        });
}

} // namespace fmha::harness::test
