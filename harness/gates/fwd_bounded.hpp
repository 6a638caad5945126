#pragma once

#include "harness/cases/case.hpp"
#include "harness/gates/bounded.hpp"
#include "reference/attention.hpp"
#include "reference/forward.hpp"

namespace fmha::harness {

/// Whether the roundings of O, and of P before it, are as independent as the RMS model takes them. With zeros for Q and K all rows
/// are one row, with integers P takes the same few values in every row, and with nearly flat scores an 8-bit O takes very few
/// values. Ties round as wrongly as anything can, all of them.
bool rounds_independently(Fill fill, ElementType o);

/// Whether the channels of a row of V are drawn apart and around zero, as those of `dO` are: so its columns add up the same roundings of P
/// with signs of their own. Averages of [0, 1) share them, and the seventh channel of `indexed` is the first one again.
bool channels_differ(Fill fill);

/// O of forward attention within B.2 and B.3. `rows` must have companions; they and `args` must outlive this.
class BoundedO final : public Bounded {
  public:
    BoundedO(const reference::AttentionArgs& args, const reference::ForwardRows& rows, ElementType o,
             Fill fill, ElementType p, InputOrigin inputs = InputOrigin::fill)
        : Bounded("o", o), args_(args), rows_(rows), fill_(fill), p_type_(p), inputs_(inputs) {}

    std::int64_t rows() const override { return rows_.o.rows(); }
    void read(std::int64_t row, BoundedRow& into) const override;
    bool has_rms() const override;
    bool has_mean() const override;
    bool has_elements() const override;
    bool has_rows() const override;
    bool lines_may_round_once() const override;
    double lean() const override;

  private:
    bool weights_round_alike(std::int64_t row) const;

    const reference::AttentionArgs& args_;
    const reference::ForwardRows& rows_;
    Fill fill_;
    ElementType p_type_;
    InputOrigin inputs_;
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
