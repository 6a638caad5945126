#pragma once

#include "harness/cli/options.hpp"

#include <iosfwd>
#include <memory>
#include <string_view>
#include <vector>

namespace fmha::cli {

/// Exit codes of the command; nothing else is ever returned.
enum ExitCode : int {
    all_well = 0,
    check_failed = 1, ///< something that was checked failed, or nothing was checked
    bad_input = 2,    ///< usage, a file, a flag
};

/// Where a command writes: results to `out`, diagnostics and progress to `err`.
struct Streams {
    std::ostream& out;
    std::ostream& err;
    bool progress = false;    ///< `err` is a terminal
    std::string invocation{}; ///< the command line, for records of it
    bool colours = false;     ///< `out` is a terminal that may have colours
};

/// One subcommand. `declare` binds its options to members, `run` does the job once they are parsed.
/// Exceptions derived from fmha::Error become exit code 2 with their sentence.
class Command {
  public:
    virtual ~Command() = default;
    virtual std::string_view name() const = 0;
    virtual std::string_view summary() const = 0;
    /// A line or two that can be pasted into a shell, shown by --help.
    virtual std::string_view example() const = 0;
    virtual void declare(OptionSet& options) = 0;
    virtual int run(const Streams& streams) = 0;
};

/// Every subcommand, in the order in which --help lists them (all_commands.cpp is the one list).
std::vector<std::unique_ptr<Command>> all_commands();

/// Parses `arguments` (without the program's name), runs the subcommand and returns its exit code.
int run_command_line(const std::vector<std::string>& arguments,
                     std::vector<std::unique_ptr<Command>> commands, const Streams& streams);

} // namespace fmha::cli
