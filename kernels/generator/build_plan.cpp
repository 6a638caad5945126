#include "kernels/generator/build_plan.hpp"

#include "dispatcher/system/program.hpp"
#include "dispatcher/system/sha256.hpp"
#include "dispatcher/system/shell_word.hpp"
#include "kernels/generator/headers.hpp"
#include "kernels/generator/write.hpp"

#include <fmt/format.h>

namespace fmha::generator {
namespace {

std::string without_dollars(std::string_view text) {
    std::string escaped;
    for (const char c : text) escaped.append(c == '$' ? 2 : 1, c);
    return escaped;
}

/// A path in a list of a Ninja file.
std::string ninja_path(std::string_view path) {
    std::string escaped;
    for (const char c : path) {
        if (c == '$' || c == ' ' || c == ':') escaped.push_back('$');
        escaped.push_back(c);
    }
    return escaped;
}

/// The edge by which Ninja brings its own file up to date before it looks at anything else.
std::string own_edge(const BuildTools& tools) {
    std::string text = fmt::format("\nrule generate\n"
                                   "  command = {}\n"
                                   "  description = generate sources and build.ninja\n"
                                   "  generator = 1\n"
                                   "build build.ninja: generate |",
                                   without_dollars(tools.regenerate));
    text += " $\n  " + ninja_path(system::program_path().string());
    for (const std::string& header : headers_of(tools.root))
        text += " $\n  " + ninja_path((tools.root / header).string());
    return text + "\n";
}

/// Launcher, compiler, flags and include path, ready for a shell.
std::string compiler_words(const Compiler& compiler, std::vector<std::string> flags,
                           const BuildTools& tools) {
    // distcc compiles whatever says -x on the machine that asks, and passes the same option on in its other spelling.
    if (distributes(tools.launcher)) {
        flags.erase(flags.begin());
        flags.front() = "--language=hip";
    }
    std::vector<std::string> words;
    if (!tools.launcher.empty()) words.push_back(tools.launcher);
    words.push_back(system::shell_word(compiler.path.string()));
    for (const std::string& flag : flags) words.push_back(system::shell_word(flag));
    words.push_back("-I" + system::shell_word(tools.root.string()));
    return fmt::format("{}", fmt::join(words, " "));
}

std::string compile_prefix(const Compiler& compiler, std::string_view arch, const BuildTools& tools) {
    return compiler_words(compiler, compile_flags(compiler, arch), tools);
}

} // namespace

const Compiler& BuildTools::compiler_of(const Unit& unit) const {
    return compilers.at(unit.kernels.front().config.arch.str());
}

bool distributes(std::string_view launcher) {
    return std::filesystem::path(launcher.substr(0, launcher.find(' '))).filename() == "distcc";
}

std::string_view source_extension(std::string_view launcher) {
    return distributes(launcher) ? "cpp" : "hip";
}

BuildTools find_tools(const arch::ArchSet& archs, std::span<const NamedKernel> kernels,
                      const CompilerPlaces& places, const std::filesystem::path& root, std::string launcher) {
    BuildTools tools{{}, root, headers_digest(root), std::move(launcher), {}};
    for (const NamedKernel& kernel : kernels) {
        const std::string arch = kernel.config.arch.str();
        if (!tools.compilers.contains(arch))
            tools.compilers.emplace(arch, find_compiler(archs.at(arch).hardware(), places));
    }
    return tools;
}

std::vector<PlannedUnit> plan_units(std::span<const Unit> units, const BuildTools& tools) {
    std::vector<PlannedUnit> planned;
    planned.reserve(units.size());
    for (const Unit& unit : units) {
        const Compiler& compiler = tools.compiler_of(unit);
        const std::string flags =
            fmt::format("{}", fmt::join(compile_flags(compiler, unit.kernels.front().config.arch), " "));
        PlannedUnit plan;
        plan.unit = unit;
        plan.source = source_file(unit, source_extension(tools.launcher));
        plan.key = system::sha256(fmt::format("fmha kernel 1\n{}\n{}\n{}\n{}", compiler.identity, flags,
                                              tools.headers, source_of(unit)));
        constexpr std::size_t shown = 12;
        plan.object =
            fmt::format("obj/{}.{}.{}", unit.stem, plan.key.substr(0, shown), object_extension(compiler));
        planned.push_back(std::move(plan));
    }
    return planned;
}

std::map<std::string, ParsedHeaders> parsed_headers(const BuildTools& tools) {
    std::map<std::string, ParsedHeaders> parsed;
    if (!tools.launcher.empty()) return parsed;
    for (const auto& [arch, compiler] : tools.compilers) {
        if (compiler.kind != CompilerKind::clang) continue;
        auto flags = compile_flags(compiler, arch);
        const std::string digest = system::sha256(
            fmt::format("{}\n{}\n{}", compiler.identity, fmt::join(flags, " "), tools.headers));
        constexpr std::size_t shown = 12;
        ParsedHeaders headers{fmt::format("{}{}.{}", parsed_folder, arch, digest.substr(0, shown)), {}};
        std::erase(flags, "-c");
        // The digest tells headers apart, so that a time alone changes nothing.
        for (const char* word : {"-fsyntax-only", "-Xclang", "-emit-pch", "-Xclang", "-fno-pch-timestamp",
                                 "-Xclang", "-o", "-Xclang"})
            flags.emplace_back(word);
        flags.push_back(headers.stem + ".pch");
        headers.command = fmt::format(
            "{0} {1} 2> /dev/null && echo '-Xclang -include-pch -Xclang {2}.pch' > {3} || : > {3}",
            compiler_words(compiler, flags, tools), parsed_source, headers.stem, headers.arguments());
        parsed.emplace(arch, std::move(headers));
    }
    return parsed;
}

std::string parsed_source_text() {
    return fmt::format("#include \"{}\"\n", entry_header);
}

std::string ninja_file(std::span<const PlannedUnit> units, const BuildTools& tools) {
    std::string text = "# Compiles the kernels under src/ into code objects under obj/.\n"
                       "ninja_required_version = 1.8\n";
    const auto parsed = parsed_headers(tools);
    for (const auto& [arch, compiler] : tools.compilers) {
        const auto headers = parsed.find(arch);
        const bool has = headers != parsed.end();
        // The compiler's words are kept beside the object, and shown when it fails.
        text += fmt::format("\nrule {}\n"
                            "  command = {}{} $in -o $out 2> $out.log || {{ cat $out.log >&2; false; }}\n"
                            "  description = $out\n",
                            arch, without_dollars(compile_prefix(compiler, arch, tools)),
                            has ? " @" + headers->second.arguments() : "");
        if (has)
            text += fmt::format("rule headers_{0}\n"
                                "  command = {1}\n"
                                "  description = $out\n"
                                "build {2}: headers_{0} | {3}\n",
                                arch, without_dollars(headers->second.command), headers->second.arguments(),
                                parsed_source);
    }
    if (!tools.regenerate.empty()) text += own_edge(tools);
    text += "\n";
    for (const PlannedUnit& unit : units) {
        const auto arch = unit.unit.kernels.front().config.arch;
        const auto headers = parsed.find(arch.str());
        text += fmt::format("build {}: {} {}{}\n", unit.object, arch.view(), unit.source,
                            headers == parsed.end() ? "" : " | " + headers->second.arguments());
    }
    return text;
}

std::string ninja_selection(std::span<const PlannedUnit* const> units) {
    std::string text = "include build.ninja\nbuild wanted: phony";
    for (const PlannedUnit* unit : units) text += " $\n  " + unit->object;
    return text + "\n";
}

std::string command_line(const PlannedUnit& unit, const BuildTools& tools) {
    return fmt::format(
        "{} {} -o {}",
        compile_prefix(tools.compiler_of(unit.unit), unit.unit.kernels.front().config.arch, tools),
        system::shell_word(unit.source), system::shell_word(unit.object));
}

} // namespace fmha::generator
