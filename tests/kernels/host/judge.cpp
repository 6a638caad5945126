#include "judge.hpp"

#include "kernels/programs/formats.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "reference/bounds.hpp"
#include "reference/forward.hpp"

#include <algorithm>
#include <cmath>

namespace fmha::host_target::test {
namespace {

double ratio(double difference, double limit) {
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    return difference == 0.0 ? 0.0 : difference / limit;
}

} // namespace

std::string Distance::complaint(bool has_lse) const {
    Distance counted = *this;
    if (!has_lse) counted.lse = 0.0;
    if (counted.acceptable()) return {};
    return "o " + std::to_string(o) + " lse " + std::to_string(lse) + " rms " + std::to_string(rms) +
           " random bytes " + std::to_string(random_bytes_agree) + " memory " +
           std::to_string(only_logical_elements_written) + " " + worst;
}

Distance judge(const FwdProblem& problem, const KernelConfig& config) {
    return judge(problem, numerics_of(config));
}

Distance judge(const FwdProblem& problem, const Numerics& numerics) {
    const FwdArgs& args = problem.args();
    reference::ForwardOptions options;
    options.numerics = numerics;
    const auto rows = reference::all_rows(args);
    return judge(problem, reference::forward(args, rows, options, reference::Oracle::row_by_row));
}

Distance judge(const FwdProblem& problem, const reference::ForwardRows& expected) {
    const FwdArgs& args = problem.args();
    const auto& rows = expected.rows;
    Distance distance;
    distance.only_logical_elements_written = problem.only_logical_elements_written();
    const double largest = element_bits(args.o.type) == 8 ? kernels::format_of(args.o.type).largest
                                                          : std::numeric_limits<double>::infinity();
    double squares = 0.0, variance = 0.0;
    if (args.o.type == ElementType::fp32) distance.rms_limit = 8.0;
    for (std::size_t n = 0; n < rows.size(); ++n) {
        const auto row = static_cast<std::int64_t>(n);
        const auto [b, h, i] = rows[n];
        const reference::RowBound bound(expected, row);
        for (std::int64_t c = 0; c < args.shape.hdim_v; ++c) {
            const double want = std::clamp(bound.expected(c), -largest, largest);
            squares += std::pow(problem.o(b, h, i, c) - want, 2);
            variance += bound.variance(c);
            const double r = ratio(std::abs(problem.o(b, h, i, c) - want), bound.limit(c));
            if (r > distance.o) {
                distance.o = r;
                distance.worst = "O[" + std::to_string(b) + "," + std::to_string(h) + "," +
                                 std::to_string(i) + "," + std::to_string(c) +
                                 "] = " + std::to_string(problem.o(b, h, i, c)) + ", expected " +
                                 std::to_string(want);
            }
        }
        if (args.lse.present()) {
            const double lse = problem.lse(b, h, i), want = expected.lse(row);
            const double limit = reference::lse_limit(expected, row);
            distance.lse = std::max(distance.lse, lse == want ? 0.0 : ratio(std::abs(lse - want), limit));
        }
        if (args.randval.present())
            for (std::int64_t j = 0; j < expected.seqlen_k(row); ++j)
                if (reference::key_visible(args, b, i, j) &&
                    problem.random_byte(b, h, i, j) != reference::stored_random_byte(args, rows[n], j))
                    distance.random_bytes_agree = false;
    }
    // B.3: small samples vary more.
    if (rows.size() * static_cast<std::size_t>(args.shape.hdim_v) < 4096) distance.rms_limit *= 2;
    distance.rms = std::sqrt(ratio(squares, variance));
    return distance;
}

} // namespace fmha::host_target::test
