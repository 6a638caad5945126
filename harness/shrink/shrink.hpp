#pragma once

#include "harness/cases/case.hpp"
#include "harness/shrink/red_mark.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fmha::harness {

/// Runs a case and tells its results. May throw InputError for a case that cannot be run.
using CaseJudge = std::function<std::vector<CaseResult>(const Case&)>;

struct ShrinkOptions {
    std::chrono::milliseconds patience{
        30'000};                  ///< after which the smallest case so far is the answer; 0 = never
    std::function<bool()> stop{}; ///< asked before every try; true ends it early
};

/// A field that a smaller case still needs.
struct NeededField {
    std::string field, value;
    std::string why; ///< the outcomes of simpler values: "green with 128, refused: … with 1"
};

/// The smallest case that is red by the same mark.
struct Shrunk {
    Case smallest;     ///< named by how it differs from the plain case
    CaseResult result; ///< its red one
    RedMark mark;
    std::vector<NeededField> needed;
    std::int64_t tried = 0; ///< cases that were run
    double seconds = 0.0;
    bool complete = true; ///< no simpler case that is one step away is red by the mark
};

/// Makes `red` smaller while the first gate that it fails stays red. `plain`: the plain case of its family, towards which
/// every step goes. Nothing is random: the same judgements give the same answer. nullopt when no result of `red` is red.
std::optional<Shrunk> shrink(const Case& red, const Case& plain, const CaseJudge& judge,
                             const ShrinkOptions& options);
/// The same with a mark that is known already.
std::optional<Shrunk> shrink(const Case& red, const Case& plain, const CaseJudge& judge,
                             const ShrinkOptions& options, const RedMark& mark);

/// A text for people: the smallest name, each field that it needs with the reason, and `repeat`, the command that runs it.
std::string to_text(const Shrunk& shrunk, const std::string& repeat);

} // namespace fmha::harness
