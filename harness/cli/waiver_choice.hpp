#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/cli/case_choice.hpp"
#include "harness/run/targets.hpp"
#include "harness/run/waivers.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fmha::cli {

/// `fmha verify --waivers`: the cases that are known to be bad.
class WaiverChoice {
  public:
    void declare(OptionSet& options);
    const std::string& file() const { return file_; } ///< as it was given; "" without it

    /// Reads the file for a run of `asked` on `target`, and looks for entries that nothing can match. `catalogue`: the cases are witnesses of a
    /// list. Throws InputError for a file that cannot be used.
    void read(const harness::Target& target, const std::vector<harness::Case>& asked, CaseChoice& cases,
              bool catalogue);

    /// Those that the run is in the scope of; nullptr without a file.
    const harness::Waivers* entries() const { return entries_ ? &*entries_ : nullptr; }

    /// Why the file makes the run red whatever its results are, a sentence each: entries that match no case there is, and entries that
    /// have expired.
    const std::vector<std::string>& objections() const { return objections_; }

    /// Adds the members by which a continued run and `fmha merge` know the file.
    void identify(Json& identity) const;

    /// Entries that the results of `cases` do not need, a sentence for each kind of them.
    std::vector<std::string> unused(const std::vector<harness::Case>& cases,
                                    std::span<const harness::CaseResult> results) const;

  private:
    bool can_be_asked(const harness::Waiver& waiver, CaseChoice& cases);

    std::string file_, sha256_;
    std::optional<harness::Waivers> entries_;
    std::optional<std::vector<harness::Case>> matrix_;
    std::vector<std::string> objections_, of_others_;
    std::size_t out_of_scope_ = 0;
};

/// The sentences of `WaiverChoice::objections` in an identity. Throws InputError where it holds something else.
std::vector<std::string> waiver_objections(const Json& identity);

} // namespace fmha::cli
