#include "harness/cli/commands.hpp"

namespace fmha::cli {

std::vector<std::unique_ptr<Command>> all_commands() {
    std::vector<std::unique_ptr<Command>> commands;
    commands.push_back(make_enumerate_command());
    commands.push_back(make_parity_command());
    commands.push_back(make_plan_command());
    commands.push_back(make_verify_command());
    commands.push_back(make_shrink_command());
    commands.push_back(make_fuzz_command());
    commands.push_back(make_devices_command());
    commands.push_back(make_reference_command());
    commands.push_back(make_check_command());
    commands.push_back(make_generate_command());
    commands.push_back(make_build_command());
    commands.push_back(make_bench_command());
    commands.push_back(make_history_command());
    commands.push_back(make_gate_command());
    commands.push_back(make_merge_command());
    commands.push_back(make_compare_command());
    return commands;
}

} // namespace fmha::cli
