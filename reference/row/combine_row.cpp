#include "reference/row/combine_row.hpp"

#include "dispatcher/system/parallel.hpp"
#include "reference/bounds.hpp"
#include "reference/combine_result.hpp"
#include "reference/views.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fmha::reference {
namespace {

constexpr std::int64_t rows_a_task = 16;

/// One split that has seen a key.
struct Taken {
    std::int64_t split = 0;
    double weight = 0.0;
    double distance = 0.0; ///< M − lse_s
};

/// Row r of the result, one step after another.
class RowCombiner {
  public:
    RowCombiner(const SplitKvArgs& args, const CombineParts& parts, CombinedRows& out, std::int64_t r)
        : args_(args), parts_(parts), out_(out), r_(r), row_(out.rows[static_cast<std::size_t>(r)]),
          first_(parts.first_row(args, row_.b)) {}

    void run() {
        const std::int64_t n = args_.partials.num_splits;
        std::vector<double> lse;
        for (std::int64_t s = 0; s < n; ++s) lse.push_back(parts_.lse(args_, site(s)));
        const double sink = parts_.sink(args_, row_.h);
        const SplitTotal total = parts_.total(lse, sink);
        at(out_.lse) = parts_.combined(total);
        std::vector<Taken> taken;
        for (std::int64_t s = 0; s < n; ++s) {
            const double own = lse[static_cast<std::size_t>(s)];
            if (parts_.weight(own, total) > 0.0 || own > -infinity)
                taken.push_back({s, parts_.weight(own, total), total.maximum - own});
        }
        at(out_.splits_taken) = static_cast<std::int64_t>(taken.size());
        for (std::int64_t c = 0; c < args_.shape.hdim_v; ++c) {
            double sum = 0.0;
            for (const Taken& t : taken) sum += t.weight * parts_.output(args_, site(t.split), c);
            out_.o(r_, c) = sum;
        }
        if (out_.has_companions()) add_companions(taken, lse, total, sink);
    }

  private:
    PartialSite site(std::int64_t split) const { return {row_.b, row_.h, split, first_ + row_.i}; }
    template <class T>
    T& at(std::vector<T>& values) const {
        return values[static_cast<std::size_t>(r_)];
    }

    void add_companions(const std::vector<Taken>& taken, const std::vector<double>& lse,
                        const SplitTotal& total, double sink) {
        if (total.maximum == -infinity) return;
        at(out_.ell) = total.sum;
        if (sink > -infinity) {
            at(out_.largest_lse) = std::abs(sink);
            at(out_.mean_distance) = std::exp(sink - total.maximum) / total.sum * (total.maximum - sink);
        }
        const double eps_square = out_.numerics.eps_e * out_.numerics.eps_e / 3.0;
        for (const Taken& t : taken) {
            at(out_.largest_lse) =
                std::max(at(out_.largest_lse), std::abs(lse[static_cast<std::size_t>(t.split)]));
            at(out_.mean_distance) += t.weight * t.distance;
            const double zeta_square = u32 * u32 * (t.distance * t.distance + 1.0) + eps_square;
            for (std::int64_t c = 0; c < args_.shape.hdim_v; ++c) {
                const double o = parts_.output(args_, site(t.split), c), spread = o - out_.o(r_, c);
                out_.weighted_abs(r_, c) += t.weight * std::abs(o);
                out_.weighted_distance(r_, c) += t.weight * t.distance * std::abs(o);
                out_.abs_o(r_, c) += std::abs(o);
                out_.weight_variance(r_, c) += t.weight * t.weight * zeta_square * spread * spread;
            }
        }
    }

    const SplitKvArgs& args_;
    const CombineParts& parts_;
    CombinedRows& out_;
    std::int64_t r_;
    RowId row_;
    std::int64_t first_;
};

} // namespace

double partial_lse(const SplitKvArgs& args, const PartialSite& site) {
    const TensorView& view = args.partials.lse_acc;
    const std::int64_t head = site.h * args.partials.num_splits + site.split;
    return decode(view.type, stored_code(view, site.b, head, site.row, 0));
}

double partial_output(const SplitKvArgs& args, const PartialSite& site, std::int64_t c) {
    const TensorView& view = args.partials.o_acc;
    const std::int64_t head = site.h * args.partials.num_splits + site.split;
    return decode(view.type, stored_code(view, site.b, head, site.row, c));
}

double split_sink(const SplitKvArgs& args, std::int64_t h) {
    return args.score.sink_logit == nullptr ? -infinity : double{args.score.sink_logit[h]};
}

std::int64_t first_partial_row(const SplitKvArgs& args, std::int64_t b) {
    return args.shape.mode == Mode::group ? args.lengths.seqstart_q[b] : 0;
}

SplitTotal total_of(std::span<const double> lse, double sink) {
    SplitTotal total{sink, 0.0};
    for (const double own : lse) total.maximum = std::max(total.maximum, own);
    if (total.maximum == -infinity) return total;
    for (const double own : lse) total.sum += std::exp(own - total.maximum);
    total.sum += std::exp(sink - total.maximum);
    return total;
}

double combined_lse(const SplitTotal& total) {
    return total.maximum == -infinity ? -infinity : total.maximum + std::log(total.sum);
}

double split_weight(double lse, const SplitTotal& total) {
    return lse == -infinity ? 0.0 : std::exp(lse - combined_lse(total));
}

CombinedRows combine_row_by_row(const SplitKvArgs& args, std::span<const RowId> rows,
                                const ForwardOptions& options, const CombineParts& parts) {
    CombinedRows out = empty_combination(args, rows, options);
    const auto count = static_cast<std::int64_t>(rows.size());
    const auto compute = [&](std::int64_t task) {
        for (std::int64_t r = task * rows_a_task; r < std::min(count, (task + 1) * rows_a_task); ++r)
            RowCombiner(args, parts, out, r).run();
    };
    system::parallel_for((count + rows_a_task - 1) / rows_a_task, compute, options.threads);
    return out;
}

} // namespace fmha::reference
