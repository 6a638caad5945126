#pragma once

#include "kernels/programs/bwd_decisions.hpp"
#include "kernels/targets/host/score_context.hpp"

namespace fmha::host_target {

/// Rows of Q, K, V or dO in the forms in which products take them; a form that no product takes is absent.
struct Operand {
    FloatTile rows;       ///< left operand of a product with a transposed one
    Panels right, turned; ///< right operands: lines along the depth, and lines along the columns
};

/// The block context of backward's main stage.
class BackwardContext : public ScoreContext, public kernels::BwdDecisions {
  public:
    explicit BackwardContext(const KernelConfig& config);

    Operand query() const { return query_; }
    Operand output_gradient() const { return d_o_; }
    Operand key() const { return key_; }
    Operand value() const { return value_; }
    Rows normalisers() { return rows(); }
    Rows deltas() { return rows(); }
    FloatTile scores() const { return scores_; }
    FloatTile score_gradients() const { return ds_; }
    FloatTile query_gradients() const { return dq_; }
    FloatTile key_gradients() const { return dk_; }
    FloatTile value_gradients() const { return dv_; }

    static bool adds_dq_later() { return false; }
    static bool adds_dq_behind() { return false; }
    static constexpr bool may_prefetch_first = false;
    static const kernels::Matrix& kept_place(const kernels::Matrix& place) { return place; }
    static bool adds_dq_first() { return true; }
    static const BwdArgs& reread(const BwdArgs& args) { return args; }
    void prefetch(const Operand&, const kernels::Matrix&, std::int64_t, std::int64_t) const {}
    void prefetch(const Rows&, const kernels::Matrix&, std::int64_t) const {}
    void arrive(const Rows&) const {}
    using ScoreContext::load;
    void load(Operand& operand, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0) const;

    void product_abt(const FloatTile& acc, const Operand& a, const Operand& b) const;
    void product_atb(const FloatTile& acc, const FloatTile& a, const Operand& b) const;
    void product_ab(const FloatTile& acc, const FloatTile& a, const Operand& b) const;

    void to_score_gradients(const FloatTile& ds, const FloatTile& weights, const Rows& d) const;
    FloatTile narrow_weights(const FloatTile& tile) const { return narrow(tile); }
    FloatTile narrow_gradients(const FloatTile& tile) const { return narrow(tile); }
    void accumulate(const kernels::Matrix& matrix, const FloatTile& tile, std::int64_t row0,
                    std::int64_t col0, bool atomic) const;

  private:
    FloatTile narrow(const FloatTile& tile) const;

    ElementType weight_type_;
    Scratch<float> memory_;
    Operand query_, d_o_, key_, value_;
    FloatTile scores_, ds_, dq_, dk_, dv_;
    FloatTile turned_; ///< keys × rows
    float* work_ = nullptr;
};

} // namespace fmha::host_target
