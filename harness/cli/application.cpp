#include "dispatcher/system/shell_word.hpp"
#include "dispatcher/types/did_you_mean.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/visible_text.hpp"
#include "harness/cli/command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <sstream>

namespace fmha::cli {
namespace {

constexpr std::string_view version = FMHA_VERSION;

/// CLI11 says "a subcommand is required" for a misspelt one; this names it and the existing ones.
std::string unknown_subcommand(const std::vector<std::string>& arguments,
                               const std::vector<std::unique_ptr<Command>>& commands) {
    std::vector<std::string_view> names;
    for (const auto& command : commands) names.push_back(command->name());
    const std::string known = fmt::format("{}", fmt::join(names, ", "));
    if (arguments.empty())
        return fmt::format("fmha: a subcommand is missing; there are: {} (see fmha --help)\n", known);
    if (arguments.front().starts_with('-')) {
        for (const std::string_view own : {"-h", "--help", "--version"})
            if (arguments.front() == own) return {};
        return fmt::format("fmha: {} is not an option before a subcommand; allowed: --help and --version\n",
                           arguments.front());
    }
    if (std::ranges::find(names, arguments.front()) != names.end()) return {};
    return fmt::format("fmha: \"{}\" is not a subcommand; there are: {}{}\n", arguments.front(), known,
                       did_you_mean(arguments.front(), names));
}

/// CLI11's sentence about a command line that it refuses, and the option that a misspelt one may be.
std::string complaint(const CLI::ParseError& error, const CLI::App& app) {
    const auto parsed = app.get_subcommands();
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && !parsed.empty())
        for (const CLI::Option* option : parsed.front()->get_options()) {
            const auto most = static_cast<std::size_t>(option->get_items_expected_max());
            const std::size_t given = option->count();
            if (option->get_multi_option_policy() != CLI::MultiOptionPolicy::Throw || most < 1 || given == 0)
                continue;
            if (most == 1 && given > 1)
                return fmt::format("{} is given {} times; allowed: once", option->get_name(), given);
            if (most == 2 && given != 2)
                return fmt::format("{} has {} values; allowed: 2, one behind the other", option->get_name(),
                                   given);
        }
    if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || parsed.empty()) return error.what();
    const std::vector<std::string> extras = parsed.front()->remaining();
    const auto option = std::ranges::find_if(extras, [](const auto& text) { return text.starts_with("-"); });
    if (option == extras.end()) return error.what();
    std::vector<std::string> names;
    for (const CLI::Option* known : parsed.front()->get_options())
        for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
    return fmt::format("{} is not an option{}", *option,
                       did_you_mean(option->substr(0, option->find('=')), names));
}

/// The command line as a shell would take it back.
std::string invocation_text(const std::vector<std::string>& arguments) {
    std::string text = "fmha";
    for (const auto& argument : arguments) text += " " + system::shell_word(argument);
    return text;
}

/// Breaks a text between words, so that its lines have no more than `columns` where a word allows it.
std::string wrapped(std::string_view text, std::size_t columns) {
    std::string lines;
    std::size_t used = 0;
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(word.size() + 1, text.size()));
        const bool fits = used + 1 + word.size() <= columns;
        if (!lines.empty()) lines += fits ? ' ' : '\n';
        used = fits && !lines.empty() ? used + 1 + word.size() : word.size();
        lines += word;
    }
    return lines;
}

/// Help for a terminal of 80 columns; one that broke the lines itself would do it within words, and below the names of options.
class HelpFormatter final : public CLI::Formatter {
  public:
    std::string make_option_desc(const CLI::Option* option) const override {
        return fitting(option->get_description());
    }
    std::string make_subcommand(const CLI::App* command) const override {
        std::ostringstream out;
        CLI::detail::format_help(out, command->get_display_name(true), fitting(command->get_description()),
                                 get_column_width());
        return out.str();
    }

  private:
    std::string fitting(const std::string& text) const {
        constexpr std::size_t columns = 80;
        return wrapped(text, columns - get_column_width());
    }
};

} // namespace

int run_command_line(const std::vector<std::string>& arguments,
                     std::vector<std::unique_ptr<Command>> commands, const Streams& streams) {
    if (const auto unknown = unknown_subcommand(arguments, commands); !unknown.empty()) {
        fmt::print(streams.err, "{}", visible(unknown));
        return bad_input;
    }
    CLI::App app("Tests fused multi-head attention kernels against an independent reference.", "fmha");
    app.set_version_flag("--version", std::string("fmha ") + std::string(version));
    app.formatter(std::make_shared<HelpFormatter>());
    app.require_subcommand(1);
    app.fallthrough(false);
    app.footer("Example:\n"
               "  fmha verify\n"
               "  fmha verify fwd/masks --target emulated --arch gfx942\n"
               "  fmha verify --help");
    std::vector<OptionSet> option_sets;
    for (const auto& command : commands) {
        auto* sub = app.add_subcommand(std::string(command->name()), std::string(command->summary()));
        sub->footer("Example:\n  " + std::string(command->example()));
        command->declare(option_sets.emplace_back(*sub));
    }

    try {
        // CLI11 consumes a vector from its end.
        std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
        app.parse(reversed);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) {
            app.exit(error, streams.out, streams.err);
            return all_well;
        }
        // Past `unknown_subcommand` the first argument is a subcommand, or --help or --version with more after it.
        const std::string command =
            arguments.front().starts_with('-') ? std::string("fmha") : "fmha " + arguments.front();
        fmt::print(streams.err, "{0}: {1} (see {0} --help)\n", command, visible(complaint(error, app)));
        return bad_input;
    }

    const auto* parsed = app.get_subcommands().front();
    const auto chosen = std::find_if(commands.begin(), commands.end(), [&](const auto& command) {
        return command->name() == parsed->get_name();
    });
    try {
        option_sets[static_cast<std::size_t>(chosen - commands.begin())].require_different_files();
        return (*chosen)->run(
            {streams.out, streams.err, streams.progress, invocation_text(arguments), streams.colours});
    } catch (const Error& error) {
        fmt::print(streams.err, "fmha {}: {}\n", (*chosen)->name(), visible(error.what()));
        return bad_input;
    } catch (const std::bad_alloc&) {
        fmt::print(streams.err, "fmha {}: there is not enough memory\n", (*chosen)->name());
        return bad_input;
    } catch (const std::filesystem::filesystem_error& error) {
        // A path that was given and that the system refuses, unreadable folders for example.
        fmt::print(streams.err, "fmha {}: {}: {}\n", (*chosen)->name(), visible(error.path1().string()),
                   error.code().message());
        return bad_input;
    }
}

} // namespace fmha::cli
