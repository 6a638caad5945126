#include "tests/hip_target/device_probe.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/generator/compiler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <vector>

namespace fmha::hip_target::test {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> kept_object(const std::string& name, const std::string& arch) {
    const char* folder = std::getenv("FMHA_CODES_DIR");
    if (folder == nullptr || *folder == '\0') return std::nullopt;
    return fs::path(folder) /
           fmt::format("{}-{}.{}", name, arch, arch.starts_with("sm_") ? "cubin" : "hsaco");
}

} // namespace

std::optional<std::string> compiled_probe(const fs::path& source, const std::string& arch,
                                          const fs::path& include) {
    std::optional<generator::Compiler> compiler;
    try {
        compiler = generator::find_compiler(arch::ArchSet::built_in().at(arch).hardware(),
                                            generator::CompilerPlaces::of_environment());
    } catch (const InputError&) {
        return std::nullopt;
    }
    const system::TemporaryDirectory scratch;
    const fs::path root(FMHA_SOURCE_DIR), object = scratch.path() / "probe.o";
    std::vector<std::string> command{compiler->path};
    for (const std::string& flag : generator::compile_flags(*compiler, arch)) command.push_back(flag);
    for (const fs::path& more : {fs::path("-I" + include.string()), fs::path("-I" + root.string()),
                                 root / source, fs::path("-o"), object})
        command.push_back(more);
    const auto ran = system::run_process(command);
    if (ran.exit_code != 0) throw Error(fmt::format("{}\n{}", fmt::join(command, " "), ran.out + ran.err));
    return system::read_file(object);
}

void keep_object(const std::string& name, const std::string& arch, const std::string& image) {
    const auto path = kept_object(name, arch);
    if (!path) return;
    fs::create_directories(path->parent_path());
    system::write_file(*path, image);
}

std::optional<std::string> probe_for_device(const std::string& name, const fs::path& source,
                                            const std::string& arch, const fs::path& include) {
    const auto kept = kept_object(name, arch);
    if (kept && fs::exists(*kept)) return system::read_file(*kept);
    return compiled_probe(source, arch, include);
}

} // namespace fmha::hip_target::test
