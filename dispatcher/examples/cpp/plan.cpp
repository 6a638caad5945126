// Plans of one, two and three stages, and the workspaces that they need.

#include "attention.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "kernels/targets/host/host_target.hpp"

#include <fmt/format.h>

#include <array>

namespace {

std::size_t stages_of(const fmha::Dispatcher& dispatcher, const fmha::Problem& problem) {
    const fmha::ExecutionPlan plan = dispatcher.plan(problem);
    fmt::print("{}: {} bytes of workspace\n", to_string(problem.api_family), plan.workspace_bytes());
    for (const fmha::PlanStage& stage : plan.stages())
        fmt::print("  {}\n", dispatcher.registry().name_of(*stage.kernel));
    return plan.valid() ? plan.stages().size() : 0;
}

} // namespace

int main() {
    const auto archs = fmha::arch::ArchSet::built_in();
    const std::array names{fmha::ArchName("gfx950")};
    const auto registry = fmha::catalogue_registry(archs, fmha::catalog::RuleSet::house, names);
    const fmha::Dispatcher dispatcher(*registry, fmha::devices_of(archs));
    const auto problem = [](fmha::ApiFamily api) {
        return fmha::ProblemBuilder()
            .api_family(api)
            .gfx_arch("gfx950")
            .data_type(fmha::DataType::bf16)
            .dims(128, 128, 1, 64, 4096)
            .nheads(8, 8)
            .build();
    };
    bool good =
        example::check(stages_of(dispatcher, problem(fmha::ApiFamily::fwd)) == 1, "forward is one kernel");
    good &= example::check(stages_of(dispatcher, problem(fmha::ApiFamily::fwd_splitkv)) == 2,
                           "split-KV computes parts and combines them");
    good &= example::check(stages_of(dispatcher, problem(fmha::ApiFamily::bwd)) == 3,
                           "backward sums rows, computes gradients and converts dQ");

    // A plan names configurations; the target makes kernels of them.
    example::Attention attention(4, 2, 33, 130);
    for (const fmha::PlanStage& stage : dispatcher.plan(attention.problem()).stages())
        fmha::host_target::make_instance(stage.kernel->config)->launch(attention.args(), {});
    good &= attention.judge("a planned kernel on the host");
    return good ? 0 : 1;
}
