#include "dispatcher/types/json.hpp"
#include "harness/results/result_json.hpp"
#include "reports/report.hpp"

namespace fmha::reports {

std::string json(const Report& report) {
    Json ledger{{"asked", report.ledger.asked()},
                {"executed", report.ledger.executed()},
                {"kernels", report.ledger.distinct_kernels()},
                {"green", report.ledger.green()},
                {"verdict", report.ledger.verdict()}};
    for (const auto& [outcome, name] : EnumTable<harness::Outcome>::names)
        ledger[std::string(name)] = report.ledger.count(outcome);
    auto results = Json::array();
    for (const auto& result : report.results) results.push_back(harness::to_json(result));
    const Json document{{"schema", "fmha-verify-1"},
                        {"run", harness::to_json(report.info)},
                        {"identity", report.identity},
                        {"ledger", std::move(ledger)},
                        {"results", std::move(results)}};
    return document.dump(1) + '\n';
}

} // namespace fmha::reports
