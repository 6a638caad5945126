#include "harness/cli/build_options.hpp"

#include "dispatcher/system/program.hpp"
#include "dispatcher/system/shell_word.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/generator/headers.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace fmha::cli {
namespace {

/// They would run the compiler here, because they do not know its language: nothing would come of the other machines.
void refuse_what_sends_nothing(const generator::BuildTools& tools) {
    const auto refuse = [&](std::string_view program, std::string_view what) {
        throw InputError(
            fmt::format("--launcher {}: {} compiles {} on this machine alone; allowed: distcc for "
                        "kernels of AMD, ccache, or another program that runs the command behind it",
                        tools.launcher, program, what));
    };
    std::istringstream words(tools.launcher);
    for (std::string word; words >> word;) {
        const std::string program = std::filesystem::path(word).filename().string();
        if (program == "pump" || program == "icecc") refuse(program, "HIP and CUDA sources");
        if (program == "distcc" && !generator::distributes(tools.launcher))
            refuse(program, "what stands behind another launcher");
    }
    for (const auto& [arch, compiler] : tools.compilers)
        if (generator::distributes(tools.launcher) && compiler.kind == generator::CompilerKind::nvcc)
            refuse("distcc", "CUDA sources");
}

} // namespace

void CompileOptions::declare(OptionSet& options) {
    options.output("--out", out_, "Folder for sources, code objects and manifest.json");
    options.option("--root", root_,
                   "Folder of the kernels' headers (default: FMHA_KERNEL_ROOT, else those of this program)");
    options.option("--compiler", compiler_,
                   "Compiler (default: the newest of the machine's that knows the architecture)");
    options.option("--launcher", launcher_,
                   "Put before the compiler: ccache, or distcc for AMD (default: FMHA_COMPILER_LAUNCHER)");
    options.option("--per-file", per_file_, "Kernels a translation unit");
}

std::string CompileOptions::regenerate(const std::vector<std::string>& request) const {
    const std::string program = system::program_path().string();
    if (program.empty()) return {}; // nobody can then
    std::vector<std::string> words{program, "generate"};
    words.insert(words.end(), request.begin(), request.end());
    for (const auto& [option, value] : {std::pair{"--out", out_},
                                        {"--root", root_},
                                        {"--compiler", compiler_},
                                        {"--launcher", launcher_},
                                        {"--per-file", std::to_string(per_file_)}})
        if (!value.empty()) words.insert(words.end(), {option, value});
    for (std::string& word : words) word = system::shell_word(word);
    return fmt::format("cd {} && {}", system::shell_word(std::filesystem::current_path().string()),
                       fmt::join(words, " "));
}

std::string CompileOptions::launcher() const {
    const char* usual = std::getenv("FMHA_COMPILER_LAUNCHER");
    return !launcher_.empty() || usual == nullptr ? launcher_ : usual;
}

generator::BuildTools CompileOptions::tools(const arch::ArchSet& archs, const generator::Selection& selection,
                                            const std::vector<std::string>& request) const {
    auto tools =
        generator::find_tools(archs, selection.kernels, generator::CompilerPlaces::of_environment(compiler_),
                              generator::kernel_root(root_), launcher());
    refuse_what_sends_nothing(tools);
    tools.regenerate = regenerate(request);
    return tools;
}

generator::BuildOptions CompileOptions::build() const {
    if (per_file_ < 1 || per_file_ > 1000)
        throw InputError(fmt::format("--per-file {}: allowed: 1 to 1000", per_file_));
    generator::BuildOptions options{.folder = out_};
    options.per_file = static_cast<std::size_t>(per_file_);
    return options;
}

} // namespace fmha::cli
