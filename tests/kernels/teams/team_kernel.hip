// Warp-specialised kernels: of three teams, of the tiles that leave the fewest registers, of e4m3 with V in both layouts, and over small pages of both types.
#include "kernels/targets/hip/entry.hpp"

namespace {

template <int teams, int keys, int channels, fmha::MaskClass mask, fmha::DataType type>
struct Kernel {
    FMHA_DEVICE static constexpr fmha::KernelConfig config() {
        fmha::KernelConfig c;
        c.arch = "sm_90";
        c.signature.data_type = type;
        c.signature.hdim_q = c.signature.hdim_v = channels;
        c.signature.mask = mask;
        c.signature.has_lse = true;
        c.algorithm.pipeline = fmha::Pipeline::ws;
        c.algorithm.tile = {64 * teams, keys, 16, channels, 16, channels};
        c.algorithm.wave = {teams, 1, 1, teams, 1, 1};
        c.algorithm.warp = {64, keys, 16, 64, channels, 16};
        c.algorithm.pad = {true, true, 8, 8};
        return c;
    }
};
using Three = Kernel<3, 128, 64, fmha::MaskClass::generic, fmha::DataType::fp16>;
using TwoCausal = Kernel<2, 128, 128, fmha::MaskClass::causal, fmha::DataType::bf16>;
using ManyKeys = Kernel<2, 176, 128, fmha::MaskClass::none, fmha::DataType::bf16>;
using ManyChannels = Kernel<2, 80, 256, fmha::MaskClass::causal, fmha::DataType::fp16>;

template <fmha::VLayout layout>
struct E4m3 {
    static constexpr int teams = 2, keys = 128, channels = 128;

    FMHA_DEVICE static constexpr fmha::KernelConfig config() {
        fmha::KernelConfig c = TwoCausal::config();
        c.signature.data_type = fmha::DataType::fp8bf16;
        c.signature.v_layout = layout;
        c.signature.qscale = fmha::QScale::pertensor;
        c.signature.hdim_q = c.signature.hdim_v = channels;
        c.algorithm.tile = {64 * teams, keys, 32, channels, 32, channels};
        c.algorithm.wave = {teams, 1, 1, teams, 1, 1};
        c.algorithm.warp = {64, keys, 32, 64, channels, 32};
        return c;
    }
};

/// Several pages a tile, which the feed looks up beside the state of a mask.
template <class OfOneTensor>
struct SmallPages {
    FMHA_DEVICE static constexpr fmha::KernelConfig config() {
        fmha::KernelConfig c = OfOneTensor::config();
        c.signature.family = fmha::KernelFamily::batch_prefill;
        c.signature.mode = fmha::Mode::group;
        c.signature.use_paged_kv = true;
        c.signature.page_size = 16;
        c.signature.kv_layout = fmha::KvLayout::linear;
        c.signature.kv_lookup = fmha::KvLookup::vllm_2d;
        return c;
    }
};

} // namespace

FMHA_KERNEL(fmha_teams_three, Three)
FMHA_KERNEL(fmha_teams_small_pages, SmallPages<TwoCausal>)
#ifdef FMHA_ALL_TEAM_KERNELS
FMHA_KERNEL(fmha_teams_keys, ManyKeys)
FMHA_KERNEL(fmha_teams_channels, ManyChannels)
FMHA_KERNEL(fmha_teams_e4m3, E4m3<fmha::VLayout::column>)
FMHA_KERNEL(fmha_teams_e4m3_by_row, E4m3<fmha::VLayout::row>)
FMHA_KERNEL(fmha_teams_e4m3_small_pages, SmallPages<E4m3<fmha::VLayout::row>>)
#endif
