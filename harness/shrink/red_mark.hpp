#pragma once

#include "harness/results/result.hpp"

#include <span>
#include <string>

namespace fmha::harness {

/// The sign by which one red result is told from others: the first gate that failed, or where no gate did, how the case
/// ended and what the sentence that says so has in common with those about other problems.
class RedMark {
  public:
    /// Of a result that is not green.
    explicit RedMark(const CaseResult& red);

    /// Whether `result` is red by the same sign; further gates may be red besides.
    bool is_on(const CaseResult& result) const;
    /// Whether both results that the marks are of have one sign.
    bool is_like(const RedMark& other) const;

    /// "G1 o", or "crashed: killed by signal 11 (Segmentation fault)".
    const std::string& text() const { return text_; }

  private:
    Outcome outcome_;
    std::string gate_, tensor_, sign_, text_;
};

/// The result on which `mark` is; nullptr without one.
const CaseResult* find_marked(std::span<const CaseResult> results, const RedMark& mark);

/// Why a case was refused, in a word or two: the rule that its problem breaks ("P-3"), or the field that the nearest kernel does not take
/// ("no kernel: hdim_q").
std::string refusal_reason(const CaseResult& refused);

/// "green", "red by G3 lse", "refused: …": how a case ended, in a few words.
std::string ending(const CaseResult& result);

} // namespace fmha::harness
