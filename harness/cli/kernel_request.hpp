#pragma once

#include "harness/cli/arch_files.hpp"
#include "harness/cli/list_options.hpp"
#include "harness/cli/options.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/generator/selection.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fmha::cli {

/// The kernels that a command is asked to generate, as its options say.
class KernelRequest {
  public:
    void declare(OptionSet& options);

    /// The architecture files of --arch-dir, or those compiled in.
    arch::ArchSet archs() const { return arch_files_.load(); }

    /// Whether every kernel of the list was asked for.
    bool whole_list() const { return whole_list_; }

    /// Whether every kernel of some families of the list was asked for, or of all.
    bool whole_families() const {
        return whole_list_ && !covering_ && !sample_ && glob_.empty() && !list_.narrows();
    }

    /// The options as they were given, for a command line that asks for the same kernels.
    std::vector<std::string> arguments() const;

    /// The kernels of the list that the options leave, or those of --config. Records of an audit list that a validation rule
    /// forbids are declined with that rule. Throws InputError for options that contradict one another, for a list that becomes
    /// empty, and for a kernel configuration that a rule forbids, with the id of the rule.
    generator::Selection select(const arch::ArchSet& archs);

    /// A remark about the list for people (`ListOptions::sentence`).
    std::string sentence() const { return list_.sentence(); }

  private:
    std::vector<KernelConfig> from_files(const arch::ArchSet& archs) const;
    std::vector<KernelConfig> from_catalogue(const arch::ArchSet& archs);
    /// Whether anything says which kernels: a list of thousands is built when it is asked for only.
    bool chooses() const;
    void keep_named(std::vector<KernelConfig>& kernels) const;
    void keep_planned(const arch::ArchSet& archs, std::vector<KernelConfig>& kernels) const;
    std::vector<KernelConfig> sampled(std::vector<KernelConfig> kernels) const;

    std::vector<std::string> archs_, families_;
    ListOptions list_{{"house", "claim", "stored", "sweep"}, "house"};
    ArchFiles arch_files_;
    std::string glob_, tier_, shard_, cases_root_;
    std::optional<std::uint64_t> sample_;
    bool covering_ = false, whole_list_ = false;
};

} // namespace fmha::cli
