#pragma once

#include "harness/cli/kernel_filters.hpp"
#include "harness/cli/options.hpp"
#include "kernels/catalog/catalog.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace fmha::cli {

inline constexpr auto max_kernels_help = "the first so many kernels of each API's main stage, with those of "
                                         "the other stages that they need; 0: all";

/// Whether a sweep configuration restricts house here, because one of the architectures has no list claim.
bool sweeps_house(const arch::ArchSet& archs, const std::vector<ArchName>& targets);
/// The sentence about that.
std::string house_instead(const std::string& config, const std::vector<ArchName>& targets);

/// Leaves of each architecture and API the first `limit` kernels of the main stage, and those of other stages that run with
/// one of them; 0: all. Of an API without a main stage in the list, the first kernels. Throws InputError for a negative limit of --max-kernels.
void keep_first(std::vector<KernelConfig>& kernels, std::int64_t limit);

/// --rules, --config, --profile, --max-kernels and the filters: the list that a command works on, and which kernels of it.
class ListOptions {
  public:
    /// `rules`: the choices of --rules. `usual`: the list without it and without a sweep configuration. With one it is claim, or
    /// house where an architecture has no list claim.
    ListOptions(std::vector<std::string> rules, std::string usual)
        : choices_(std::move(rules)), usual_(std::move(usual)) {}

    /// `when` stands before the help of each option ("With --catalogue: "), `config_too` behind that of --config.
    void declare(OptionSet& options, const std::string& when, const std::string& config_too = {});
    /// The same without `--where` and `--filter`, which the command declares.
    void declare_without_where(OptionSet& options, const std::string& when);

    /// Whether one of them was given, but for --config.
    bool restricts() const;
    /// Whether one of them chooses kernels of the list, which its name alone does not.
    bool narrows() const { return !configs_.empty() || !profile_.empty() || filters_.any() || limited(); }
    /// The options as they were given.
    std::vector<std::string> arguments() const;

    const std::vector<std::string>& configs() const { return configs_; }
    /// Takes the sweep configurations out of `files`, as if --config had named them: a script of upstream's names them so.
    void take_configs(std::vector<std::string>& files);
    /// Whether --config names a sweep configuration. Throws InputError for a file that is no JSON.
    bool sweeps() const;
    /// Settled by `request`. Throws InputError for an unknown set.
    catalog::RuleSet rules() const;
    /// Rules, profile and sweep configuration for these architectures; the caller adds the families.
    catalog::Request request(const arch::ArchSet& archs, std::vector<ArchName> targets);
    /// For people, up to two lines: which list a sweep configuration restricts where it is not the usual one, and how many kernels the
    /// filters saw and left. Empty where nothing is to be said.
    std::string sentence() const;

    KernelFilters& filters() { return filters_; }
    const KernelFilters& filters() const { return filters_; }
    /// Whether --max-kernels leaves any out.
    bool limited() const { return max_kernels_ != 0; }
    /// Keeps the kernels that the filters accept. Throws InputError when none is left.
    void filter(std::vector<KernelConfig>& kernels);
    /// Leaves the first, as many as --max-kernels says.
    void keep_first(std::vector<KernelConfig>& kernels) const { cli::keep_first(kernels, max_kernels_); }

  private:
    void declare_list(OptionSet& options, const std::string& when, const std::string& config_too);

    std::vector<std::string> choices_;
    std::string usual_, rules_, profile_;
    std::string instead_; ///< why house is the list of a sweep configuration
    std::vector<std::string> configs_;
    KernelFilters filters_;
    std::int64_t max_kernels_ = 0;
};

} // namespace fmha::cli
