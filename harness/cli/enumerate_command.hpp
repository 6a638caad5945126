#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/cli/arch_files.hpp"
#include "harness/cli/command.hpp"
#include "harness/cli/kernel_filters.hpp"
#include "kernels/catalog/catalog.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::cli {

/// `fmha enumerate`: the catalogue's kernels, counted, named, filtered or explained.
class EnumerateCommand : public Command {
  public:
    std::string_view name() const override { return "enumerate"; }
    std::string_view summary() const override { return "List the kernels of a rule set on an architecture"; }
    std::string_view example() const override;
    void declare(OptionSet& options) override;
    int run(const Streams& streams) override;

  private:
    /// The output of --show-rules, --show-profiles or --show-columns.
    Json shown(catalog::RuleSet rules) const;
    std::string shown_text(catalog::RuleSet rules) const;
    /// The output of --correct; `archs`: those to choose from.
    int correct(const arch::ArchSet& archs, const Streams& streams) const;
    /// Throws InputError for options that choose or print the kernels of a list, beside `option`, which tells of one kernel.
    void refuse_what_lists_have(std::string_view option, catalog::RuleSet rules) const;
    /// Throws InputError for options that choose kernels of a list, beside `option`, which makes none.
    void refuse_choices(std::string_view option) const;
    /// The output of --support.
    std::string support(const arch::ArchSet& archs) const;
    catalog::Request request(const arch::ArchSet& archs, catalog::RuleSet rules, const Streams& streams);
    /// Hands on the kernels that --max-kernels leaves of those that every filter accepts.
    void each_kernel(const arch::ArchSet& archs, const catalog::Request& request, catalog::Sink sink);
    /// The output of --count-only or --list.
    void expand(const arch::ArchSet& archs, const catalog::Request& request, const Streams& streams);

    std::vector<std::string> archs_, families_, optdim_, globs_, configs_;
    KernelFilters filters_;
    std::int64_t max_kernels_ = 0;
    ArchFiles arch_files_;
    std::optional<catalog::RuleSet> rules_;
    catalog::MaskVocabulary masks_ = catalog::MaskVocabulary::simplified;
    std::string profile_ = "ck_default", config_, why_, correct_;
    OutputFormat format_ = OutputFormat::text;
    bool custom_factory_ = false;
    bool count_ = false, names_ = false, exhaustive_ = false, show_rules_ = false, show_profiles_ = false,
         show_columns_ = false, support_ = false, count_only_ = false, list_ = false;
};

} // namespace fmha::cli
