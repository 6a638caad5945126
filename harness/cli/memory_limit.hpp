#pragma once

#include "dispatcher/types/error.hpp"
#include "harness/cli/options.hpp"

#include <cstdint>
#include <fmt/format.h>
#include <string>

namespace fmha::cli {

/// `--memory-limit`: above which size a case is left alone.
class MemoryLimit {
  public:
    /// `fate` of such a case: "not run".
    void declare(OptionSet& options, const std::string& fate) {
        options.option(
            "--memory-limit", gib_,
            fmt::format(
                "GiB of tensors, copies of outputs and reference above which a case is {}; 0: no limit",
                fate));
    }

    /// Throws InputError for a value that is out of range.
    void check() const {
        if (gib_ < 0 || gib_ > 1'000'000)
            throw InputError(fmt::format("--memory-limit is {}; allowed: 0 to 1000000", gib_));
    }
    /// 0 = no limit.
    std::int64_t bytes() const { return gib_ << 30; }

  private:
    std::int64_t gib_ = 8;
};

} // namespace fmha::cli
