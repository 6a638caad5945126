#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/catalogue/catalogue_ledger.hpp"
#include "harness/cli/catalogue_choice.hpp"

#include <optional>
#include <vector>

namespace fmha::cli {

/// The list of a run of `fmha verify --catalogue`, made again from the run's identity, so that its kernels can be accounted for where
/// the results of all shards are together.
class RecordedCatalogue {
  public:
    /// Empty when the run was not of a list. Throws InputError when this program does not make the same cases from the record.
    static std::optional<RecordedCatalogue> of(const Json& identity);

    harness::CatalogueLedger account(const std::vector<harness::CaseResult>& results) const {
        return choice_.account(cases_, results);
    }

    harness::TileCounts tiles() const { return choice_.tiles(); }

  private:
    CatalogueChoice choice_;
    std::vector<harness::Case> cases_;
};

} // namespace fmha::cli
