#pragma once

#include "harness/cli/command.hpp"

/// One factory a subcommand; each is defined in the file of its command.
namespace fmha::cli {

std::unique_ptr<Command> make_enumerate_command();
std::unique_ptr<Command> make_parity_command();
std::unique_ptr<Command> make_plan_command();
std::unique_ptr<Command> make_verify_command();
std::unique_ptr<Command> make_devices_command();
std::unique_ptr<Command> make_reference_command();
std::unique_ptr<Command> make_check_command();
std::unique_ptr<Command> make_generate_command();
std::unique_ptr<Command> make_build_command();
std::unique_ptr<Command> make_bench_command();
std::unique_ptr<Command> make_history_command();
std::unique_ptr<Command> make_gate_command();
std::unique_ptr<Command> make_shrink_command();
std::unique_ptr<Command> make_fuzz_command();
std::unique_ptr<Command> make_merge_command();
std::unique_ptr<Command> make_compare_command();

} // namespace fmha::cli
