#pragma once

#include "harness/gates/judge.hpp"
#include "harness/gates/outputs.hpp"
#include "tests/toy_family/toy_reference.hpp"

#include <memory>

namespace fmha::harness {

inline Outputs toy_outputs(const ToyArgs& args) {
    const auto rows = std::make_shared<const OutputRows>(Axis::query, reference::toy_rows(args));
    Outputs outputs;
    Outputs::Tensor& o = outputs.add("o", args.o.type, rows, Axis::qk_channel);
    for (const reference::RowId& id : rows->ids())
        o.append_row(args.shape.hdim_q, [&](std::int64_t c) {
            return load_code(args.o.data, args.o.type,
                             args.o.offset(id.b, id.h, reference::toy_start(args, id.b) + id.i, c));
        });
    return outputs;
}

/// The reference's rows of O, which a kernel may round once.
class ToyBounded final : public Bounded {
  public:
    explicit ToyBounded(const ToyArgs& args)
        : Bounded("o", args.o.type), args_(args), rows_(reference::toy_rows(args)) {}

    std::int64_t rows() const override { return static_cast<std::int64_t>(rows_.size()); }
    void read(std::int64_t row, BoundedRow& into) const override {
        into.id = rows_[static_cast<std::size_t>(row)];
        into.in_rms = false;
        into.resize(static_cast<std::size_t>(args_.shape.hdim_q));
        for (std::size_t c = 0; c < into.value.size(); ++c) {
            into.value[c] = reference::toy_value(args_, into.id, static_cast<std::int64_t>(c));
            into.limit[c] = reference::spacing(args_.o.type, into.value[c]) / 2.0;
        }
    }

  private:
    ToyArgs args_;
    std::vector<reference::RowId> rows_;
};

inline Judgement judge_toy(const ToyArgs& args, const Outputs& outputs) {
    const ToyBounded expected(args);
    Judgement judgement;
    Findings findings({{.axis = Axis::query,
                        .batch = args.shape.batch,
                        .heads = args.shape.nhead_q,
                        .checked_rows = expected.rows(),
                        .all_rows = expected.rows(),
                        .facts = [args](const reference::RowId& id) {
                            return RowSpace::Facts{.length = reference::toy_length(args, id.b),
                                                   .partners = 1};
                        }}});
    judge_values(expected, outputs, findings, judgement);
    judge_finite(outputs, judgement);
    judgement.worst = findings.worst();
    judgement.maps = findings.maps();
    judgement.pattern = findings.pattern();
    return judgement;
}

} // namespace fmha::harness
