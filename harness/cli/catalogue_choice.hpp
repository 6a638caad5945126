#pragma once

#include "harness/catalogue/catalogue_ledger.hpp"
#include "harness/catalogue/witness.hpp"
#include "harness/cli/list_options.hpp"
#include "harness/cli/options.hpp"
#include "harness/run/listed_tiles.hpp"
#include "harness/run/targets.hpp"
#include "kernels/catalog/catalog.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fmha::cli {

/// The other options that choose among the kernels of a list.
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
    /// With --catalogue, and with a sweep configuration.
    bool on() const { return on_ || !options_.configs().empty(); }
    /// The list, in the words of the command line behind --rules: "claim", "claim --config FILE".
    std::string words() const;
    /// The options of the list as they were given.
    std::vector<std::string> arguments() const { return options_.arguments(); }
    /// A remark about the list for people (`ListOptions::sentence`).
    std::string sentence() const { return options_.sentence(); }

    /// Lists the kernels of `arch` and returns the cases of the chosen witnesses. Throws InputError for options that cannot be
    /// used and when nothing is left.
    std::vector<harness::Case> choose(const arch::ArchSet& archs, const std::string& arch,
                                      const CatalogueFilter& filter);
    /// How many kernels of each tile the list has.
    harness::TileCounts tiles() const;
    /// Kernels for these cases; this must outlive it.
    std::unique_ptr<harness::KernelSource> source(std::shared_ptr<const harness::Target> target) const;

    /// The account of all listed kernels in a run of `cases`, some of those that were chosen.
    harness::CatalogueLedger account(const std::vector<harness::Case>& cases,
                                     const std::vector<harness::CaseResult>& results) const;
    /// The file of `--ledger`; "" without it.
    const std::string& ledger_file() const { return ledger_; }
    /// Throws InputError when it cannot be written.
    void check_ledger_file() const;
    /// Throws InputError when an option that only a list has was given without one. `builds`: the kernels of the list are built,
    /// for which its options alone name it.
    void check(bool builds) const;

    /// Words from which `fmha merge` makes the same choice again (recorded_catalogue.hpp), for the filter that was chosen with.
    std::vector<std::string> recorded(const std::string& arch_dir) const;

  private:
    void keep(const std::vector<bool>& kernels);
    /// Clears those that a filter file or --max-kernels leaves out.
    void keep_by_options(std::vector<bool>& kept);
    std::vector<bool> kept_kernels(const CatalogueFilter& filter);
    std::string rules() const { return std::string(to_string(options_.rules())); }

    bool on_ = false, covering_ = false;
    ListOptions options_{{"claim", "house", "ck", "stored", "sweep"}, "claim"};
    std::string ledger_;
    std::optional<std::uint64_t> sample_;
    std::vector<harness::ListedKernel> list_;
    std::vector<harness::Witness> all_, chosen_;
    CatalogueFilter filter_;
};

} // namespace fmha::cli
