#pragma once

#include "harness/cases/case.hpp"
#include "harness/cli/arch_files.hpp"
#include "harness/cli/memory_limit.hpp"
#include "harness/cli/options.hpp"
#include "harness/run/case_tensors.hpp"
#include "kernels/arch/usual_arch.hpp"

#include <string>

namespace fmha::cli {

/// The one case whose tensors a command exchanges with others, as its options say: --case, --cases-root, --arch, --arch-dir,
/// --memory-limit.
class CaseOptions {
  public:
    void declare(OptionSet& options);

    /// The case, packed as files are and checked against the rules for the architecture. Throws InputError or ProblemError; both name
    /// the mistake.
    harness::Case load() const;

    /// The threads that the reference of the case has within the memory limit. Throws InputError where there is no room for one: to be
    /// called before anything is laid out.
    int reference_threads(const harness::Case& c, harness::FileUse use) const;

    /// Architecture, which decides the 8-bit flavour.
    const std::string& arch() const { return arch_; }

  private:
    ArchFiles arch_files_;
    MemoryLimit memory_;
    std::string case_, root_, arch_ = arch::usual_arch;
};

} // namespace fmha::cli
