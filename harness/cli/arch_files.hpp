#pragma once

#include "harness/cli/catalog_options.hpp"
#include "harness/cli/options.hpp"

#include <string>

namespace fmha::cli {

/// `--arch-dir`, which stands wherever `--arch` does: the architecture files that a command works on.
class ArchFiles {
  public:
    void declare(OptionSet& options) {
        options.option("--arch-dir", folder_,
                       "Read architecture files from this folder instead of those compiled in");
    }

    /// As it was given; "" when it was not.
    const std::string& folder() const { return folder_; }
    /// Throws InputError for a folder that cannot be used.
    arch::ArchSet load() const { return load_archs(folder_); }

  private:
    std::string folder_;
};

} // namespace fmha::cli
