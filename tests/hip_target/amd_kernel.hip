// A forward kernel as it is generated, for the architecture, the instruction and the pipeline that the test names.
#include "kernels/targets/hip/entry.hpp"

namespace {

struct Kernel {
    FMHA_DEVICE static constexpr fmha::KernelConfig config() {
        fmha::KernelConfig c;
        c.arch = FMHA_TEST_ARCH;
        c.signature.mask = fmha::MaskClass::causal;
        c.signature.hdim_q = 64;
        c.signature.hdim_v = 64;
        c.algorithm.pipeline = fmha::Pipeline::FMHA_TEST_PIPELINE;
        c.algorithm.tile = {4 * FMHA_TEST_SIDE, 64, 32, 64, 32, 64};
        c.algorithm.wave = {4, 1, 1, 4, 1, 1};
        c.algorithm.warp = {FMHA_TEST_SIDE, FMHA_TEST_SIDE, 16, FMHA_TEST_SIDE, FMHA_TEST_SIDE, 16};
        c.algorithm.pad = {true, true, 1, 1};
        return c;
    }
};

} // namespace

FMHA_KERNEL(forward, Kernel)
