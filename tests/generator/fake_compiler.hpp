#pragma once

#include "dispatcher/system/process.hpp"
#include "kernels/generator/build.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace fmha::generator::test {

/// A folder with a program that answers like clang and "compiles" by copying, headers for it, and a cache. The program
/// writes every source that it is given into a list, fails for sources that contain a text, and can be slow.
class FakeCompiler {
  public:
    FakeCompiler();

    std::filesystem::path folder(std::string_view name) const { return directory_.path() / name; }
    std::filesystem::path root() const { return folder("root"); }
    /// The places where only this compiler is.
    CompilerPlaces places() const;
    BuildTools tools(const Selection& selection) const;
    BuildOptions options(std::string_view out) const;

    /// Sources that contain `text` do not compile.
    void refuse(const std::string& text) const;
    /// Of sources that contain `text` no object is left, and nothing is said.
    void lose(const std::string& text) const;
    void be_slow() const;
    void be_fast() const;
    /// The disassembler beside it is this line of a shell.
    void disassemble(const std::string& line) const;
    /// Says `text` about every source.
    void say(const std::string& text) const;
    /// The compiler changes a header each time.
    void touch_headers() const;
    /// How many sources were compiled so far.
    std::size_t compiled() const;

  private:
    system::TemporaryDirectory directory_;
};

} // namespace fmha::generator::test
