// Backward kernels of every architecture, lane by lane on the emulated machine, against the reference.
#include "backward_problem.hpp"
#include "backward_specs.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "tests/catalog/working_list.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

namespace fmha::hip_target {
namespace {

using test::BackwardChain;
using test::BackwardProblem;
using test::BackwardSinks;
using test::BackwardSpec;
using test::BackwardVerdict;

constexpr std::array architectures{"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90"};

class EmulatedBackward : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Architectures, EmulatedBackward, testing::ValuesIn(architectures),
                         [](const auto& test) { return std::string(test.param); });

struct Kernels {
    std::vector<KernelConfig> dots, mains, converts;
    explicit Kernels(std::string_view arch)
        : dots(catalog::test::working_list(arch, KernelFamily::bwd_dot_do_o)),
          mains(catalog::test::working_list(arch, KernelFamily::bwd_dq_dk_dv)),
          converts(catalog::test::working_list(arch, KernelFamily::bwd_convert_dq)) {}
};

/// The first and the last stage, between which the host computes: of either width of a wave.
TEST_P(EmulatedBackward, FirstAndLastStageAreRightForEveryHeadDimension) {
    if (GetParam() != std::string_view("gfx942") && GetParam() != std::string_view("sm_90")) return;
    const Kernels kernels(GetParam());
    std::set<std::tuple<DataType, Mode, std::int64_t, bool, bool>> seen;
    int turn = 0;
    for (const KernelConfig& kernel : kernels.mains) {
        const Signature& s = kernel.signature;
        if (kernel.algorithm.max_seq_len_q > 0 || s.bias != BiasType::no_bias || s.has_dropout ||
            !seen.emplace(s.data_type, s.mode, s.hdim_q, s.is_deterministic, kernel.algorithm.pad.d != 0)
                 .second)
            continue;
        const std::vector<BackwardSpec> specs = test::specs_for(kernel);
        BackwardSpec spec = specs[static_cast<std::size_t>(turn++) % specs.size()];
        spec.sinks = BackwardSinks::normal;
        const BackwardChain chain = test::chain_of(kernel, kernels.dots, kernels.converts);
        const BackwardProblem problem(chain, spec);
        problem.run([&](const KernelConfig& stage, const BwdArgs& args) {
            if (stage.signature.family == KernelFamily::bwd_dq_dk_dv)
                host_target::run_kernel(stage, args, {.threads = 1});
            else
                emulate_kernel(stage, args, {.threads = 1, .last_thread_first = turn % 2 == 1});
        });
        const BackwardVerdict verdict = problem.judge(numerics_of(chain.main));
        EXPECT_TRUE(verdict.acceptable()) << identifier(chain.main) << "\n"
                                          << spec.text() << "\n"
                                          << verdict.text();
    }
    EXPECT_GE(turn, 30);
}

TEST_P(EmulatedBackward, TakesEveryKernel) {
    const Kernels kernels(GetParam());
    std::map<std::string, int> refused;
    for (const auto* list : {&kernels.dots, &kernels.mains, &kernels.converts})
        for (const KernelConfig& kernel : *list)
            if (const auto reason = cannot_execute(kernel)) ++refused[*reason];
    for (const auto& [reason, count] : refused) ADD_FAILURE() << count << " kernels: " << reason;
}

/// The facts that decide the way of a kernel's products: matrix instructions, the sources of their operands, and the place of dQ.
using Path = std::tuple<DataType, GemmTriples, bool, std::int64_t>;
Path path_of(const KernelConfig& kernel) {
    const Algorithm& a = kernel.algorithm;
    return {kernel.signature.data_type, a.warp, a.use_trload, a.max_seq_len_q};
}

/// Every `every`-th kernel that has features or a tile of its own, and one of each path that has none among these.
std::vector<const KernelConfig*> drawn(const std::vector<KernelConfig>& mains, std::size_t every) {
    std::vector<const KernelConfig*> chosen;
    std::set<std::tuple<Signature, Tile>> seen;
    std::set<Path> drawn_paths;
    std::map<Path, std::vector<const KernelConfig*>> of_path;
    for (std::size_t n = 0; n < mains.size(); ++n) {
        const KernelConfig& kernel = mains[n];
        of_path[path_of(kernel)].push_back(&kernel);
        if ((n + 1) % every != 0 || !seen.emplace(kernel.signature, kernel.algorithm.tile).second) continue;
        chosen.push_back(&kernel);
        drawn_paths.insert(path_of(kernel));
    }
    for (const auto& [path, kernels] : of_path) // from behind the plain ones, which come first
        if (!drawn_paths.contains(path)) chosen.push_back(kernels[kernels.size() * 2 / 3]);
    return chosen;
}

/// Kernels of all tiles with all sets of features in turn, each with another problem, and of all paths. FMHA_TEST_STRIDE=1 takes every
/// kernel.
TEST_P(EmulatedBackward, MainStageIsRightWithEverySetOfFeatures) {
    const Kernels kernels(GetParam());
    std::set<Path> paths, all_paths;
    int tried = 0;
    const char* const stride = std::getenv("FMHA_TEST_STRIDE");
    const std::size_t every = stride != nullptr ? std::strtoul(stride, nullptr, 10) : 149;
    for (const KernelConfig& kernel : kernels.mains) all_paths.insert(path_of(kernel));
    for (const KernelConfig* const one : drawn(kernels.mains, every)) {
        const KernelConfig& kernel = *one;
        paths.insert(path_of(kernel));
        const std::vector<BackwardSpec> specs = test::specs_for(kernel);
        const BackwardSpec& spec = specs[static_cast<std::size_t>(tried + 1) % specs.size()];
        const BackwardChain chain = test::chain_of(kernel, kernels.dots, kernels.converts);
        const BackwardProblem problem(chain, spec);
        problem.run([&](const KernelConfig& stage, const BwdArgs& args) {
            if (stage.signature.family != KernelFamily::bwd_dq_dk_dv)
                return host_target::run_kernel(stage, args, {.threads = 1});
            emulate_kernel(stage, args, {.threads = 1, .last_thread_first = tried % 2 == 1});
        });
        const BackwardVerdict verdict = problem.judge(numerics_of(chain.main));
        EXPECT_TRUE(verdict.acceptable()) << identifier(chain.main) << "\n"
                                          << spec.text() << "\n"
                                          << verdict.text();
        ++tried;
    }
    EXPECT_GE(tried, 8);
    EXPECT_EQ(paths, all_paths);
}

} // namespace
} // namespace fmha::hip_target
