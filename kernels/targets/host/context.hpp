#pragma once

#include "kernels/programs/key_loop.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "kernels/targets/host/score_context.hpp"

namespace fmha::host_target {

/// The block context of attention: products of tiles, and what stands between them. There is nothing to wait for.
class HostContext : public ScoreContext {
  public:
    HostContext(const KernelConfig& config, std::vector<TileVisit>* trace);

    void visit(const kernels::FwdItem& item, std::int64_t key_tile);

    FloatTile query() const { return query_; }
    Panels key() const { return key_; }
    Panels value() const { return value_; }
    FloatTile scores() const { return scores_; }
    FloatTile output() const { return output_; }
    /// Makes the context ready for the next block, of which only `rows` query rows exist. The tiles shrink to
    /// them: the rest of a block of the configuration would be computed and thrown away.
    void begin(std::int64_t rows);

    /// Steps of `step` that cover the part of a tile's `capacity` that lies inside `extent`.
    int steps(std::int64_t capacity, std::int64_t extent, std::int64_t step) const {
        return static_cast<int>(((extent < capacity ? extent : capacity) + step - 1) / step);
    }
    void prefetch(const Panels&, const kernels::Matrix&, std::int64_t, std::int64_t) const {}
    void commit() const {}
    void wait(int) const {}
    bool tiles_ahead() const { return false; }

    using ScoreContext::load;
    void load(Panels& operand, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0);
    void load_transposed(Panels& operand, const kernels::Matrix& matrix, std::int64_t row0,
                         std::int64_t col0);
    void product(const FloatTile& acc, const FloatTile& a, int first, const Panels& b,
                 float factor = 1.0F) const;

    FloatTile narrow(const FloatTile& scores) const;
    float weight_unit() const { return weight_unit_; }

  protected:
    ElementType weight_type() const { return weight_type_; }

  private:
    std::vector<TileVisit>* trace_;
    ElementType weight_type_;
    float weight_unit_;
    Scratch<float> memory_;
    FloatTile query_, scores_, output_;
    Panels key_, value_;
    float* work_ = nullptr;
};

} // namespace fmha::host_target
