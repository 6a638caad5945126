#pragma once

#include "harness/families/family.hpp"
#include "harness/run/candidate.hpp"
#include "harness/run/case_result.hpp"
#include "harness/run/kernel_source.hpp"

#include <vector>

namespace fmha::harness {

/// Runs one case: problem, kernels, reference, gates. One result a candidate, or a single result that says why no kernel ran.
/// Unless the case asks for one run, every candidate runs at least twice, over different contents of all memory that must
/// not matter, and the outputs must be identical (G5.6, G5.7). Both oracles must agree on the case (on a sample of its rows when
/// it is large) before either is believed. Throws InputError for a case that cannot be laid out; failures of
/// kernels are results, not exceptions.
std::vector<CaseResult> run_case(const Case& c, const KernelSource& source, const CaseRunOptions& options);
/// The same for a case of `family`, in place of the family that the case names.
std::vector<CaseResult> run_case(const Family& family, const Case& c, const KernelSource& source,
                                 const CaseRunOptions& options);

/// Copies of the outputs that other programs bring, of all stages; tensors between stages are their own.
std::vector<Outputs> exchanged_outputs(const Case& c, CaseData& data);

/// Judges outputs that are already in `data`, written by kernels that declare `numerics`, with the gates that need no second
/// run. Outputs that are not exchanged are left out.
CaseResult judge_given_outputs(const Case& c, CaseData& data, const Numerics& numerics);
/// The same with an expectation that was made before the outputs came, for families that update inputs in place. `found`: the verdicts of
/// gates that were asked when they came.
CaseResult judge_given_outputs(const Case& c, CaseData& data, CaseExpectation& expectation,
                               const Numerics& numerics, InputOrigin inputs = InputOrigin::caller,
                               std::vector<GateVerdict> found = {});

/// Judges the outputs that the kernels of `candidate` have written into `data`, all stages, with the same gates.
CaseResult judge_run_outputs(const Case& c, CaseData& data, CaseExpectation& expectation,
                             const Candidate& candidate);

} // namespace fmha::harness
