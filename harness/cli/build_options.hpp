#pragma once

#include "harness/cli/options.hpp"
#include "kernels/built/manifest.hpp"
#include "kernels/generator/build.hpp"

#include <cstdint>
#include <string>

namespace fmha::cli {

/// The options by which `generate` and `build` say how kernels are compiled.
class CompileOptions {
  public:
    void declare(OptionSet& options);

    /// Compilers and headers for the kernels. Throws InputError when one is missing.
    /// `request` are the arguments that selected them.
    generator::BuildTools tools(const arch::ArchSet& archs, const generator::Selection& selection,
                                const std::vector<std::string>& request) const;
    /// --out and --per-file.
    generator::BuildOptions build() const;
    const std::string& out() const { return out_; }
    /// --launcher, or the environment's; empty: none.
    std::string launcher() const;

  private:
    /// BuildTools::regenerate; empty on a system that does not say where this program lies, as without /proc.
    std::string regenerate(const std::vector<std::string>& request) const;

    std::string out_ = built::default_folder, root_, compiler_, launcher_;
    std::int64_t per_file_ = 1;
};

} // namespace fmha::cli
