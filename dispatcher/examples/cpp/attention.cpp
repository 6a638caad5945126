#include "dispatcher/examples/cpp/attention.hpp"

#include "dispatcher/invocation.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "kernels/catalog/query/row_filter.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "reference/bounds.hpp"

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

} // namespace

Attention::Attention(std::int64_t nhead_q, std::int64_t nhead_k, std::int64_t seqlen_q, std::int64_t seqlen_k,
                     std::int64_t hdim)
    : q_(static_cast<std::size_t>(nhead_q * seqlen_q * hdim)),
      k_(static_cast<std::size_t>(nhead_k * seqlen_k * hdim)), v_(k_.size()), o_(q_.size()),
      lse_(static_cast<std::size_t>(nhead_q * seqlen_q)) {
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
    namespace ref = fmha::reference;
    const auto rows = ref::all_rows(args_);
    ref::ForwardOptions options;
    options.numerics = ref::kernel_numerics(fmha::element_types(fmha::DataType::fp32, fmha::Fp8Flavour::ocp));
    const ref::ForwardRows exact = ref::forward(args_, rows, options);
    double worst = 0.0;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const ref::RowBound bound(exact, static_cast<std::int64_t>(row));
        for (std::int64_t c = 0; c < args_.shape.hdim_v; ++c) {
            const auto at =
                static_cast<std::size_t>(args_.o.offset(rows[row].b, rows[row].h, rows[row].i, c));
            const double distance = std::abs(o_[at] - bound.expected(c)) / bound.limit(c);
            worst =
                std::isnan(distance) ? std::numeric_limits<double>::infinity() : std::max(worst, distance);
        }
    }
    fmt::print("{}: {} rows, worst error {:.3f} of the limit\n", what, rows.size(), worst);
    return check(worst <= 1.0, "the output is within the limits of the reference");
}

std::vector<std::shared_ptr<const fmha::KernelInstance>> host_kernels(const char* arch, const char* where) {
    const auto archs = fmha::arch::ArchSet::built_in();
    const auto all = fmha::catalogue_of(archs, fmha::catalog::RuleSet::house, arch);
    std::vector<std::shared_ptr<const fmha::KernelInstance>> found;
    fmha::catalog::RowFilter(where, {}).select(
        all, [&](std::size_t index) { found.push_back(fmha::host_target::make_instance(all[index])); });
    return found;
}

bool check(bool condition, const char* sentence) {
    fmt::print("{} {}\n", condition ? "yes:" : "NO: ", sentence);
    return condition;
}

} // namespace example
