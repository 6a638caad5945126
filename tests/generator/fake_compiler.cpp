#include "tests/generator/fake_compiler.hpp"

#include "dispatcher/system/files.hpp"
#include "kernels/generator/headers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fmha::generator::test {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view program = R"(#!/bin/sh
here=$(dirname "$0")
case "$*" in
-v) echo 'clang version 99.1.0 (fake)' >&2; exit 0 ;;
*--print-supported-cpus*) echo gfx942 gfx950; exit 0 ;;
*-print-prog-name=ld.lld*) echo /bin/ld.lld; exit 0 ;;
*-print-prog-name=llvm-objdump*) echo llvm-objdump; exit 0 ;;
esac
while [ $# -gt 0 ]; do
    case "$1" in
    *.hip) source=$1 ;;
    -o) shift; object=$1 ;;
    esac
    shift
done
echo "$source" >>"$here/compiled"
if [ -f "$here/slow" ]; then sleep 0.3; fi
if [ -f "$here/touch" ]; then echo '//' >>"$here/../root/kernels/other.hpp"; fi
if [ -f "$here/refuse" ] && grep -q -f "$here/refuse" "$source"; then
    echo "$source:1:1: error: refused" >&2
    echo "and a second line" >&2
    exit 1
fi
echo "remark: compiled $source" >&2
cp "$source" "$object"
)";

} // namespace

FakeCompiler::FakeCompiler() {
    fs::create_directories(folder("bin"));
    fs::create_directories((root() / entry_header).parent_path());
    system::write_file(root() / entry_header, "#include \"kernels/other.hpp\"\n#include <cstdint>\n");
    system::write_file(root() / "kernels/other.hpp", "#define FMHA_DEVICE\n");
    system::write_file(folder("bin/clang++-99"), program);
    fs::permissions(folder("bin/clang++-99"), fs::perms::owner_all);
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

void FakeCompiler::be_slow() const {
    system::write_file(folder("bin/slow"), "");
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
