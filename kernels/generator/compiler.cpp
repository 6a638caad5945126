#include "kernels/generator/compiler.hpp"

#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/generator/scan.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

namespace fmha::generator {

namespace fs = std::filesystem;

namespace {

bool runnable(const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::vector<fs::path> folders_of(const char* variable) {
    std::vector<fs::path> folders;
    const char* value = std::getenv(variable);
    std::istringstream text(value == nullptr ? "" : value);
    for (std::string folder; std::getline(text, folder, ':');)
        if (!folder.empty()) folders.emplace_back(folder);
    return folders;
}

/// Folders in `parent` whose names start so, the last in alphabetical order first.
std::vector<fs::path> folders_like(const fs::path& parent, std::string_view prefix) {
    std::vector<fs::path> found;
    std::error_code unreadable;
    for (const auto& entry : fs::directory_iterator(parent, unreadable))
        if (entry.path().filename().string().starts_with(prefix) && entry.is_directory(unreadable))
            found.push_back(entry.path());
    std::ranges::sort(found, std::greater<>());
    return found;
}

std::string first_line_with(const std::string& text, std::string_view word) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (line.find(word) != std::string::npos) return line;
    return {};
}

constexpr auto version_time = std::chrono::seconds(60);

/// The C++ library whose headers nvcc takes: that of g++. Empty without one, which nvcc says itself when it compiles.
std::string library_of_nvcc() {
    try {
        return "\nlibstdc++ " + system::run_process({"g++", "-dumpfullversion"}, {.time = version_time}).out;
    } catch (const InputError&) {
        return {};
    }
}

/// The compiler at a path, or nothing when the program is not one or does not run.
std::optional<Compiler> ask(const fs::path& path) {
    Compiler compiler;
    compiler.path = path;
    try {
        // -v names the C++ library that clang takes its headers from, beside the version.
        const auto ran = system::run_process({path.string(), "-v"}, {.time = version_time});
        const std::string text = ran.out + ran.err;
        if (const auto major = number_behind(text, "clang version ")) {
            compiler.major = static_cast<int>(*major);
            compiler.version = first_line_with(text, "clang version");
            compiler.identity = compiler.version;
            if (const auto folder = behind(text, "Selected GCC installation: ", "\r\n"))
                compiler.identity += "\nlibstdc++ " + fs::path(*folder).filename().string();
            return compiler;
        }
        const auto version = system::run_process({path.string(), "--version"}, {.time = version_time}).out;
        // "Cuda compilation tools, release 12.4, V12.4.131"
        const auto release = behind(version, "release ", "\r\n");
        const auto major = release ? leading_number(*release) : std::nullopt;
        if (!major || release->find(", V") == std::string_view::npos) return std::nullopt;
        compiler.kind = CompilerKind::nvcc;
        compiler.major = static_cast<int>(*major);
        compiler.version = fmt::format("nvcc release {}", *release);
        compiler.identity = compiler.version + library_of_nvcc();
        return compiler;
    } catch (const InputError&) {
        return std::nullopt; // not a program of this machine
    }
}

/// A sentence about the feature that the compiler lacks, or nothing when it can compile for the architecture.
std::optional<std::string> lacks(const Compiler& compiler, const arch::Hardware& hardware) {
    const std::string arch = hardware.limits.arch.str();
    const bool amd = hardware.vendor == arch::Vendor::amd;
    const std::string shown = compiler.path.string();
    if (amd != (compiler.kind == CompilerKind::clang))
        return fmt::format("{} ({}) does not compile for {}", shown, compiler.version,
                           amd ? "AMD" : "NVIDIA");
    const std::vector<std::string> command =
        amd ? std::vector<std::string>{shown, "--target=amdgcn-amd-amdhsa", "--print-supported-cpus"}
            : std::vector<std::string>{shown, "--list-gpu-code"};
    const auto ran = system::run_process(command, {.time = version_time});
    std::istringstream words(ran.out + ran.err);
    std::set<std::string> known;
    for (std::string word; words >> word;) known.insert(word);
    if (!known.contains(arch)) return fmt::format("{} ({}) does not know {}", shown, compiler.version, arch);
    if (amd) {
        auto linker = system::run_process({shown, "-print-prog-name=ld.lld"}, {.time = version_time}).out;
        if (!linker.starts_with('/'))
            return fmt::format("{} ({}) has no linker ld.lld (Debian package lld-{})", shown,
                               compiler.version, compiler.major);
    }
    return std::nullopt;
}

std::vector<fs::path> candidates(const arch::Hardware& hardware, const CompilerPlaces& places) {
    if (!places.given.empty()) return {places.given};
    std::vector<fs::path> found;
    const auto add = [&](const fs::path& path) {
        if (runnable(path)) found.push_back(path);
    };
    if (hardware.vendor == arch::Vendor::nvidia) {
        for (const fs::path& folder : places.path) add(folder / "nvcc");
        for (const fs::path& folder : places.cuda) add(folder / "bin/nvcc");
        return found;
    }
    for (const fs::path& folder : places.rocm)
        for (const char* name : {"bin/amdclang++", "llvm/bin/clang++", "lib/llvm/bin/clang++"})
            add(folder / name);
    // "clang++-22"
    const auto numbered = [](std::string_view name) {
        constexpr std::string_view begin = "clang++-";
        return name.starts_with(begin) && name.size() > begin.size() &&
               name.find_first_not_of("0123456789", begin.size()) == std::string_view::npos;
    };
    for (const fs::path& folder : places.path) {
        add(folder / "amdclang++");
        add(folder / "clang++");
        std::error_code unreadable;
        for (const auto& entry : fs::directory_iterator(folder, unreadable))
            if (numbered(entry.path().filename().string())) add(entry.path());
    }
    return found;
}

} // namespace

CompilerPlaces CompilerPlaces::of_environment(const std::string& given) {
    CompilerPlaces places{.given = given};
    places.path = folders_of("PATH");
    places.rocm = folders_of("ROCM_PATH");
    for (const auto& folder : folders_like("/opt", "rocm")) places.rocm.push_back(folder);
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
        for (const auto& folder : folders_of(variable)) places.cuda.push_back(folder);
    for (const auto& folder : folders_like("/usr/local", "cuda")) places.cuda.push_back(folder);
    return places;
}

Compiler find_compiler(const arch::Hardware& hardware, const CompilerPlaces& places) {
    std::vector<Compiler> compilers;
    std::set<fs::path> seen;
    for (const fs::path& path : candidates(hardware, places)) {
        std::error_code ignored;
        if (!seen.insert(fs::canonical(path, ignored)).second) continue;
        if (auto compiler = ask(path)) compilers.push_back(std::move(*compiler));
    }
    std::ranges::stable_sort(compilers,
                             [](const Compiler& a, const Compiler& b) { return a.major > b.major; });
    std::string found;
    for (const Compiler& compiler : compilers) {
        const auto lack = lacks(compiler, hardware);
        if (!lack) return compiler;
        found += "; " + *lack;
    }
    const auto arch = hardware.limits.arch.view();
    if (!places.given.empty())
        throw InputError(found.empty()
                             ? fmt::format("--compiler {}: does not run or is neither clang nor nvcc",
                                           places.given.string())
                             : fmt::format("--compiler {}", found.substr(2)));
    if (hardware.vendor == arch::Vendor::nvidia)
        throw NoCompiler(
            fmt::format("no compiler for {}: looked for nvcc on the PATH and under CUDA_HOME, CUDA_PATH and "
                        "/usr/local/cuda*{}; install the CUDA toolkit, 12.0 or later, or give --compiler "
                        "PATH",
                        arch, found));
    throw NoCompiler(
        fmt::format("no compiler for {}: looked for amdclang++, clang++ and clang++-NN on the PATH and under "
                    "ROCM_PATH and /opt/rocm*{}; install ROCm, or clang-22 and lld-22 of Debian, or give "
                    "--compiler PATH",
                    arch, found));
}

std::string compiled_arch(std::string_view arch) {
    std::string name(arch);
    if (!name.starts_with("sm_")) return name;
    constexpr int first_with_own_instructions = 90;
    return std::atoi(name.c_str() + 3) >= first_with_own_instructions ? name + "a" : name;
}

std::vector<std::string> compile_flags(const Compiler& compiler, std::string_view arch) {
    if (compiler.kind == CompilerKind::nvcc) {
        const std::string number = compiled_arch(arch).substr(3);
        return {"-x",
                "cu",
                "-std=c++20",
                "-O3",
                "--expt-relaxed-constexpr",
                fmt::format("-gencode=arch=compute_{0},code=sm_{0}", number),
                "-Xptxas",
                "-v",
                "-cubin"};
    }
    return {"-x", "hip", "-std=c++20", "-O3", "-nogpuinc", "-nogpulib",
            "--offload-arch=" + compiled_arch(arch), "--cuda-device-only", "--no-gpu-bundle-output",
            // Identifiers of translation units follow from paths.
            "-fuse-cuid=none", "-Rpass-analysis=kernel-resource-usage", "-c"};
}

std::string_view object_extension(const Compiler& compiler) {
    return compiler.kind == CompilerKind::nvcc ? "cubin" : "hsaco";
}

fs::path disassembler_of(const Compiler& compiler) {
    if (compiler.kind == CompilerKind::nvcc) return {};
    std::string path =
        system::run_process({compiler.path.string(), "-print-prog-name=llvm-objdump"}, {.time = version_time})
            .out;
    while (path.ends_with('\n')) path.pop_back();
    return path.starts_with('/') && runnable(path) ? fs::path(path) : fs::path();
}

} // namespace fmha::generator
