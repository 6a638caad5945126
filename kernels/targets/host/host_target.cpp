#include "kernels/targets/host/host_target.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/type_classes.hpp"
#include "kernels/targets/host/append_context.hpp"
#include "kernels/targets/host/backward_context.hpp"
#include "kernels/targets/host/executor.hpp"
#include "kernels/targets/host/row_program_context.hpp"
#include "kernels/targets/launch.hpp"
#include "kernels/targets/wrong_features.hpp"

#include <fmt/format.h>

namespace fmha::host_target {
namespace {

class HostKernel final : public KernelInstance {
  public:
    HostKernel(const KernelConfig& config, int threads) : config_(config), threads_(threads) {}
    const KernelConfig& config() const override { return config_; }
    std::string name() const override { return "host." + identifier(config_); }
    void launch(const Invocation& invocation, Stream) const override {
        run_kernel(config_, invocation, {.threads = threads_});
    }

  private:
    KernelConfig config_;
    int threads_;
};

std::optional<std::string> unfit_dims(const Signature& s) {
    const KernelTraits& depends = traits_of(s.family);
    if ((s.hdim_q > 0 || !depends.query_dim) && (s.hdim_v > 0 || !depends.value_dim)) return std::nullopt;
    return fmt::format("head dimensions must be positive, found ({}, {})", s.hdim_q, s.hdim_v);
}

/// Why the context of attention does not run a kernel.
std::optional<std::string> unfit_tiles(const KernelConfig& config) {
    const Signature& s = config.signature;
    const Tile& tile = config.algorithm.tile;
    if (tile.m0 <= 0 || tile.n0 <= 0 || tile.k0 <= 0 || tile.n1 <= 0 || tile.k1 <= 0)
        return fmt::format("tile extents must be positive, found m0={} n0={} k0={} n1={} k1={}", tile.m0,
                           tile.n0, tile.k0, tile.n1, tile.k1);
    if (auto reason = unfit_dims(s)) return reason;
    if (s.hdim_q > tile.k0max)
        return fmt::format("hdim_q={} does not fit the query tile of k0max={}", s.hdim_q, tile.k0max);
    if (tile.n0 % tile.k1 != 0)
        return fmt::format("tile n0={} must be a multiple of its step k1={}", tile.n0, tile.k1);
    const bool mx_type = is_micro_scaled(s.data_type);
    if (mx_type != (s.qscale == QScale::mx))
        return fmt::format(
            "data type {} and qscale {} do not belong together: mx scales come with mxfp8 and mxfp4 only",
            to_string(s.data_type), to_string(s.qscale));
    if (mx_type && tile.n0 % 32 != 0)
        return fmt::format("tile n0={} must be a multiple of the 32 keys that share a scale", tile.n0);
    return std::nullopt;
}

/// Why no context of the host runs the kernel of a program.
template <KernelFamily family>
std::optional<std::string> unfit(kernels::Program<family>, const KernelConfig& config) {
    using Program = kernels::Program<family>;
    if constexpr (kernels::RowProgram<Program>) {
        const auto [rows, columns] = Program::row_tile(config);
        if (rows <= 0 || columns <= 0)
            return fmt::format("a tile of {} rows and {} columns must be positive", rows, columns);
        return unfit_dims(config.signature);
    } else {
        if (auto reason = targets::wrong_features(config)) return reason;
        return unfit_tiles(config);
    }
}

std::optional<std::string> unfit(kernels::Program<KernelFamily::fwd_appendkv>, const KernelConfig& config) {
    const Tile& tile = config.algorithm.tile;
    if (tile.m0 <= 0 || tile.n0 != tile.m0)
        return fmt::format("an append kernel has as many queries as keys in a tile, found m0={} and n0={}",
                           tile.m0, tile.n0);
    return unfit_dims(config.signature);
}

std::optional<std::string> unfit(kernels::Program<KernelFamily::bwd_dq_dk_dv>, const KernelConfig& config) {
    const std::int64_t most = config.algorithm.max_seq_len_q;
    if (most > config.algorithm.tile.m0)
        return fmt::format(
            "a kernel that stores dQ itself has all of its {} query rows in one tile, found m0={}", most,
            config.algorithm.tile.m0);
    const Tile& tile = config.algorithm.tile;
    if (tile.m0 <= 0 || tile.n0 <= 0)
        return fmt::format("tile extents must be positive, found m0={} n0={}", tile.m0, tile.n0);
    return unfit_dims(config.signature);
}

/// Those of row operations visit no key tiles for a row, nor do these.
template <KernelFamily family>
auto context_of(kernels::Program<family>, const KernelConfig& config,
                [[maybe_unused]] std::vector<TileVisit>* trace) {
    if constexpr (kernels::RowProgram<kernels::Program<family>>)
        return RowProgramContext<kernels::Program<family>>(config);
    else
        return HostContext(config, trace);
}
BackwardContext context_of(kernels::Program<KernelFamily::bwd_dq_dk_dv>, const KernelConfig& config,
                           std::vector<TileVisit>*) {
    return BackwardContext(config);
}
AppendContext context_of(kernels::Program<KernelFamily::fwd_appendkv>, const KernelConfig& config,
                         std::vector<TileVisit>*) {
    return AppendContext(config);
}

} // namespace

std::optional<std::string> cannot_execute(const KernelConfig& config) {
    return targets::with_program(config.signature.family,
                                 [&](auto program) { return unfit(program, config); });
}

void run_kernel(const KernelConfig& config, const Invocation& invocation, const RunOptions& options) {
    if (const auto reason = cannot_execute(config)) throw UnsupportedInvocation(*reason);
    targets::with_launch(config, invocation, targets::Elements::of, [&](auto program, const auto& args) {
        run_blocks(program, config, args, options,
                   [&](std::vector<TileVisit>* trace) { return context_of(program, config, trace); });
    });
}

std::shared_ptr<const KernelInstance> make_instance(const KernelConfig& config, int threads) {
    if (const auto reason = cannot_execute(config)) throw UnsupportedInvocation(*reason);
    return std::make_shared<HostKernel>(config, threads);
}

} // namespace fmha::host_target
