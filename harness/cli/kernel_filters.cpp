#include "harness/cli/kernel_filters.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fmha::cli {
namespace {

constexpr const char* expression_help =
    "Python expression over a kernel c: only kernels for which it is true (fmha enumerate --show-columns); "
    "given several times, all must be";

/// The expression in a file. Throws InputError that names the file.
catalog::RowFilter filter_of_file(const std::string& file, std::string text,
                                  catalog::RowFilter::NameOf name_of) {
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
    try {
        return {text, std::move(name_of)};
    } catch (const InputError& error) {
        throw InputError(
            fmt::format("{}: {}{}", file, error.what(),
                        file.ends_with(".py") ? "; a Python file defines filter_config(c)" : ""));
    }
}

} // namespace

void KernelFilters::declare(OptionSet& options) {
    options.each("--where,--filter", expressions_, expression_help);
    declare_files(options);
}

void KernelFilters::declare_without_filter(OptionSet& options) {
    options.each("--where", expressions_, expression_help);
    declare_files(options);
}

void KernelFilters::declare_files(OptionSet& options) {
    options.each(
        "--where-file,--filter-file", files_,
        "The same, from a file: an expression, or a Python file that defines filter_config(c), which a "
        "Python 3 in a process of its own runs for at most a minute");
    options.option("--python", python_, "With --where-file: the Python 3 that runs it");
}

std::vector<std::string> KernelFilters::arguments() const {
    std::vector<std::string> words;
    for (const std::string& expression : expressions_) words.insert(words.end(), {"--where", expression});
    for (const std::string& file : files_) words.insert(words.end(), {"--where-file", file});
    if (python_ != usual_python) words.insert(words.end(), {"--python", python_});
    return words;
}

std::string KernelFilters::text() const {
    std::vector<std::string> parts = expressions_;
    parts.insert(parts.end(), files_.begin(), files_.end());
    return fmt::format("{}", fmt::join(parts, " and "));
}

void KernelFilters::open(const catalog::Naming& naming) {
    if (files_.empty() && python_ != usual_python)
        throw InputError(fmt::format("--python {} needs --where-file, whose file it runs", python_));
    const auto name_of = [naming](const KernelConfig& config, std::string& out) {
        catalog::append_name(naming, config, out);
    };
    for (const std::string& file : files_) {
        const std::string text = system::read_file(file);
        if (text.find("filter_config") != std::string::npos)
            opened_.emplace_back(catalog::PythonFilter(file, name_of, {.program = python_}));
        else
            opened_.emplace_back(filter_of_file(file, text, name_of));
    }
    for (const std::string& expression : expressions_)
        opened_.emplace_back(catalog::RowFilter(expression, name_of));
}

void KernelFilters::keep(std::vector<KernelConfig>& kernels, const catalog::Naming& naming) {
    if (opened_.empty()) open(naming);
    seen_ += kernels.size();
    for (Filter& filter : opened_) {
        std::size_t kept = 0;
        const auto keep_one = [&](std::size_t i) { kernels[kept++] = kernels[i]; };
        std::visit([&](auto& one) { one.select(kernels, keep_one); }, filter);
        kernels.resize(kept);
    }
    kept_ += kernels.size();
}

std::string KernelFilters::sentence() const {
    return fmt::format("{} (filtered {}, kept {})", seen_, seen_ - kept_, kept_);
}

} // namespace fmha::cli
