#include "harness/cli/command.hpp"

#include <cstdio>
#include <exception>
#include <iostream>
#include <unistd.h>

int main(int argc, char** argv) {
    try {
        const std::vector<std::string> arguments(argv + 1, argv + argc);
        return fmha::cli::run_command_line(arguments, fmha::cli::all_commands(),
                                           {std::cout, std::cerr, isatty(STDERR_FILENO) == 1});
    } catch (const std::exception& error) {
        // A defect of the harness itself: neither bad input nor a failed check, but never a silent zero.
        std::fprintf(stderr, "fmha: internal error: %s\n", error.what());
        return fmha::cli::check_failed;
    }
}
