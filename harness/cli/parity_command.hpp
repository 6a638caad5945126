#pragma once

#include "harness/cli/arch_files.hpp"
#include "harness/cli/command.hpp"
#include "harness/cli/store_option.hpp"
#include "kernels/arch/arch.hpp"
#include "parity/report.hpp"

#include <string>
#include <vector>

namespace fmha::cli {

/// `fmha parity`: audits the catalogue against golden facts, a Composable Kernel checkout, itself.
class ParityCommand : public Command {
  public:
    std::string_view name() const override { return "parity"; }
    std::string_view summary() const override {
        return "Audit the kernel lists: kernels that were lost, gained or renamed, and why";
    }
    std::string_view example() const override;
    void declare(OptionSet& options) override;
    int run(const Streams& streams) override;

  private:
    /// Throws InputError for options that contradict or do nothing.
    void check_options() const;
    parity::AuditReport audit(const arch::ArchSet& archs, const parity::OnCheck& on_check) const;
    void remember(const parity::AuditReport& report, double seconds, const std::string& invocation) const;
    int accept(const arch::ArchSet& archs, const Streams& streams) const;

    StoreOption store_;
    ArchFiles arch_files_;
    std::string golden_dir_, reason_, ck_root_, cases_, python_ = "python3", report_dir_;
    OutputFormat format_ = OutputFormat::text;
    std::vector<std::string> archs_, rules_, apis_, profiles_, masks_, between_;
    std::uint64_t examples_ = 3;
    bool golden_ = false, accept_ = false, no_sweep_ = false, consistency_ = false, smoke_ = false;
};

} // namespace fmha::cli
