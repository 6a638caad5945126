#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/kernel_instance.hpp"
#include "dispatcher/types/problem.hpp"

#include <memory>
#include <string>

/// Small kernels and problems for the dispatcher's tests.
namespace fmha::testing {

/// A forward kernel with everything padded, 128x128 tiles and the given head dimensions.
inline KernelConfig fwd_kernel(std::int64_t hdim_q = 128, std::int64_t hdim_v = 128,
                               std::int16_t tile_m0 = 128) {
    KernelConfig kernel;
    kernel.arch = "gfx950";
    kernel.signature.hdim_q = hdim_q;
    kernel.signature.hdim_v = hdim_v;
    kernel.algorithm.tile.m0 = tile_m0;
    kernel.algorithm.tile.n0 = 128;
    kernel.algorithm.tile.k0 = 32;
    kernel.algorithm.tile.n1 = static_cast<std::int16_t>(hdim_v);
    kernel.algorithm.tile.k1 = 32;
    kernel.algorithm.tile.k0max = static_cast<std::int16_t>(hdim_q);
    kernel.algorithm.wave = {4, 1, 1, 4, 1, 1, 1, 1, 1};
    kernel.algorithm.warp = {32, 32, 16, 32, 32, 16, 16, 16, 16};
    kernel.algorithm.pipeline = Pipeline::qr_async;
    kernel.algorithm.pad = {true, true, 1, 1};
    return kernel;
}

/// The same record for another family, with the fields that the family demands.
inline KernelConfig kernel_of(KernelFamily family, std::int64_t hdim = 128) {
    using enum KernelFamily;
    KernelConfig kernel = fwd_kernel(hdim, hdim);
    kernel.signature.family = family;
    switch (family) {
    case fwd:
        break;
    case fwd_pagedkv:
        kernel.signature.use_paged_kv = true;
        kernel.algorithm.pipeline = Pipeline::qr_pagedkv;
        break;
    case fwd_splitkv:
        kernel.algorithm.pipeline = Pipeline::qr;
        break;
    case fwd_splitkv_combine:
        kernel.algorithm.pipeline = Pipeline::splitkv_combine;
        kernel.algorithm.tile = {};
        kernel.algorithm.tile.n1 = 32;
        kernel.algorithm.max_splits_log2 = 7;
        break;
    case fwd_appendkv:
        kernel.algorithm.pipeline = Pipeline::appendkv;
        break;
    case batch_prefill:
        kernel.signature.mode = Mode::group;
        kernel.signature.use_paged_kv = true;
        kernel.signature.kv_layout = KvLayout::linear;
        kernel.signature.kv_lookup = KvLookup::sglang_1d;
        kernel.signature.page_size = 16;
        kernel.algorithm.load_mode = LoadMode::bload;
        break;
    case bwd_dot_do_o:
    case bwd_convert_dq:
        kernel.algorithm.pipeline = Pipeline::bwd;
        kernel.algorithm.tile = {};
        kernel.algorithm.tile.m0 = 64;
        break;
    case bwd_dq_dk_dv:
        kernel.algorithm.pipeline = Pipeline::bwd;
        kernel.algorithm.tile = {
            16, 128, 128, 16, 128, 16, 32, static_cast<std::int16_t>(hdim), static_cast<std::int16_t>(hdim)};
        kernel.algorithm.wave = {1, 4, 1, 4, 1, 1, 1, 4, 1};
        kernel.algorithm.warp = {16, 16, 32, 16, 16, 16, 16, 16, 16};
        break;
    }
    return kernel;
}

/// A valid problem of any API that the kernels above take.
inline ProblemBuilder builder_for(ApiFamily api, std::int64_t hdim = 128) {
    ProblemBuilder builder;
    builder.api_family(api)
        .gfx_arch("gfx950")
        .data_type(DataType::fp16)
        .dims(hdim, hdim, 2, 256, 512)
        .nheads(8, 2);
    Presence presence;
    switch (api) {
    case ApiFamily::fwd:
    case ApiFamily::bwd:
    case ApiFamily::fwd_splitkv:
        break;
    case ApiFamily::fwd_pagedkv:
        builder.page_size(128);
        break;
    case ApiFamily::fwd_appendkv:
        presence.seqlen_k = true;
        break;
    case ApiFamily::batch_prefill:
        presence.seqstart_q = true;
        builder.group_mode(true).max_seqlen(256, 512).kv_cache(KvLayout::linear, KvLookup::sglang_1d, 16);
        break;
    }
    return builder.variable_lengths(presence);
}

/// An instance that counts its launches.
class FakeInstance : public KernelInstance {
  public:
    FakeInstance(KernelConfig config, std::string name) : config_(config), name_(std::move(name)) {}
    const KernelConfig& config() const override { return config_; }
    std::string name() const override { return name_; }
    void launch(const Invocation&, Stream) const override { ++launches; }
    mutable int launches = 0;

  private:
    KernelConfig config_;
    std::string name_;
};

inline std::shared_ptr<FakeInstance> instance(const KernelConfig& config, std::string name = "fake") {
    return std::make_shared<FakeInstance>(config, std::move(name));
}

} // namespace fmha::testing
