#include "kernels/catalog/ck/filters.hpp"

#include "dispatcher/types/family_traits.hpp"
#include "kernels/catalog/ck/names.hpp"
#include "kernels/catalog/glob.hpp"
#include "kernels/catalog/tables/walk.hpp"

namespace fmha::catalog::ck {

using namespace tables;

namespace {

std::size_t index_of(KernelFamily family) {
    return static_cast<std::size_t>(family);
}

std::vector<std::string> split_at(const std::string& text) {
    std::vector<std::string> parts{""};
    for (const char c : text) {
        if (c == '@')
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

} // namespace

Filters::Filters(const Request& request) : masks_(request.masks) {
    const auto set = [&](KernelFamily family, const std::string& pattern, bool on) {
        patterns_[index_of(family)] = pattern;
        any_[index_of(family)] = on;
    };
    for (const KernelFamily family : {KernelFamily::fwd, KernelFamily::fwd_pagedkv,
                                      KernelFamily::fwd_appendkv, KernelFamily::batch_prefill}) {
        const std::string& pattern = request.filters[static_cast<std::size_t>(traits_of(family).api)];
        set(family, pattern, !pattern.empty());
    }
    // Split-KV: combine first, then main; an empty part accepts all.
    std::vector<std::string> split =
        split_at(request.filters[static_cast<std::size_t>(ApiFamily::fwd_splitkv)]);
    split.resize(2);
    set(KernelFamily::fwd_splitkv_combine, split[0], !split[0].empty());
    set(KernelFamily::fwd_splitkv, split[1], !split[1].empty());
    // Backward: dot_do_o, convert_dq, dq_dk_dv; a missing part accepts all, an empty one nothing.
    const std::string& text = request.filters[static_cast<std::size_t>(ApiFamily::bwd)];
    std::vector<std::string> bwd = text.empty() ? std::vector<std::string>{} : split_at(text);
    bwd.resize(3, "*");
    set(KernelFamily::bwd_dot_do_o, bwd[0], bwd[0] != "*");
    set(KernelFamily::bwd_convert_dq, bwd[1], bwd[1] != "*");
    set(KernelFamily::bwd_dq_dk_dv, bwd[2], bwd[2] != "*");
}

bool Filters::matches(std::string_view pattern, const KernelConfig& config) const {
    scratch_.clear();
    append_stem(masks_, config, scratch_);
    return glob_match(pattern, scratch_);
}

bool Filters::glob_keeps(const KernelConfig& candidate) const {
    const auto accepts = [&](KernelFamily family, const auto& make) {
        return !any_[index_of(family)] || matches(patterns_[index_of(family)], make());
    };
    if (candidate.signature.family != KernelFamily::bwd_dq_dk_dv)
        return accepts(candidate.signature.family, [&] { return candidate; });
    return accepts(KernelFamily::bwd_dot_do_o, [&] { return dot_do_o_of(candidate); }) &&
           accepts(KernelFamily::bwd_convert_dq, [&] { return convert_dq_of(candidate); }) &&
           accepts(KernelFamily::bwd_dq_dk_dv, [&] { return dq_dk_dv_of(candidate); });
}

} // namespace fmha::catalog::ck
