#pragma once

#include "kernels/catalog/rules/features.hpp"
#include "kernels/catalog/sweep_config.hpp"

#include <functional>
#include <string>
#include <vector>

namespace fmha::catalog::audit {

/// Upstream's numeric filters. A kernel is kept when any of the numbers keeps it; `everything` keeps all.
struct ReceiptFilter {
    std::vector<int> receipts{0};
    bool everything = false;

    /// Filter F, of forward kernels and, when the number is not 0, of paged-KV kernels.
    bool keeps_forward(DataType type, const Feature& feature) const;
    bool keeps_pagedkv(DataType type, const Feature& feature) const;
    /// Filter K, of split-KV kernels but not of their combine kernels.
    bool keeps_splitkv(DataType type, const Feature& feature) const;
    /// Whether forward has a qr kernel beside every qr_async one.
    bool extends_qr() const;
};

/// One enumeration: its range, and whether candidates that a rule removes are shown too.
struct Selection {
    SweepVariant variant = SweepVariant::fwd;
    AllowLists allow;
    ReceiptFilter receipts;
    bool keep_rejected = false;
};

/// Takes a kernel and the rules that remove it (none unless `Selection::keep_rejected`).
using CandidateSink = std::function<void(const KernelConfig&, RuleBits)>;

/// Whether the list of data types keeps `name`.
bool allows(const std::optional<std::vector<std::string>>& names, std::string_view name);

constexpr RuleBits outside(const AllowBits& allowed, unsigned value, AuditRule rule) {
    return unless(!allowed || (*allowed >> value & 1U) != 0, rule);
}

/// Adds to every feature the allow-list rules and receipt rules of the variant.
void judge(std::vector<Feature>& features, DataType type, const Selection& selection);

/// Removes features with a failed rule unless rejected candidates are to be shown.
void prune(std::vector<Feature>& features, bool keep_rejected);

/// The group padding rule of families whose kernels need both sequence paddings, and of those that need the
/// query one only.
constexpr RuleBits group_needs_both(Mode mode, const Padding& pad) {
    return unless(mode == Mode::batch || (pad.s && pad.sk), AuditRule::group_padding);
}
constexpr RuleBits group_needs_query(Mode mode, const Padding& pad) {
    return unless(mode == Mode::batch || pad.s, AuditRule::group_padding);
}

inline constexpr std::array modes{Mode::batch, Mode::group};

/// The record that every enumeration starts from: upstream's defaults, several of which show in names.
KernelConfig default_record(const ArchName& arch, std::int32_t block_per_cu);

/// Split-KV combine kernels of one data type over `hdims`, in the order that all these sets share; `base` is
/// the default record. The mode list applies, head dimension restrictions do not.
void enumerate_combine(const Selection& selection, const std::vector<std::int64_t>& hdims,
                       const KernelConfig& base, RuleBits failed, const CandidateSink& sink);

/// The block of append-KV: 64 by 64 tokens over the whole head dimension; the rest keeps upstream's defaults.
void set_appendkv_tile(KernelConfig& config);

/// Emits `config` once per page size, in order. Layout, scale and n0 of the record decide which exist.
void each_page(KernelConfig& config, RuleBits failed, bool keep_rejected, const CandidateSink& sink);

} // namespace fmha::catalog::audit
