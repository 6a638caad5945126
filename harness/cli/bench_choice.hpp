#pragma once

#include "harness/bench/bench.hpp"
#include "harness/cases/case.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/cli/list_options.hpp"
#include "harness/cli/options.hpp"
#include "harness/run/targets.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fmha::cli {

/// The problems and the kernels of `fmha bench`.
class BenchChoice {
  public:
    void declare(OptionSet& options);
    /// Throws InputError for options that contradict one another, and when no problem is named.
    void check();

    /// The cases to be timed on an architecture. Cases that are there to be refused are left out: there is nothing to time.
    std::vector<harness::Case> cases(const arch::ArchSet& archs, const std::string& arch);
    /// How many cases `cases` left out.
    std::size_t left_out() const { return left_out_; }

    /// Kernels for these cases, of the list that the options choose.
    std::unique_ptr<harness::KernelSource> source(const std::shared_ptr<const harness::Target>& target,
                                                  const std::vector<harness::Case>& cases);

    harness::KernelChoice kernels() const;
    const std::string& kernel_filter() const { return kernel_filter_; }
    const std::string& cases_root() const { return root_; }
    const std::string& family() const { return family_; }
    /// The options of the list as they were given.
    std::vector<std::string> list() const { return list_.arguments(); }
    /// All options in words, for records of a run.
    std::string words() const;
    /// A remark about the list for people (`ListOptions::sentence`).
    std::string sentence() const { return list_.sentence(); }

  private:
    bool names_matrix() const;
    /// Those of --family; every one without it.
    catalog::FamilySet families() const;
    harness::Tier tier() const { return tier_.value_or(harness::Tier::smoke); }
    /// The kernels of the list for an architecture that the filters leave.
    const std::vector<KernelConfig>& kernels_of(const arch::ArchSet& archs, const std::string& arch,
                                                catalog::FamilySet families);
    void add_files(const arch::ArchSet& archs, const std::string& arch, std::vector<harness::Case>& chosen);

    ListOptions list_{{"house", "claim", "stored", "sweep"}, "house"};
    std::vector<std::string> files_, shapes_, num_splits_;
    std::optional<harness::Tier> tier_;
    std::optional<harness::KernelChoice> kernels_;
    std::string root_, family_, problems_, kernel_filter_;
    std::vector<KernelConfig> listed_;
    bool is_listed_ = false;
    std::size_t left_out_ = 0;
};

} // namespace fmha::cli
