#pragma once

#include "dispatcher/system/processor.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/within.hpp"

#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>

namespace fmha::cli {

/// `--memory-limit`: above which size a case is left alone.
class MemoryLimit {
  public:
    /// What holds where the option is not given. Beyond the machine's memory a case takes other processes with it.
    enum class Usual : std::uint8_t { eight_gib, machine };
    explicit MemoryLimit(Usual usual = Usual::eight_gib) : usual_(usual) {}

    /// `fate` of such a case: "not run". `outputs`: what there is of them beside the tensors.
    void declare(OptionSet& options, const std::string& fate, const std::string& outputs = "copies") {
        options.option("--memory-limit", gib_,
                       fmt::format("GiB of tensors, {} of outputs and reference above which a case is {}; 0: "
                                   "no limit (default: {})",
                                   outputs, fate,
                                   usual_ == Usual::machine ? "the memory of the machine" : "8"));
    }

    /// Throws InputError for a value that is out of range.
    void check() const { require_within("--memory-limit", gib_); }
    /// 0 = no limit.
    std::int64_t bytes() const {
        if (gib_) return *gib_ << 30;
        return usual_ == Usual::machine ? system::physical_memory() : std::int64_t{8} << 30;
    }
    /// As it was asked for, the same on every machine; 0 = no limit, or not asked for.
    std::int64_t asked_bytes() const { return gib_.value_or(0) << 30; }

  private:
    Usual usual_;
    std::optional<std::int64_t> gib_;
};

} // namespace fmha::cli
