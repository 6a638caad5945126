#include "harness/cli/command.hpp"
#include "harness/cli/paint.hpp"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <iostream>
#include <unistd.h>

namespace {

/// A standard stream that the caller closed must stay unusable: otherwise the first file or pipe that is opened takes
/// its number, and results are written into it.
void occupy_closed_streams() {
    for (const int stream : std::array{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
}

} // namespace

int main(int argc, char** argv) {
    try {
        occupy_closed_streams();
        // A file that grows beyond `ulimit -f` is one that cannot be written, with a sentence, and no reason to die.
        std::signal(SIGXFSZ, SIG_IGN);
        // A caller that ignores its children passes that on, and the system then tells nobody how a child ended.
        std::signal(SIGCHLD, SIG_DFL);
        const std::vector<std::string> arguments(argv + 1, argv + argc);
        const char* const term = std::getenv("TERM");
        const int code = fmha::cli::run_command_line(
            arguments, fmha::cli::all_commands(),
            {.out = std::cout,
             .err = std::cerr,
             .progress = fmha::cli::takes_orders(isatty(STDERR_FILENO) == 1, term),
             .colours = fmha::cli::wants_colours(fmha::cli::takes_orders(isatty(STDOUT_FILENO) == 1, term),
                                                 std::getenv("NO_COLOR"))});
        std::cout.flush();
        if (std::cout) return code;
        std::fputs("fmha: standard output cannot be written; the output is incomplete\n", stderr);
        return fmha::cli::bad_input;
    } catch (const std::exception& error) {
        // A defect of the harness itself: neither bad input nor a failed check, but never a silent zero.
        std::fprintf(stderr, "fmha: internal error: %s\n", error.what());
        return fmha::cli::check_failed;
    }
}
