#pragma once

#include "harness/data/fwd_tensors.hpp"
#include "harness/results/result.hpp"
#include "harness/run/fwd_runner.hpp"

#include <optional>

namespace fmha::harness {

/// Whether `result` has become one that is not run, because the case exceeds a limit of `options`.
bool exceeds_limit(CaseResult& result, const FwdCase& c, Fp8Flavour flavour, const FwdRunOptions& options);

/// Throws InputError, which begins with the case's name, when `c` expects a refusal for a reason that does not exist, or
/// has tensors that cannot be laid out. A case whose problem is refused has no tensors.
void require_runnable(const FwdCase& c, const std::string& arch);

/// The tensors of a case, and the same values in another layout where the case may have them and there is room.
class CaseTensors {
  public:
    /// `c` must outlive it. Throws NoRoomForTensor when there is none for the case itself.
    CaseTensors(const FwdCase& c, Fp8Flavour flavour, const FwdRunOptions& options);
    ~CaseTensors() = default;
    CaseTensors(const CaseTensors&) = delete;
    CaseTensors& operator=(const CaseTensors&) = delete;

    FwdTensors& here() { return here_; }
    /// nullptr: nowhere else.
    FwdTensors* elsewhere() { return elsewhere_ ? &*elsewhere_ : nullptr; }

  private:
    FwdTensors here_;
    FwdCase moved_; ///< before the tensors that refer to it
    std::optional<FwdTensors> elsewhere_;
};

} // namespace fmha::harness
