// Runs house configurations of one architecture on the emulated machine, each as it is, on a small problem that uses
// all features of its kernel: house_sweep ARCH COUNT [PART], of those with PART in their names. A configuration whose lengths or
// head dimensions are not padded gets problems that need no padding.

#include "kernels/targets/hip/cannot_execute.hpp"
#include "tests/catalog/working_list.hpp"
#include "tests/hip_target/emulated/emulated_kernels.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>

namespace fmha::hip_target::test {
namespace {

using harness::Case;

/// A problem with every feature of `config` and lengths that end inside a tile where the kernel allows it.
Case case_of(const KernelConfig& config) {
    const Signature& s = config.signature;
    const Algorithm& algorithm = config.algorithm;
    Case c;
    c.data_type = s.data_type;
    c.mode = s.mode;
    c.batch = s.mode == Mode::group ? 2 : 1;
    c.nhead_q = 2;
    c.nhead_k = 1;
    // H-2: a multiple of 8 in any case, and of 16 bytes where tensor maps copy rows.
    const ElementType type = element_types(s.data_type, fp8_flavour(config.arch)).k;
    const std::int64_t fewer = algorithm.pipeline == Pipeline::ws ? 128 / element_bits(type) : 8;
    c.stride_padding = fewer;
    const auto channels = [fewer](std::int8_t pad, std::int64_t hdim) {
        return pad != 0 && hdim > 16 ? hdim - fewer : hdim;
    };
    c.hdim_q = channels(algorithm.pad.d, s.hdim_q);
    c.hdim_v = channels(algorithm.pad.dv, s.hdim_v);
    c.seqlen_q = {algorithm.pad.s ? algorithm.tile.m0 + 6 : algorithm.tile.m0};
    c.seqlen_k = {algorithm.pad.sk ? algorithm.tile.n0 + 4 : 2 * algorithm.tile.n0}; // T-2: even
    c.v_layout = s.v_layout;
    if (s.mask != MaskClass::none) {
        c.mask = s.has_sink ? MaskType::top_left : MaskType::bottom_right;
        c.window_right = 0;
        if (s.mask == MaskClass::generic) c.window_left = 40;
        if (s.mask == MaskClass::generic && s.has_sink) c.sink_size = 4;
    }
    c.bias = s.bias;
    if (s.bias == BiasType::alibi) c.bias_rank = 0;
    c.lse = s.has_lse;
    if (s.has_logits_soft_cap) c.logits_soft_cap = 2.0;
    if (s.has_dropout) {
        c.p_drop = 0.2;
        c.store_randval = true;
    }
    if (s.has_sink_logit) c.sink_logits = harness::SinkLogits::normal;
    c.qscale = s.qscale;
    c.block_scale_q = c.block_scale_k = std::int64_t{algorithm.tile.m0} * algorithm.tile.n0;
    return c;
}

int sweep(const std::string& arch, std::size_t count, const std::string& part) {
    std::vector<KernelConfig> kernels = catalog::test::working_list(arch, KernelFamily::fwd);
    std::erase_if(kernels, [&](const KernelConfig& config) {
        return cannot_execute(config).has_value() || house_name(config).find(part) == std::string::npos;
    });
    // An odd stride walks through the combinations of features, which the list holds in nested loops.
    const std::size_t stride = std::max<std::size_t>(kernels.size() / count, 1) | 1U;
    int passed = 0, failed = 0;
    for (std::size_t i = 0; i < kernels.size(); i += stride) {
        const Case c = case_of(kernels[i]);
        const auto result = result_of(c, kernels[i], ExactKernel(kernels[i]));
        if (result.outcome == harness::Outcome::passed) {
            ++passed;
            continue;
        }
        ++failed;
        fmt::print("{}\n    {}: {}\n", house_name(kernels[i]), to_string(result.outcome), result.message);
    }
    fmt::print("{}: {} of {} configurations ran, {} passed, {} failed\n", arch, passed + failed,
               kernels.size(), passed, failed);
    return failed == 0 && passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace
} // namespace fmha::hip_target::test

int main(int argc, char** argv) {
    if (argc != 3 && argc != 4) {
        fmt::print(stderr, "usage: house_sweep ARCH COUNT [PART]\n");
        return 2;
    }
    return fmha::hip_target::test::sweep(argv[1], std::strtoul(argv[2], nullptr, 10),
                                         argc == 4 ? argv[3] : "");
}
