#include "harness/run/execution.hpp"

#include "dispatcher/system/stopwatch.hpp"
#include "harness/cases/value_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace fmha::harness {
namespace {

void fail(GateVerdict& gate, std::string detail) {
    if (!gate.passed) return;
    gate.passed = false;
    gate.ratio = std::numeric_limits<double>::infinity();
    gate.detail = std::move(detail);
}

std::vector<KernelConfig> configs_of(const Candidate& candidate) {
    std::vector<KernelConfig> kernels;
    for (const StageKernel& stage : candidate.stages) kernels.push_back(stage.instance->config());
    return kernels;
}

/// "entries and heads", whichever are in reverse order.
std::string_view reversed_axes(const Case& c) {
    if (!c.entries_reversed) return "heads";
    return c.heads_reversed ? "entries and heads" : "entries";
}

/// The inputs of a large shape take seconds to fill. They are as they were, or else a checksum has told.
void poison_results(TensorSet& tensors, Poison poison) {
    for (const TensorSpec& spec : tensors.specs())
        if (!spec.fill) tensors.tensor(spec.name).poison(poison);
}

} // namespace

Case in_another_layout(const Case& c) {
    Case other = c;
    const auto flipped = [](Layout layout) { return layout == Layout::bhsd ? Layout::bshd : Layout::bhsd; };
    other.iperm = flipped(c.iperm);
    other.operm = flipped(c.operm);
    other.stride_padding += 32;
    other.cache.page_order += 1;
    return other;
}

Execution::Execution(CaseData& here, Elsewhere elsewhere, const Candidate& candidate,
                     std::span<const reference::RowId> rows)
    : here_(here), elsewhere_(std::move(elsewhere)), candidate_(candidate), rows_(rows) {
    here_.prepare(configs_of(candidate));
    if (elsewhere_.data != nullptr) elsewhere_.data->prepare(configs_of(candidate));
}

StageOutputs Execution::first() {
    return run(here_, Poison::nan);
}

void Execution::repeat(const StageOutputs& first, int repeats) {
    repeats_ = repeats;
    for (int n = 1; n < repeats; ++n) {
        const bool other_memory = n % 2 == 1, moved = other_memory && elsewhere_.data != nullptr;
        const Poison poison = other_memory ? Poison::huge : Poison::nan;
        const StageOutputs again = moved ? run_elsewhere(poison) : run(here_, poison);
        const std::string difference = first_difference(first, again);
        if (difference.empty()) continue;
        // Everything may have come together: the kernel alone, the contents of memory, and the places of the values. Each is
        // tried without the next.
        const auto differs_here = [&](Poison content) {
            return !first_difference(first, run(here_, content)).empty();
        };
        if (!other_memory || differs_here(Poison::nan))
            fail(repeat_, "two identical runs differ: " + difference);
        else if (!moved || differs_here(Poison::huge))
            fail(poison_, "the result depends on padding or on memory that was never written: " + difference);
        else
            judge_elsewhere(first, again, difference);
    }
}

void Execution::judge_elsewhere(const StageOutputs& first, const StageOutputs& again,
                                const std::string& difference) {
    std::string in_order = difference;
    bool tells = true;
    if (is_reversed(*elsewhere_.of)) {
        const std::unique_ptr<CaseData> data = elsewhere_.in_order();
        tells = data != nullptr;
        if (tells) data->prepare(configs_of(candidate_));
        in_order = tells ? first_difference(first, run(*data, Poison::huge)) : std::string();
    }
    if (in_order.empty()) {
        fail(order_,
             fmt::format("the same values with {} in reverse order{} give another result: {}",
                         reversed_axes(*elsewhere_.of), tells ? "" : " and in another layout", difference));
        return;
    }
    fail(layout_, fmt::format("the same values in another layout give another result{}: {}",
                              first_difference(again, run_elsewhere(Poison::nan)).empty()
                                  ? ""
                                  : ", which depends on padding or on memory that was never written",
                              in_order));
}

StageOutputs Execution::run_elsewhere(Poison poison) {
    StageOutputs outputs = run(*elsewhere_.data, poison);
    const Case& c = *elsewhere_.of;
    if (!is_reversed(c)) return outputs;
    for (Outputs& stage : outputs)
        stage = stage.renamed([&c](const reference::RowId& id, std::int64_t heads) {
            return reference::RowId{plain_entry(c, id.b), plain_head(c, id.h, heads), id.i};
        });
    return outputs;
}

void Execution::in_parts(const StageOutputs& first) {
    const auto divided = [&](KernelFamily stage) { return !here_.parts(stage).empty(); };
    if (std::ranges::none_of(candidate_.families, divided)) return;
    parts_ = GateVerdict{.gate = "G5.10"};
    const std::string difference = first_difference(first, run(here_, Poison::nan, Calls::divided));
    if (!difference.empty())
        fail(*parts_,
             "several calls for some rows each leave other bits than one call for all: " + difference);
}

std::vector<GateVerdict> Execution::gates() const {
    std::vector<GateVerdict> gates{stray_};
    if (repeats_ > 1) gates.push_back(poison_);
    if (repeats_ > 2 || !repeat_.passed) gates.push_back(repeat_);
    if (repeats_ > 1 && elsewhere_.data != nullptr) {
        gates.push_back(layout_);
        if (is_reversed(*elsewhere_.of)) gates.push_back(order_);
    }
    if (parts_) gates.push_back(*parts_);
    return gates;
}

StageOutputs Execution::run(CaseData& data, Poison poison, Calls calls) {
    TensorSet& tensors = data.tensors();
    if (rows_.empty())
        tensors.refill(poison);
    else
        poison_results(tensors, poison);
    StageOutputs outputs;
    double seconds = 0.0;
    for (std::size_t stage = 0; stage < candidate_.stages.size(); ++stage) {
        const KernelFamily family = candidate_.families[stage];
        const auto kept = [&](const TensorSpec& spec) {
            return spec.flow == Flow::in || !data.writes(family, spec.name);
        };
        const std::uint64_t before = tensors.checksum(kept);
        const std::vector<Invocation> parts =
            calls == Calls::divided ? data.parts(family) : std::vector<Invocation>();
        if (parts.empty()) seconds += launch(stage, data, data.invocation_of(family));
        for (const Invocation& part : parts) launch(stage, data, part);
        outputs.push_back(data.outputs(family));
        auto wrong = tensors.stray_write();
        if (!wrong && tensors.checksum(kept) != before)
            wrong = candidate_.stages.size() == 1 ? "an input was written"
                                                  : "an input, or an output of another stage, was written";
        if (!wrong) continue;
        fail(stray_, fmt::format("{}written outside the logical outputs: {}", stage_prefix(stage), *wrong));
        if (!rows_.empty()) tensors.refill(poison);
    }
    if (calls == Calls::whole) kernel_seconds_ = std::min(kernel_seconds_, seconds);
    return outputs;
}

double Execution::launch(std::size_t stage, CaseData& data, const Invocation& invocation) const {
    const StageKernel& kernel = candidate_.stages[stage];
    if (kernel.launcher != nullptr)
        return kernel.launcher->launch(*kernel.instance, invocation, data.tensors());
    const system::Stopwatch watch;
    if (rows_.empty())
        kernel.instance->launch(invocation, fmha::Stream{});
    else
        kernel.run_rows(invocation, rows_);
    return watch.seconds();
}

/// "fwd_splitkv: " where there are several stages.
std::string Execution::stage_prefix(std::size_t stage) const {
    if (candidate_.stages.size() == 1) return {};
    return fmt::format("{}: ", to_string(candidate_.families[stage]));
}

std::string Execution::first_difference(const StageOutputs& x, const StageOutputs& y) const {
    for (std::size_t stage = 0; stage < x.size(); ++stage) {
        const auto promised = [&](const std::string& name) {
            return here_.repeats(candidate_.families[stage], name);
        };
        if (const auto difference = x[stage].first_difference(y[stage], promised); !difference.empty())
            return stage_prefix(stage) + difference;
    }
    return {};
}

} // namespace fmha::harness
