#include "backward_problem.hpp"

#include "reference/backward.hpp"
#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <span>

namespace fmha::test {
namespace {

double stored(const TensorView& view, std::int64_t element) {
    std::uint32_t code = 0;
    const auto size = static_cast<std::size_t>(element_bits(view.type) / 8);
    std::memcpy(&code, static_cast<const std::byte*>(view.data) + static_cast<std::size_t>(element) * size,
                size);
    return reference::decode(view.type, code);
}

std::string number(double x) {
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%.9g", x);
    return digits.data();
}

/// Compares one gradient with its reference.
class Comparison {
  public:
    Comparison(const reference::Gradients& expected, const reference::GradientTable& table,
               reference::GradientBound::Stored stored, std::string name, BackwardVerdict& verdict)
        : expected_(expected), table_(table), stored_(stored), name_(std::move(name)), verdict_(verdict) {}

    void add(std::int64_t line, std::int64_t c, double got) {
        const reference::GradientBound bound(expected_, table_, line, stored_);
        const double want = bound.expected(c), difference = std::abs(got - want);
        if (bound.error(c) == 0.0 && want == 0.0 && got != 0.0) verdict_.zeros_exact = false;
        const double share = difference == 0.0 ? 0.0 : difference / bound.limit(c);
        squares_ += difference * difference;
        variance_ += bound.variance(c);
        ++count_;
        if (share <= worst_) return;
        worst_ = std::isnan(share) ? std::numeric_limits<double>::infinity() : share;
        text_ = name_ + "[" + std::to_string(line) + "," + std::to_string(c) + "] = " + number(got) +
                ", expected " + number(want) + " within " + number(bound.limit(c)) + "; ";
    }
    void finish(double& share, bool with_rms) {
        share = worst_;
        if (worst_ > 1.0) verdict_.worst += text_;
        double rms = variance_ > 0.0 ? std::sqrt(squares_ / variance_) : 0.0;
        if (count_ < 4096) rms /= 2.0;
        if (with_rms) verdict_.rms = std::max(verdict_.rms, rms);
    }

  private:
    const reference::Gradients& expected_;
    const reference::GradientTable& table_;
    reference::GradientBound::Stored stored_;
    std::string name_;
    BackwardVerdict& verdict_;
    double worst_ = 0.0, squares_ = 0.0, variance_ = 0.0;
    std::int64_t count_ = 0;
    std::string text_;
};

} // namespace

std::string BackwardVerdict::text() const {
    std::string text;
    for (const auto& [name, share] :
         {std::pair("d", d), std::pair("dq", dq), std::pair("dk", dk), std::pair("dv", dv),
          std::pair("dbias", dbias), std::pair("d_sink", d_sink), std::pair("rms", rms)})
        text += std::string(name) + ' ' + std::to_string(share) + ' ';
    return text + (zeros_exact ? "" : "zeros not written ") + (only_outputs_written ? "" : "stray writes ") +
           worst;
}

bool BackwardProblem::unwritten_around(const Memory& memory) const {
    std::vector<std::byte> left = memory.bytes;
    const auto size = static_cast<std::size_t>(element_bits(memory.view.type) / 8);
    for (std::int64_t b = 0; b < spec_.batch; ++b)
        for (std::int64_t h = 0; h < memory.heads; ++h)
            for (std::int64_t r = 0; r < (memory.keys ? logical_k_ : logical_q_)[static_cast<std::size_t>(b)];
                 ++r) {
                const std::int64_t cols =
                    memory.pairs ? logical_k_[static_cast<std::size_t>(b)] : memory.cols;
                const auto at =
                    static_cast<std::size_t>(guard + memory.view.offset(b, h, start(b, memory.keys) + r, 0));
                std::fill_n(left.begin() + static_cast<std::ptrdiff_t>(at * size),
                            static_cast<std::size_t>(cols) * size, poison_);
            }
    return std::ranges::all_of(left, [&](std::byte x) { return x == poison_; });
}

BackwardVerdict BackwardProblem::judge(const Numerics& numerics) const {
    reference::GradientOptions options;
    options.numerics = numerics;
    options.threads = 1;
    options.dq_parts = (*std::ranges::max_element(physical_k_) / chain_.main.algorithm.tile.n0) + 1;
    const reference::GradientRequest request{reference::all_rows(args_), reference::all_keys(args_),
                                             args_.dbias.present(), args_.d_sink != nullptr};
    const reference::Gradients expected = reference::backward(args_, request, options);
    BackwardVerdict verdict;
    using Stored = reference::GradientBound::Stored;
    const bool with_rms = chain_.main.signature.data_type != DataType::fp32; // TF32 rounds all operands

    Comparison d(expected, expected.d, Stored::fp32, "d", verdict),
        dq(expected, expected.dq, Stored::tag, "dq", verdict),
        dbias(expected, expected.dbias, Stored::tag, "dbias", verdict);
    for (std::size_t n = 0; n < request.rows.size(); ++n) {
        const auto [b, h, i] = request.rows[n];
        const auto line = static_cast<std::int64_t>(n);
        const std::int64_t row = start(b, false) + i;
        d.add(line, 0, stored(args_.d, args_.d.offset(b, h, row, 0)));
        for (std::int64_t c = 0; c < spec_.hdim_q; ++c)
            dq.add(line, c, stored(args_.dq, args_.dq.offset(b, h, row, c)));
        for (std::int64_t j = 0; request.dbias && j < logical_k_[static_cast<std::size_t>(b)]; ++j)
            dbias.add(line, j, stored(args_.dbias, args_.dbias.offset(b, h, row, j)));
    }
    Comparison dk(expected, expected.dk, Stored::tag, "dk", verdict),
        dv(expected, expected.dv, Stored::tag, "dv", verdict);
    for (std::size_t n = 0; n < request.keys.size(); ++n) {
        const auto [b, h, j] = request.keys[n];
        const auto line = static_cast<std::int64_t>(n);
        const std::int64_t row = start(b, true) + j;
        for (std::int64_t c = 0; c < spec_.hdim_q; ++c)
            dk.add(line, c, stored(args_.dk, args_.dk.offset(b, h, row, c)));
        for (std::int64_t c = 0; c < spec_.hdim_v; ++c)
            dv.add(line, c, stored(args_.dv, args_.dv.offset(b, h, row, c)));
    }
    Comparison d_sink(expected, expected.d_sink, Stored::fp32, "d_sink", verdict);
    for (std::int64_t h = 0; request.d_sink && h < spec_.heads; ++h)
        d_sink.add(h, 0, double{args_.d_sink[h]});
    d.finish(verdict.d, false);
    dq.finish(verdict.dq, with_rms);
    dk.finish(verdict.dk, with_rms);
    dv.finish(verdict.dv, with_rms);
    dbias.finish(verdict.dbias, false);
    d_sink.finish(verdict.d_sink, false);
    for (const Memory* memory : outputs_) verdict.only_outputs_written &= unwritten_around(*memory);
    const auto untouched = [&](std::span<const std::byte> bytes) {
        return std::ranges::all_of(bytes, [&](std::byte x) { return x == poison_; });
    };
    verdict.only_outputs_written &=
        untouched(std::span(workspace_).first(canary)) && untouched(std::span(workspace_).last(canary));
    if (!d_sink_.empty()) {
        verdict.only_outputs_written &= untouched(std::as_bytes(std::span(d_sink_).first(1))) &&
                                        untouched(std::as_bytes(std::span(d_sink_).last(1)));
    }
    return verdict;
}

} // namespace fmha::test
