#include "tests/hip_target/emulated/emulated_kernels.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/run/case_runner.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"
#include "kernels/targets/hip/block_plan.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "tests/catalog/working_list.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <map>

namespace fmha::hip_target::test {
namespace {

/// One architecture for every matrix unit.
const std::vector<std::string>& architectures() {
    static const std::vector<std::string> names{"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90"};
    return names;
}

/// Emulating takes time in proportion to this.
std::int64_t size_of(const KernelConfig& config) {
    const Tile& tile = config.algorithm.tile;
    return std::int64_t{tile.m0} * tile.n0 * (tile.k0max + tile.n1);
}

/// Whether `config` can run problems of hdim 64 of the catalogue's plain types.
bool serves(const KernelConfig& config) {
    return !cannot_execute(config) && config.algorithm.tile.k0max >= 64;
}

DataType data_type_of(const InstructionInfo& info) {
    if (info.scale_block != 0) return info.operand == ElementType::fp4 ? DataType::mxfp4 : DataType::mxfp8;
    switch (info.operand) {
    case ElementType::fp16:
        return DataType::fp16;
    case ElementType::bf16:
        return DataType::bf16;
    case ElementType::bf8_ocp:
        return DataType::bf8;
    case ElementType::fp8_ocp:
        return DataType::fp8bf16;
    default:
        return DataType::fp32;
    }
}

KernelConfig made_up(const std::string& arch, MatrixInstruction instruction) {
    const InstructionInfo info = instruction_info(instruction);
    // A lane's accumulators have four neighbouring keys, which fp32 needs four instructions to consume.
    const auto depth = static_cast<std::int16_t>(
        info.operand == ElementType::fp32 && info.wave_size == 64 ? 4 * info.k : info.k);
    // Longer steps than one instruction of half CDNA 4's depth make it one of the whole, and so do tiles of whole ones with 8 bits.
    const auto grows = [&](int step, int tile) {
        return depth_of_triple(matrix_unit(arch), info.operand, info.m, info.k, step, tile) != info.k;
    };
    const bool narrow = grows(32, 64) && element_bits(info.operand) == 8;
    const std::int16_t keys = narrow ? 32 : 64, channels = narrow ? 96 : 64;
    const auto step = grows(32, keys) ? info.k : static_cast<std::int16_t>(std::max<int>(info.k, 32));
    KernelConfig config;
    config.arch = std::string_view(arch);
    config.signature.data_type = data_type_of(info);
    config.signature.hdim_q = config.signature.hdim_v = 64;
    config.algorithm.tile = {.m0 = static_cast<std::int16_t>(2 * info.m),
                             .n0 = keys,
                             .k0 = step,
                             .n1 = 64,
                             .k1 = step,
                             .k0max = channels};
    config.algorithm.wave = {2, 1, 1, 2, 1, 1, 1, 1, 1};
    config.algorithm.warp = {info.m, info.n, depth, info.m, info.n, depth, 1, 1, 1};
    return config;
}

void emulate(const KernelConfig& config, const FwdArgs& args) {
    emulate_kernel(config, args);
}

/// A kernel that calls a launcher.
class LaunchedKernel final : public KernelInstance {
  public:
    LaunchedKernel(const KernelConfig& config, Launcher launcher)
        : config_(config), launcher_(std::move(launcher)) {}
    const KernelConfig& config() const override { return config_; }
    std::string name() const override { return "test." + identifier(config_); }
    void launch(const Invocation& invocation, Stream) const override {
        launcher_(config_, std::get<FwdArgs>(invocation));
    }

  private:
    KernelConfig config_;
    Launcher launcher_;
};

} // namespace

std::string house_name(const KernelConfig& config) {
    return catalog::name_of(catalog::RuleSet::house, config);
}

std::vector<NamedKernel> kernel_of_every_instruction() {
    std::vector<NamedKernel> out;
    for (const std::string& arch : architectures()) {
        std::map<MatrixInstruction, KernelConfig> smallest;
        for (const KernelConfig& config : catalog::test::working_list(arch, KernelFamily::fwd)) {
            const BlockPlan plan = plan_of(config);
            if (!serves(config) || plan.first.instruction != plan.second.instruction) continue;
            const auto [at, is_new] = smallest.try_emplace(plan.first.instruction, config);
            if (!is_new && size_of(config) < size_of(at->second)) at->second = config;
        }
        for (int i = 1; i < matrix_instructions; ++i) {
            const auto name = static_cast<MatrixInstruction>(i);
            if (!has_instruction(matrix_unit(arch), name)) continue;
            const auto found = smallest.find(name);
            out.push_back({fmt::format("{}_{}", arch, to_string(name)),
                           found != smallest.end() ? found->second : made_up(arch, name)});
        }
    }
    return out;
}

KernelConfig smallest_house_kernel(const std::string& arch,
                                   const std::function<bool(const KernelConfig&)>& wanted) {
    const KernelConfig* best = nullptr;
    const auto kernels = catalog::test::working_list(arch, KernelFamily::fwd);
    for (const KernelConfig& config : kernels)
        if (serves(config) && wanted(config) && (best == nullptr || size_of(config) < size_of(*best)))
            best = &config;
    if (best == nullptr) throw InputError("the house catalogue of " + arch + " has no such kernel");
    return *best;
}

FittingKernel::FittingKernel(const KernelConfig& model) : FittingKernel(model, emulate) {}
ExactKernel::ExactKernel(const KernelConfig& config) : ExactKernel(config, emulate) {}

harness::StageKernel FittingKernel::planned(const Problem& problem, const KernelConfig*) const {
    KernelConfig config = model_;
    config.signature = problem.signature;
    config.algorithm.pad = {.s = true, .sk = true, .d = 1, .dv = 1};
    if (const auto reason = cannot_execute(config)) throw UnsupportedInvocation(*reason);
    return {"fitting", std::make_shared<LaunchedKernel>(config, launcher_), numerics_of(config)};
}

harness::StageKernel ExactKernel::planned(const Problem&, const KernelConfig*) const {
    return {"exact", std::make_shared<LaunchedKernel>(config_, launcher_), numerics_of(config_)};
}

harness::Case plain_case(const KernelConfig& kernel) {
    harness::Case c;
    c.data_type = data_type_of(instruction_info(plan_of(kernel).first.instruction));
    if (c.data_type == DataType::mxfp8 || c.data_type == DataType::mxfp4) {
        c.qscale = QScale::mx;
        c.v_layout = VLayout::column;
    }
    if (c.data_type == DataType::bf8 || c.data_type == DataType::fp8bf16) c.qscale = QScale::pertensor;
    c.nhead_q = 2;
    c.nhead_k = 1;
    c.hdim_q = c.hdim_v = 64;
    c.seqlen_q = {70};
    c.seqlen_k = {130};
    return c;
}

harness::CaseResult result_of(const harness::Case& c, const KernelConfig& kernel,
                              const harness::KernelSource& source) {
    harness::CaseRunOptions options;
    options.arch = kernel.arch.view();
    return harness::run_case(c, source, options).at(0);
}

} // namespace fmha::hip_target::test
