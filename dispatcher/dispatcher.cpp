#include "dispatcher/dispatcher.hpp"

#include "dispatcher/types/error.hpp"

#include <algorithm>

namespace fmha {

namespace {

/// An entry that keeps the snapshot it lies in alive.
std::shared_ptr<const KernelEntry> pinned(const std::shared_ptr<const Snapshot>& kernels,
                                          const KernelEntry* entry) {
    return entry != nullptr ? std::shared_ptr<const KernelEntry>(kernels, entry) : nullptr;
}

/// A dispatcher whose heuristic this thread is asking, and those whose heuristics led to that question. A count in the
/// dispatcher would take another thread's question for a nested one.
class Asking {
  public:
    explicit Asking(const Dispatcher& dispatcher) : dispatcher_(&dispatcher), outer_(innermost) {
        innermost = this;
    }
    ~Asking() { innermost = outer_; }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

    static bool of(const Dispatcher& dispatcher) {
        const Asking* one = innermost;
        while (one != nullptr && one->dispatcher_ != &dispatcher) one = one->outer_;
        return one != nullptr;
    }

  private:
    static thread_local const Asking* innermost;

    const Dispatcher* dispatcher_;
    const Asking* outer_;
};

thread_local const Asking* Asking::innermost = nullptr;

} // namespace

Dispatcher::Dispatcher(const Registry& registry, std::vector<Device> devices)
    : registry_(&registry), devices_(std::move(devices)), policy_(std::make_shared<const SeqTunePolicy>()) {}

void Dispatcher::set_policy(std::shared_ptr<const SelectionPolicy> policy) {
    if (policy == nullptr) throw InputError("a dispatcher needs a selection policy, got none");
    policy_ = std::move(policy);
}

void Dispatcher::set_heuristic(Heuristic heuristic) {
    heuristic_ = std::move(heuristic);
}

const Device* Dispatcher::device_of(const Problem& problem) const {
    const auto device = std::find_if(devices_.begin(), devices_.end(),
                                     [&](const Device& one) { return one.arch == problem.arch; });
    return device != devices_.end() ? &*device : nullptr;
}

Problem Dispatcher::resolved(const Problem& problem) const {
    Problem full = problem;
    const Device* const device = device_of(problem);
    if (full.compute_units == 0 && device != nullptr) full.compute_units = device->compute_units;
    if (full.num_splits < 1) full.num_splits = choice_of_splits(full).num_splits;
    return full;
}

SplitChoice Dispatcher::choice_of_splits(const Problem& problem) const {
    const Device* const device = device_of(problem);
    const std::int64_t units =
        problem.compute_units != 0 || device == nullptr ? problem.compute_units : device->compute_units;
    return split_choice(problem, units, device != nullptr ? device->wave_size : 64);
}

std::vector<std::string> Dispatcher::preferred(const Problem& problem) const {
    const Heuristic asked = heuristic_; // which it may replace
    if (!asked || Asking::of(*this)) return {};
    const Asking asking(*this);
    try {
        return asked(problem);
    } catch (const std::exception& error) {
        std::throw_with_nested(HeuristicError(std::string("the selection heuristic threw: ") + error.what()));
    }
}

const KernelEntry* Dispatcher::choose(const Snapshot& kernels, const StageQuery& query,
                                      const Problem& problem) const {
    for (const std::string& identifier : preferred(problem))
        if (const auto config = parse_identifier<KernelConfig>(identifier))
            if (const KernelEntry* entry = kernels.find(*config);
                entry != nullptr && match(query, entry->config))
                return entry;
    return policy_->select(kernels, query);
}

std::shared_ptr<const KernelEntry> Dispatcher::select_kernel(const Problem& problem) const {
    validate(problem);
    const Problem full = resolved(problem);
    const auto kernels = registry_->snapshot();
    return pinned(kernels, choose(*kernels, make_query(full, full.signature.family), full));
}

ExecutionPlan Dispatcher::plan(const Problem& problem) const {
    return plan(problem, registry_->snapshot());
}

ExecutionPlan Dispatcher::plan(const Problem& problem, const std::shared_ptr<const Snapshot>& kernels) const {
    validate(problem);
    ExecutionPlan plan;
    plan.problem_ = resolved(problem);
    const Problem& full = plan.problem_;
    const KernelFamily main_family = main_stage(full.api_family);
    const KernelEntry* main = choose(*kernels, make_query(full, main_family), full);
    for (const KernelFamily family : stages_of(full.api_family)) {
        if (main != nullptr && !needs_stage(family, main->config)) continue;
        const KernelEntry* kernel = main;
        if (family != main_family) {
            StageQuery query = make_query(full, family);
            if (main != nullptr) follow_main(query, main->config);
            kernel = choose(*kernels, query, full);
        }
        if (kernel != nullptr)
            plan.stages_[plan.stage_count_++] = {family, pinned(kernels, kernel), 0};
        else
            plan.missing_[plan.missing_count_++] = family;
    }
    plan.size_workspace({});
    return plan;
}

ExecutionPlan Dispatcher::plan_one(std::string_view identifier, const Problem& problem) const {
    validate(problem);
    const auto kernels = registry_->snapshot();
    const auto config = parse_identifier<KernelConfig>(identifier);
    const KernelEntry* entry = config ? kernels->find(*config) : nullptr;
    if (entry == nullptr) throw NoKernelFound("no kernel is registered as " + std::string(identifier));
    ExecutionPlan plan;
    plan.problem_ = resolved(problem);
    const KernelFamily family = entry->config.signature.family;
    if (const Verdict verdict = match(make_query(plan.problem_, family), entry->config); !verdict)
        throw UnsupportedInvocation("kernel " + registry_->name_of(*entry) + " does not take " +
                                    problem.to_string() + ": " +
                                    describe(verdict, plan.problem_, entry->config).sentence);
    plan.stages_[plan.stage_count_++] = {family, pinned(kernels, entry), 0};
    plan.size_workspace({});
    return plan;
}

} // namespace fmha
