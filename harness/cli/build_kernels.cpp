#include "harness/cli/build_kernels.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cli/commands.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

namespace fmha::cli {

int build_kernels(const KernelsToBuild& kernels, const Streams& streams) {
    if (kernels.list.empty())
        throw InputError(
            "--compile-only needs --config, --rules or another option that names a list; the kernels of "
            "cases are built by fmha build --tier");
    if (kernels.target != "hip") {
        fmt::print(streams.out, "nothing to compile: kernels of target {} are parts of this program\n",
                   kernels.target);
        return all_well;
    }
    std::vector<std::string> words{"build"};
    words.insert(words.end(), kernels.list.begin(), kernels.list.end());
    const auto add = [&](const char* option, const std::string& value) {
        if (!value.empty()) words.insert(words.end(), {option, value});
    };
    add("--family", kernels.family);
    add("--arch", kernels.arch);
    add("--arch-dir", kernels.arch_dir);
    add("--out", kernels.folder);
    add("--jobs", std::to_string(kernels.jobs));
    std::vector<std::unique_ptr<Command>> commands;
    commands.push_back(make_build_command());
    return run_command_line(words, std::move(commands), streams);
}

} // namespace fmha::cli
