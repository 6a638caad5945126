#include "attention.hpp"

#include "dispatcher/invocation.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "kernels/targets/host/host_target.hpp"

#include <fmha/reference.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace example {
namespace {

/// Numbers between -1 and 1 that look random and are the same everywhere.
void fill(std::vector<float>& values, std::uint32_t state) {
    for (float& value : values) {
        state = state * 1664525U + 1013904223U;
        value = static_cast<float>(state >> 8U) / 8388608.0F - 1.0F;
    }
}

fmha::TensorView view(std::vector<float>& data, std::int64_t heads, std::int64_t rows, std::int64_t width) {
    return {data.data(), fmha::ElementType::fp32, heads * rows * width, rows * width, width, 1};
}

fmha_tensor tensor(const fmha::TensorView& view) {
    return {view.data, view.batch_stride, view.head_stride, view.row_stride, view.col_stride};
}

/// What fp32 may lose where Q, K and V are between -1 and 1. A score is a scaled sum of hdim_q products, each rounded; its error changes every
/// weight and their sum by that part, and so the output, an average of V, by twice it. The sums over the keys round once more, and each
/// exponential is allowed a few units of its own.
double limit(const fmha::Shape& shape) {
    const double unit = 0x1p-24, width = static_cast<double>(shape.hdim_q);
    const double score = (width + 2.0) * unit * std::sqrt(width);
    return 2.0 * score + (2.0 * static_cast<double>(shape.seqlen_k) + 8.0) * unit;
}

bool is_plain(const fmha::Signature& signature) {
    return signature.data_type == fmha::DataType::fp32 && signature.mode == fmha::Mode::batch &&
           signature.v_layout == fmha::VLayout::row && signature.bias == fmha::BiasType::no_bias &&
           !signature.has_lse && !signature.has_dropout && !signature.has_logits_soft_cap;
}

} // namespace

Attention::Attention(std::int64_t nhead_q, std::int64_t nhead_k, std::int64_t seqlen_q, std::int64_t seqlen_k,
                     std::int64_t hdim)
    : q_(static_cast<std::size_t>(nhead_q * seqlen_q * hdim)),
      k_(static_cast<std::size_t>(nhead_k * seqlen_k * hdim)), v_(k_.size()), o_(q_.size()) {
    fill(q_, 1);
    fill(k_, 2);
    fill(v_, 3);
    args_.shape = {.batch = 1,
                   .nhead_q = nhead_q,
                   .nhead_k = nhead_k,
                   .seqlen_q = seqlen_q,
                   .seqlen_k = seqlen_k,
                   .hdim_q = hdim,
                   .hdim_v = hdim};
    args_.q = view(q_, nhead_q, seqlen_q, hdim);
    args_.k = view(k_, nhead_k, seqlen_k, hdim);
    args_.v = view(v_, nhead_k, seqlen_k, hdim);
    args_.o = view(o_, nhead_q, seqlen_q, hdim);
    args_.score.scale_s = 1.0F / std::sqrt(static_cast<float>(hdim));
    forget();
}

Attention& Attention::causal() {
    args_.mask = {fmha::MaskType::bottom_right, -1, 0, 0};
    return *this;
}

fmha::Problem Attention::problem(const char* arch) const {
    fmha::Signature traits;
    traits.data_type = fmha::DataType::fp32;
    return fmha::problem_of(traits, args_, fmha::ArchName(arch));
}

void Attention::forget() {
    std::ranges::fill(o_, std::numeric_limits<float>::quiet_NaN());
}

bool Attention::judge(const char* what) const {
    fmha_fwd_args call{};
    call.size = sizeof call;
    call.version = FMHA_ABI_VERSION;
    call.api = FMHA_FWD;
    call.shape.data_type = FMHA_FP32;
    call.shape.batch = args_.shape.batch;
    call.shape.nhead_q = args_.shape.nhead_q;
    call.shape.nhead_k = args_.shape.nhead_k;
    call.shape.seqlen_q = args_.shape.seqlen_q;
    call.shape.seqlen_k = args_.shape.seqlen_k;
    call.shape.hdim_q = args_.shape.hdim_q;
    call.shape.hdim_v = args_.shape.hdim_v;
    call.q = tensor(args_.q);
    call.k = tensor(args_.k);
    call.v = tensor(args_.v);
    call.score.scale_s = args_.score.scale_s;
    call.mask.type = static_cast<std::int32_t>(args_.mask.type);
    call.mask.window_left = args_.mask.left;
    call.mask.window_right = args_.mask.right;
    std::vector<double> exact(o_.size());
    std::array<char, 256> error{};
    if (fmha_reference_attention("gfx950", &call, exact.data(), nullptr, error.data(), error.size()) !=
        FMHA_OK)
        return check(false, error.data());
    double worst = 0.0;
    for (std::size_t n = 0; n < exact.size(); ++n) {
        const double distance = std::abs(o_[n] - exact[n]) / limit(args_.shape);
        worst = std::isnan(distance) ? std::numeric_limits<double>::infinity() : std::max(worst, distance);
    }
    fmt::print("{}: {} elements, worst error {:.3f} of the limit\n", what, exact.size(), worst);
    return check(worst <= 1.0, "the output is within the limits of the reference");
}

std::vector<std::shared_ptr<const fmha::KernelInstance>>
host_kernels(const std::function<bool(const fmha::KernelConfig&)>& wanted) {
    fmha::catalog::Request request;
    request.rules = fmha::catalog::RuleSet::house;
    request.targets = {fmha::ArchName("gfx950")};
    request.families = fmha::catalog::FamilySet::of(fmha::KernelFamily::fwd);
    fmha::Registry listed;
    fmha::add_catalogue(listed, fmha::arch::ArchSet::built_in(), request);
    std::vector<std::shared_ptr<const fmha::KernelInstance>> found;
    for (const fmha::KernelEntry& entry : listed.get_all())
        if (is_plain(entry.config.signature) && wanted(entry.config))
            found.push_back(fmha::host_target::make_instance(entry.config));
    return found;
}

bool check(bool condition, const char* sentence) {
    fmt::print("{} {}\n", condition ? "yes:" : "NO: ", sentence);
    return condition;
}

} // namespace example
