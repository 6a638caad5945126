#include "harness/cli/commands.hpp"

namespace fmha::cli {

std::vector<std::unique_ptr<Command>> all_commands() {
    std::vector<std::unique_ptr<Command>> commands;
    return commands;
}

} // namespace fmha::cli
