#pragma once

#include "harness/gates/bounded.hpp"
#include "harness/gates/findings.hpp"
#include "harness/gates/outputs.hpp"
#include "harness/results/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// The gates that all families share.
namespace fmha::harness {

/// The verdict of every gate, and the facts by which a person understands a failure.
struct Judgement {
    std::vector<GateVerdict> gates;
    std::vector<Deviation> worst; ///< at most ten, by distance in units of the limit
    std::vector<ErrorMap> maps;   ///< one an output with wrong elements
    std::string pattern;          ///< of the elements that failed; empty when none did
    std::int64_t elements = 0;    ///< checked by G1

    bool passed() const;
};

/// G1, G2 and the mean error of one output (B.2, B.3): o, o_acc, dq, dk, dv, dbias.
void judge_values(const Bounded& bounded, const Outputs& outputs, Findings& findings, Judgement& judgement);

/// G3 of one number a row (B.4): lse, lse_acc, d, d_sink. Infinities must coincide.
void judge_statistic(const Bounded& bounded, const Outputs& outputs, Findings& findings,
                     Judgement& judgement);

/// G5.9 over all rows of all outputs: values are finite, a statistic may be −∞ besides. Reported for the first output.
void judge_finite(const Outputs& outputs, Judgement& judgement);

/// A gate without tolerance: it remembers the first sentence that broke it.
class ExactGate {
  public:
    ExactGate(std::string gate, std::string tensor)
        : verdict_{.gate = std::move(gate), .tensor = std::move(tensor)} {}

    void fail(const std::string& sentence);
    const GateVerdict& verdict() const { return verdict_; }

  private:
    GateVerdict verdict_;
};

} // namespace fmha::harness
