#include "reference/matrix/combine_blocks.hpp"

#include "dispatcher/system/parallel.hpp"
#include "reference/bounds.hpp"
#include "reference/combine_result.hpp"
#include "reference/matrix/decode.hpp"
#include "reference/matrix/lines.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <vector>

namespace fmha::reference {
namespace {

constexpr std::int64_t block_rows = 64;

using matrix::Matrix;

/// The partial results of one (entry, head, row) with the splits as the rows of a matrix.
TensorView splits_as_rows(const TensorView& view, const SplitKvArgs& args, const RowId& row) {
    const std::int64_t first =
        args.shape.mode == Mode::group ? std::int64_t{args.lengths.seqstart_q[row.b]} : 0;
    TensorView out = view;
    out.data = static_cast<float*>(view.data) +
               (row.b * view.batch_stride + row.h * args.partials.num_splits * view.head_stride +
                (first + row.i) * view.row_stride);
    out.row_stride = view.head_stride;
    out.batch_stride = out.head_stride = 0;
    return out;
}

/// Rows begin … begin + size − 1 of the result: the splits of a row lie along a line.
class CombineBlock {
  public:
    CombineBlock(const SplitKvArgs& args, CombinedRows& out, std::int64_t begin, std::int64_t size)
        : args_(args), out_(out), begin_(begin), size_(size), splits_(args.partials.num_splits) {}

    void run() {
        Matrix lse(size_, splits_), line(splits_, 1);
        Eigen::VectorXd sink = Eigen::VectorXd::Constant(size_, -infinity);
        for (Eigen::Index r = 0; r < size_; ++r) {
            matrix::decode_block(splits_as_rows(args_.partials.lse_acc, args_, asked(r)), 0, 0, 0, 0, line);
            lse.row(r) = line.transpose();
            if (args_.score.sink_logit != nullptr) sink(r) = args_.score.sink_logit[asked(r).h];
        }
        const Matrix taken = (lse.array() > -infinity).cast<double>();
        const Eigen::VectorXd top = lse.rowwise().maxCoeff().cwiseMax(sink);
        const Eigen::VectorXd anchor = (top.array() > -infinity).select(top, 0.0);
        // Eigen's exponential of −∞ is a small number.
        const Eigen::ArrayXd sink_share =
            (sink.array() > -infinity).select((sink - anchor).array().exp(), 0.0);
        Matrix weight = (taken.array() > 0.0).select((lse.colwise() - anchor).array().exp(), 0.0);
        const Eigen::ArrayXd sum = weight.rowwise().sum().array() + sink_share;
        const Eigen::ArrayXd divisor = (sum > 0.0).select(sum, 1.0);
        weight.array().colwise() /= divisor;

        column(out_.lse) = (sum > 0.0).select(anchor.array() + divisor.log(), -infinity);
        for (Eigen::Index r = 0; r < size_; ++r)
            out_.splits_taken[static_cast<std::size_t>(begin_ + r)] =
                static_cast<std::int64_t>(taken.row(r).sum());
        Matrix distance = Matrix::Zero(size_, splits_);
        if (out_.has_companions()) {
            distance = (taken.array() > 0.0).select(-(lse.colwise() - anchor), distance);
            const Eigen::ArrayXd sink_distance = (sink.array() > -infinity).select(anchor - sink, 0.0);
            column(out_.ell) = sum;
            column(out_.mean_distance) =
                weight.cwiseProduct(distance).rowwise().sum().array() + sink_share / divisor * sink_distance;
            const Eigen::VectorXd sink_size = (sink.array() > -infinity).select(sink.cwiseAbs(), 0.0);
            column(out_.largest_lse) =
                (taken.array() > 0.0).select(lse.cwiseAbs(), 0.0).rowwise().maxCoeff().cwiseMax(sink_size);
        }
        for (Eigen::Index r = 0; r < size_; ++r) combine(r, taken.row(r), weight.row(r), distance.row(r));
    }

  private:
    using Line = Eigen::Ref<const Eigen::RowVectorXd>;

    const RowId& asked(Eigen::Index r) const { return out_.rows[static_cast<std::size_t>(begin_ + r)]; }
    Eigen::Map<Eigen::VectorXd> column(std::vector<double>& values) const {
        return {values.data() + begin_, size_};
    }
    Eigen::Map<Eigen::RowVectorXd> line_of(Table& table, Eigen::Index r) const {
        return matrix::line_of(table, begin_ + r);
    }

    void combine(Eigen::Index r, const Line& taken, const Line& weight, const Line& distance) {
        Matrix partial(splits_, args_.shape.hdim_v);
        matrix::decode_block(splits_as_rows(args_.partials.o_acc, args_, asked(r)), 0, 0, 0, 0, partial);
        for (Eigen::Index s = 0; s < splits_; ++s)
            if (taken(s) == 0.0) partial.row(s).setZero();
        auto o = line_of(out_.o, r);
        o = weight * partial;
        if (!out_.has_companions()) return;
        const Matrix magnitude = partial.cwiseAbs();
        const double eps_square = out_.numerics.eps_e * out_.numerics.eps_e / 3.0;
        const Eigen::RowVectorXd zeta_square = u32 * u32 * (distance.array().square() + 1.0) + eps_square;
        line_of(out_.weighted_abs, r) = weight * magnitude;
        line_of(out_.weighted_distance, r) = weight.cwiseProduct(distance) * magnitude;
        line_of(out_.abs_o, r) = magnitude.colwise().sum();
        line_of(out_.weight_variance, r) =
            weight.cwiseAbs2().cwiseProduct(zeta_square) * (partial.rowwise() - o).cwiseAbs2();
    }

    const SplitKvArgs& args_;
    CombinedRows& out_;
    Eigen::Index begin_, size_, splits_;
};

} // namespace

CombinedRows combine_in_matrix_form(const SplitKvArgs& args, std::span<const RowId> rows,
                                    const ForwardOptions& options) {
    CombinedRows out = empty_combination(args, rows, options);
    const auto count = static_cast<std::int64_t>(rows.size());
    const auto compute = [&](std::int64_t task) {
        const std::int64_t begin = task * block_rows;
        CombineBlock(args, out, begin, std::min(block_rows, count - begin)).run();
    };
    system::parallel_for((count + block_rows - 1) / block_rows, compute, options.threads);
    return out;
}

} // namespace fmha::reference
