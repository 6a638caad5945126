// Warp-specialised kernels: of three teams, and of e4m3.
#include "kernels/targets/hip/entry.hpp"

namespace {

struct Kernel {
    static constexpr int teams = 3, keys = 128, channels = 64;

    FMHA_DEVICE static constexpr fmha::KernelConfig config() {
        fmha::KernelConfig c;
        c.arch = "sm_90";
        c.signature.data_type = fmha::DataType::fp16;
        c.signature.hdim_q = c.signature.hdim_v = channels;
        c.signature.mask = fmha::MaskClass::causal;
        c.signature.has_lse = true;
        c.algorithm.pipeline = fmha::Pipeline::ws;
        c.algorithm.tile = {64 * teams, keys, 16, channels, 16, channels};
        c.algorithm.wave = {teams, 1, 1, teams, 1, 1};
        c.algorithm.warp = {64, keys, 16, 64, channels, 16};
        c.algorithm.pad = {true, true, 8, 8};
        return c;
    }
};

struct E4m3Kernel {
    static constexpr int teams = 2, keys = 128, channels = 128;

    FMHA_DEVICE static constexpr fmha::KernelConfig config() {
        fmha::KernelConfig c = Kernel::config();
        c.signature.data_type = fmha::DataType::fp8bf16;
        c.signature.v_layout = fmha::VLayout::column;
        c.signature.qscale = fmha::QScale::pertensor;
        c.signature.hdim_q = c.signature.hdim_v = channels;
        c.algorithm.tile = {64 * teams, keys, 32, channels, 32, channels};
        c.algorithm.wave = {teams, 1, 1, teams, 1, 1};
        c.algorithm.warp = {64, keys, 32, 64, channels, 32};
        return c;
    }
};

} // namespace

FMHA_KERNEL(fmha_teams, Kernel)
FMHA_KERNEL(fmha_e4m3_teams, E4m3Kernel)
