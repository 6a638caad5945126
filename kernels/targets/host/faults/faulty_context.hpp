#pragma once

#include "kernels/targets/host/context.hpp"
#include "kernels/targets/host/faults/fault.hpp"

#include <optional>

namespace fmha::host_target {

/// The host's block context with one operation or decision replaced by a wrong one. The program is compiled a
/// second time against this class; it hides members of HostContext and knows nothing else.
class FaultyContext : public HostContext {
  public:
    FaultyContext(const KernelConfig& config, const FwdArgs& args, Fault fault, std::vector<TileVisit>* trace)
        : HostContext(config, trace), args_(&args), fault_(fault) {}

    kernels::Entry entry(const Shape& shape, const LengthArrays& lengths, std::int64_t b) {
        entry_ = HostContext::entry(shape, lengths, b);
        tiles_seen_ = 0;
        if (is(Fault::group_offset_off_by_one) && entry_.start_k > 0) --entry_.start_k;
        return entry_;
    }
    void visit(const kernels::FwdItem& item, std::int64_t key_tile) {
        item_ = item;
        key0_ = key_tile * cfg().algorithm.tile.n0;
        ++tiles_seen_;
        HostContext::visit(item, key_tile);
    }

    std::int64_t kv_head(const Shape& shape, std::int64_t h) const {
        const std::int64_t hk = HostContext::kv_head(shape, h);
        return is(Fault::head_map_plus_one) ? (hk + 1) % shape.nhead_k : hk;
    }
    kernels::Mask mask(kernels::Mask mask) const {
        if (cfg().signature.mask == MaskClass::none) return mask;
        if (is(Fault::mask_right_too_wide)) ++mask.x;
        if (is(Fault::mask_left_too_narrow)) --mask.y;
        return mask;
    }
    float alibi_slope(const ScoreArgs& score, std::int64_t b, std::int64_t h) const {
        return HostContext::alibi_slope(
            score, b, is(Fault::alibi_neighbour_slope) ? (h + 1) % args_->shape.nhead_q : h);
    }
    float scale(const ScoreArgs& score) const {
        return HostContext::scale(score) * (is(Fault::scale_one_percent) ? 1.01F : 1.0F);
    }
    float to_base2(float natural) const {
        return is(Fault::log2e_omitted) ? natural : HostContext::to_base2(natural);
    }
    float sink_mass(float sink) const {
        return HostContext::sink_mass(sink) * (is(Fault::sink_added_twice) ? 2.0F : 1.0F);
    }
    float dropout_rescale(const kernels::Dropout& dropout) const {
        return is(Fault::dropout_scale_omitted) ? 1.0F : HostContext::dropout_rescale(dropout);
    }
    float lse(float maximum, float log_total) const {
        return is(Fault::lse_without_maximum) ? log_total : HostContext::lse(maximum, log_total);
    }

    using HostContext::load;
    void load(Panels& value, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0);
    void load_transposed(Panels& key, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0);
    void soft_cap(const FloatTile& scores, float inner, float outer);
    void add_bias(const FloatTile& scores, kernels::Matrix bias, std::int64_t row0, std::int64_t key0);
    void raise_to_row_max(const Rows& top, const Rows& shrink, const FloatTile& scores);
    using HostContext::scale_rows;
    void scale_rows(const FloatTile& tile, const Rows& factor);
    void generate(const ByteTile& bytes, const kernels::RandomSquares& squares, std::int64_t row0,
                  std::int64_t key0);
    FloatTile narrow(const FloatTile& scores) const;
    using HostContext::store;
    void store(const kernels::Matrix& matrix, const FloatTile& tile, std::int64_t row0,
               std::int64_t col0) const;

  private:
    struct SoftCap {
        float inner, outer;
    };
    bool is(Fault fault) const { return fault_ == fault; }

    const FwdArgs* args_;
    Fault fault_;
    kernels::Entry entry_;
    kernels::FwdItem item_;
    std::int64_t key0_ = 0;
    int tiles_seen_ = 0;
    bool rescale_pending_ = false;
    std::optional<SoftCap> late_soft_cap_;
};

} // namespace fmha::host_target
