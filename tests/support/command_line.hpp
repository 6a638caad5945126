#pragma once

#include "harness/cli/command.hpp"

#include <memory>
#include <sstream>
#include <string>
#include <vector>

/// Command lines inside the test's process.
namespace fmha::cli::test {

struct Ran {
    int code = 0;
    std::string out, err;
};

inline Ran run(std::vector<std::unique_ptr<Command>> commands, const std::vector<std::string>& arguments) {
    std::ostringstream out, err;
    const int code = run_command_line(arguments, std::move(commands), {out, err, false, {}});
    return {code, out.str(), err.str()};
}

inline Ran run(const std::vector<std::string>& arguments) {
    return run(all_commands(), arguments);
}

} // namespace fmha::cli::test
