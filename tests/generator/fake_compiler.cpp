#include "tests/generator/fake_compiler.hpp"

#include "dispatcher/system/files.hpp"
#include "kernels/generator/headers.hpp"

#include <algorithm>

namespace fmha::generator::test {

namespace fs = std::filesystem;

FakeCompiler::FakeCompiler() {
    fs::create_directories(folder("bin"));
    fs::create_directories((root() / entry_header).parent_path());
    system::write_file(root() / entry_header, "#include \"kernels/other.hpp\"\n#include <cstdint>\n");
    system::write_file(root() / "kernels/other.hpp", "#define FMHA_DEVICE\n");
    fs::copy_file(FMHA_SOURCE_DIR "/tests/generator/fake_compiler.sh", folder("bin/clang++-99"));
}

CompilerPlaces FakeCompiler::places() const {
    return {.given = {}, .path = {folder("bin")}, .rocm = {}, .cuda = {}};
}

BuildTools FakeCompiler::tools(const Selection& selection) const {
    return find_tools(arch::ArchSet::built_in(), selection.kernels, places(), root(), {});
}

BuildOptions FakeCompiler::options(std::string_view out) const {
    BuildOptions options{.folder = folder(out)};
    options.cache = folder("cache");
    options.jobs = 2;
    return options;
}

void FakeCompiler::refuse(const std::string& text) const {
    system::write_file(folder("bin/refuse"), text + "\n");
}

void FakeCompiler::lose(const std::string& text) const {
    system::write_file(folder("bin/vanish"), text + "\n");
}

void FakeCompiler::be_slow() const {
    system::write_file(folder("bin/slow"), "0.3");
}

void FakeCompiler::be_fast() const {
    fs::remove(folder("bin/slow"));
}

void FakeCompiler::disassemble(const std::string& line) const {
    system::write_file(folder("bin/llvm-objdump"), "#!/bin/sh\n" + line + "\n");
    fs::permissions(folder("bin/llvm-objdump"), fs::perms::owner_exec, fs::perm_options::add);
}

void FakeCompiler::say(const std::string& text) const {
    system::write_file(folder("bin/say"), text + "\n");
}

void FakeCompiler::touch_headers() const {
    system::write_file(folder("bin/touch"), "");
}

std::size_t FakeCompiler::compiled() const {
    if (!fs::exists(folder("bin/compiled"))) return 0;
    const std::string text = system::read_file(folder("bin/compiled"));
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

} // namespace fmha::generator::test
