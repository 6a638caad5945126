#pragma once

#include "harness/families/family.hpp"
#include "harness/results/result.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/execution.hpp"

#include <memory>

namespace fmha::harness {

/// Why a case of so many bytes is not run; empty when it may be. `limit` in bytes, 0 = none.
std::string beyond_limit(const CaseBytes& bytes, std::int64_t limit);

/// Whether `result` has become one that is not run, because the case exceeds a limit of `options`. `tile` as below.
bool exceeds_limit(CaseResult& result, const Family& family, const Case& c, Fp8Flavour flavour,
                   const CaseRunOptions& options, const RowTile& tile);

/// Throws InputError, which begins with the case's name, when `c` expects a refusal for a reason that does not exist, or
/// has tensors that cannot be laid out; of a case with very many entries only the former. A case whose problem is refused has no tensors.
void require_runnable(const Case& c, const std::string& arch);

/// What is done with a case whose tensors other programs bring or take as files.
enum class FileUse : std::uint8_t {
    write_reference, ///< outputs are computed and written
    judge_outputs,   ///< outputs are read and judged, one folder of them after the other
};

/// Bytes that this takes at a time, beside the memory of a few rows and of the program.
std::int64_t bytes_of_use(FileUse use, const CaseBytes& bytes);

/// The threads of a reference that has the machine for itself: as many of the machine's as `limit` bytes have room for; 0 = no limit. Throws
/// InputError, which begins with the case's name, when there is no room for one.
int reference_threads_within(std::int64_t limit, FileUse use, const Case& c, Fp8Flavour flavour);

/// The tensors of a case, and the same values in another layout where the case may have them and there is room.
class CaseTensors {
  public:
    /// `family` and `c` must outlive it. `tile`: of a target that runs few rows alone. Throws NoRoomForTensor
    /// when there is none for the case itself.
    CaseTensors(const Family& family, const Case& c, Fp8Flavour flavour, const CaseRunOptions& options,
                const RowTile& tile = {});
    ~CaseTensors() = default;
    CaseTensors(const CaseTensors&) = delete;
    CaseTensors& operator=(const CaseTensors&) = delete;

    CaseData& here() { return *here_; }
    /// The same values elsewhere, if anywhere. Valid until this is destroyed.
    Elsewhere elsewhere();
    /// Those that the limits of the run leave to the reference.
    int reference_threads() const { return reference_threads_; }

  private:
    std::unique_ptr<CaseData> in_order() const;

    const Family& family_;
    Fp8Flavour flavour_;
    RowTile tile_;
    std::unique_ptr<CaseData> here_;
    Case in_order_, moved_; ///< before the tensors that refer to them
    std::unique_ptr<CaseData> elsewhere_;
    bool has_room_for_three_ = true; ///< within the limits of the run
    int reference_threads_ = 1;
};

} // namespace fmha::harness
