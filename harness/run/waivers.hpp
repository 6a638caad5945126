#pragma once

#include "harness/cases/waiver.hpp"
#include "harness/results/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace fmha::harness {

/// Whether `pattern` (Waiver::cases) means the case called `name`: all of it, or a part that ends before its seed, its fields, or a
/// folder's "/". Brackets stand for themselves, because names have them.
bool means_case(std::string_view pattern, std::string_view name);

/// Whether an entry is about a result.
bool is_about(const Waiver& waiver, const CaseResult& result);

/// The entries of a waiver file for the runs on one target and architecture.
class Waivers {
  public:
    explicit Waivers(std::vector<Waiver> all, std::string_view arch, std::string_view target);

    const std::vector<Waiver>& entries() const { return entries_; }

    /// The entry that expects a crash or a hang of `kernels` (joined as in CaseResult; "" before there are any: then an entry for all
    /// kernels) on a case, which is not launched then; nullptr when there is none.
    const Waiver* forbids(const std::string& name, const std::string& kernels) const;

    /// Changes the results of a case that ended into what they are with these entries: a failure that is known, a pass that is
    /// not expected, or another end than the expected one, which stays what it is.
    void judge(std::vector<CaseResult>& results) const;

  private:
    std::vector<Waiver> entries_;
};

/// The result of kernels that `waiver` forbids: `blank`, not run.
CaseResult waived_result(CaseResult blank, const Waiver& waiver);

} // namespace fmha::harness
