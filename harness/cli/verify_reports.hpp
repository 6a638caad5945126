#pragma once

#include "harness/cli/command.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/output_files.hpp"
#include "harness/results/result.hpp"
#include "reports/report.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::cli {

/// The reports of a run and their places: the terminal, `--json`, `--junit`, `--html`.
class VerifyReports {
  public:
    void declare(OptionSet& options);

    /// Standard output is for programs.
    bool prints_json() const { return format_ == OutputFormat::json; }
    bool has_json() const { return prints_json() || !json_.empty(); }

    /// The first option that asks for a file of the reports, or for a part of the page; empty without any.
    std::string_view asked() const;

    bool has_page() const { return !page_file().empty(); }

    /// Whether a run without another report writes the page `fmha-report/index.html`. It does unless told otherwise.
    void write_usual_page(bool usual) { usual_page_ = usual; }

    /// The text of each `--section`, read now. Throws InputError when there is no such file.
    std::vector<std::string> sections() const;

    /// Throws InputError when the page would replace one of `others`, the files that the run writes beside its reports, by option, or when
    /// a report cannot be written.
    void check_files(const NamedFiles& others) const;

    /// Prints and writes everything. `headline` says on what the run was; `journal` may be empty. Throws InputError when a file
    /// that was asked for cannot be written.
    void publish(const reports::Report& report, const std::string& headline, const std::string& journal,
                 const Streams& streams) const;

  private:
    std::string page_file() const;
    void print_report(const reports::Report& report, const std::string& headline, const std::string& journal,
                      const Streams& streams) const;

    std::string json_, junit_, html_;
    OutputFormat format_ = OutputFormat::text;
    std::vector<std::string> sections_;
    bool usual_page_ = true;
};

/// A sentence about large shapes of a matrix: which part a target left out that can compute the tiles of some rows alone, or cannot.
/// Empty without such shapes.
std::string sampled_shapes(std::span<const harness::CaseResult> results, bool runs_row_tiles);

} // namespace fmha::cli
