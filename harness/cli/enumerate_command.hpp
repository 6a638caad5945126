#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/cli/command.hpp"
#include "kernels/catalog/catalog.hpp"

#include <string>
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
    /// The output of --support.
    std::string support(const arch::ArchSet& archs) const;

    std::vector<std::string> archs_, families_, optdim_, filters_;
    std::string arch_dir_, rules_ = "claim", profile_ = "ck_default", masks_ = "simplified", config_;
    std::string where_, where_file_, why_, format_ = "text";
    bool custom_factory_ = false;
    bool count_ = false, names_ = false, exhaustive_ = false, show_rules_ = false, show_profiles_ = false,
         show_columns_ = false, support_ = false;
};

} // namespace fmha::cli
