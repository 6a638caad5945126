#include "kernels/generator/ninja.hpp"

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/system/stopwatch.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/generator/build_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <fstream>
#include <sstream>

namespace fmha::generator {
namespace {

/// "[3/17] obj/name": how far Ninja is.
struct Step {
    std::size_t done = 0, all = 0;
    std::string_view what;
};

bool parse_step(std::string_view line, Step& step) {
    const auto slash = line.find('/'), end = line.find("] ");
    if (!line.starts_with('[') || slash == std::string_view::npos || end == std::string_view::npos ||
        slash > end)
        return false;
    std::from_chars(line.data() + 1, line.data() + slash, step.done);
    std::from_chars(line.data() + slash + 1, line.data() + end, step.all);
    step.what = line.substr(end + 2);
    return true;
}

} // namespace

NinjaLog read_ninja_log(const std::filesystem::path& folder) {
    NinjaLog log;
    std::ifstream file(folder / ".ninja_log");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#')) continue;
        std::istringstream fields(line);
        std::int64_t begin = 0, end = 0, time = 0;
        std::string output;
        if (fields >> begin >> end >> time >> output) log[output] = end - begin;
    }
    return log;
}

NinjaRun run_ninja(const std::filesystem::path& folder, const std::string& file, const std::string& target,
                   int jobs, const std::function<void(std::size_t, std::size_t, std::string_view)>& progress,
                   const std::function<bool()>& stop) {
    NinjaRun run;
    jobs = system::thread_count(jobs);
    system::ProcessOptions options{.directory = folder};
    options.environment = {"NINJA_STATUS=[%f/%t] "};
    options.stop = stop;
    std::size_t headers = 0; // parsed before the first kernel of their architecture, and no kernels
    options.on_line = [&](std::string_view line) {
        Step step;
        if (parse_step(line, step)) {
            if (step.what.starts_with(parsed_folder))
                ++headers;
            else if (progress)
                progress(step.done - headers, step.all - headers, step.what);
        }
        constexpr std::string_view failed = "FAILED: ";
        if (!line.starts_with(failed)) return;
        std::istringstream outputs{std::string(line.substr(failed.size()))};
        for (std::string output; outputs >> output;) run.failed.insert(output);
    };
    const system::Stopwatch watch;
    system::ProcessResult ran;
    try {
        ran = system::run_process({"ninja", "-k", "0", "-j", std::to_string(jobs), "-f", file, target},
                                  options);
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}; install ninja (Debian package ninja-build)", error.what()));
    }
    run.seconds = watch.seconds();
    run.exit_code = ran.exit_code;
    // Ninja ends with 2 after an interrupt by any sender.
    run.interrupted = ran.stopped || ran.exit_code == 128 + SIGINT || ran.exit_code == 2;
    run.output = ran.out + ran.err;
    return run;
}

} // namespace fmha::generator
