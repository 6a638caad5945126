#pragma once

#include "harness/cases/case.hpp"
#include "harness/gates/bounded.hpp"
#include "reference/forward.hpp"

namespace fmha::harness {

/// O of forward attention within B.2 and B.3. `rows` must have companions and outlive this.
class BoundedO final : public Bounded {
  public:
    BoundedO(const reference::ForwardRows& rows, ElementType o, Fill fill, ElementType p)
        : Bounded("o", o), rows_(rows), fill_(fill), p_type_(p) {}

    std::int64_t rows() const override { return rows_.o.rows(); }
    void read(std::int64_t row, BoundedRow& into) const override;
    bool has_rms() const override;
    bool has_mean() const override;
    double lean() const override;

  private:
    const reference::ForwardRows& rows_;
    Fill fill_;
    ElementType p_type_;
};

/// LSE of forward attention within B.4.
class BoundedLse final : public Bounded {
  public:
    explicit BoundedLse(const reference::ForwardRows& rows)
        : Bounded("lse", ElementType::fp32), rows_(rows) {}

    std::int64_t rows() const override { return rows_.lse.size(); }
    void read(std::int64_t row, BoundedRow& into) const override;

  private:
    const reference::ForwardRows& rows_;
};

} // namespace fmha::harness
