#pragma once

#include "harness/catalogue/catalogue_ledger.hpp"
#include "harness/catalogue/witness.hpp"
#include "harness/cli/options.hpp"
#include "harness/run/targets.hpp"
#include "kernels/catalog/catalog.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fmha::cli {

/// What else a command line says about which kernels of a list run.
struct CatalogueFilter {
    std::string family;             ///< a kernel family, or an API for all behind it; empty: all
    std::string where;              ///< an expression over a kernel c; empty: all
    std::string kernel;             ///< a glob on names; empty: all
    std::vector<std::string> names; ///< of witnesses; empty: all
};

/// `fmha verify --catalogue`: the kernels of a list instead of the cases of files.
class CatalogueChoice {
  public:
    void declare(OptionSet& options);
    bool on() const { return on_; }
    const std::string& rules() const { return rules_; }

    /// Lists the kernels of `arch` and returns the cases of the chosen witnesses. Throws InputError for options that cannot be
    /// used and when nothing is left.
    std::vector<harness::Case> choose(const std::string& arch, const CatalogueFilter& filter);
    /// Kernels for these cases; this must outlive it.
    std::unique_ptr<harness::KernelSource> source(std::shared_ptr<const harness::Target> target) const;

    /// The account of all listed kernels in a run of `cases`, some of those that were chosen; written to the file of `--ledger`
    /// when there is one.
    harness::CatalogueLedger account(const std::vector<harness::Case>& cases,
                                     const std::vector<harness::CaseResult>& results) const;

  private:
    void keep(const std::vector<bool>& kernels);
    std::vector<bool> kept_kernels(const CatalogueFilter& filter) const;

    bool on_ = false, covering_ = false;
    std::string rules_ = "claim", ledger_;
    std::optional<std::uint64_t> sample_;
    std::vector<harness::ListedKernel> list_;
    std::vector<harness::Witness> all_, chosen_;
};

} // namespace fmha::cli
