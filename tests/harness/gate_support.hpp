#pragma once

#include "harness/data/storage.hpp"
#include "harness/run/case_runner.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/harness/kernels_for_tests.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fmha::harness::test {

/// A small case of which most gates have something to say: 2 entries, 2 heads, 70 × 90, hdim 64, with LSE.
inline Case small_case() {
    Case c;
    c.id = "test/small@1";
    c.hdim_q = c.hdim_v = 64;
    c.seqlen_q = {70};
    c.seqlen_k = {90};
    return c;
}

/// One element of O.
inline void set_o(const FwdArgs& args, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c,
                  double value) {
    store_code(args.o.data, args.o.type, args.o.offset(b, h, i, c), reference::encode(args.o.type, value));
}
inline double get_o(const FwdArgs& args, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
    return reference::decode(args.o.type, load_code(args.o.data, args.o.type, args.o.offset(b, h, i, c)));
}

/// The one result of `c` on a kernel whose output is spoiled after the fact.
inline CaseResult run_spoiled(const Case& c, std::function<void(const FwdArgs&)> spoil) {
    auto results = run_case(c, SpoiledKernel(std::move(spoil)), {});
    EXPECT_EQ(results.size(), 1U);
    return results.front();
}

inline CaseResult run_right(const Case& c) {
    return run_spoiled(c, [](const FwdArgs&) {});
}

/// The gates that are red, in the order of their verdicts. Of a Judgement or a CaseResult.
std::vector<std::string> failed_gates(const auto& judged) {
    std::vector<std::string> failed;
    for (const GateVerdict& gate : judged.gates)
        if (gate.failed()) failed.push_back(gate.gate);
    return failed;
}

/// The verdict of `gate`, which must have been given.
inline GateVerdict verdict(const CaseResult& result, const std::string& gate) {
    for (const auto& v : result.gates)
        if (v.gate == gate) return v;
    ADD_FAILURE() << "gate " << gate << " has no verdict; outcome " << to_string(result.outcome) << ": "
                  << result.message;
    return {};
}

} // namespace fmha::harness::test
