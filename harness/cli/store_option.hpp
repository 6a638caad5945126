#pragma once

#include "harness/cli/options.hpp"
#include "harness/store/store.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace fmha::cli {

/// `--store FILE` of the commands that measure.
class StoreOption {
  public:
    void declare(OptionSet& options);

    /// Empty when it was not given.
    const std::string& file() const { return file_; }

    /// Throws InputError when `begin` could not write now. Changes no file but an older store, and makes none.
    void check() const;

    /// Begins `run` in the file, with the digest of this program where it has none; nullptr when no file was given. Throws
    /// InputError when it cannot be written.
    std::unique_ptr<store::Recording> begin(const store::RunRecord& run) const;

  private:
    std::string file_;
};

/// A run of this program that begins now, without the fields that only its command knows.
store::RunRecord new_run(store::RunKind kind, const std::string& invocation);

/// Ends a run: `green` is its verdict. Throws InputError when the store lacks a part of it. nullptr is no run.
void finish(store::Recording* recording, double seconds, bool green);

/// The commit that this program was built from, 40 hexadecimal digits; "unknown" outside of a checkout.
std::string_view built_commit();

} // namespace fmha::cli
