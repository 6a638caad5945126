#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "harness/cli/options.hpp"
#include "kernels/catalog/catalog.hpp"
#include "kernels/catalog/query/python_filter.hpp"
#include "kernels/catalog/query/row_filter.hpp"

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

namespace fmha::cli {

/// `--where` (`--filter`) and `--where-file` (`--filter-file`): a kernel stays when all of them accept it.
class KernelFilters {
  public:
    void declare(OptionSet& options);
    /// Without `--filter`, which has another meaning for some lists of the command; see `add_expression`.
    void declare_without_filter(OptionSet& options);
    /// The files alone.
    void declare_files(OptionSet& options);
    void add_expression(const std::string& expression) { expressions_.push_back(expression); }

    /// Whether there is something to do, or to refuse: `--python` without a file is a mistake.
    bool any() const { return !expressions_.empty() || !files_.empty() || python_ != usual_python; }
    /// The options as they were given: "--where X --where-file Y".
    std::vector<std::string> arguments() const;
    /// The same in one line, for records of a run.
    std::string text() const;

    /// Removes from `kernels` each that a filter does not accept. May be called for one batch after the other. Throws InputError for
    /// a filter that cannot be read or evaluated.
    void keep(std::vector<KernelConfig>& kernels, const catalog::Naming& naming);

    /// Of all calls of `keep`.
    std::size_t seen() const { return seen_; }
    std::size_t kept() const { return kept_; }
    /// "N (filtered F, kept K)"
    std::string sentence() const;

  private:
    using Filter = std::variant<catalog::RowFilter, catalog::PythonFilter>;
    void open(const catalog::Naming& naming);

    std::vector<std::string> expressions_, files_;
    static constexpr const char* usual_python = "python3";
    std::string python_ = usual_python;
    std::vector<Filter> opened_;
    std::size_t seen_ = 0, kept_ = 0;
};

} // namespace fmha::cli
