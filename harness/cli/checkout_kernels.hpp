#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/families/family.hpp"
#include "harness/run/case_runner.hpp"
#include "parity/side_by_side/tile_example.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fmha::cli {

/// The kernels of a checkout on our tensors: programs that parity/side_by_side/checkout/build made.
class CheckoutKernels {
  public:
    /// `device`: its number for the programs. `keep`: folder for inputs and outputs of each case; empty = nowhere.
    CheckoutKernels(std::string folder, std::chrono::seconds limit, int device, std::string keep);

    /// Throws InputError for a program that some of `cases` need and `folder` lacks.
    static void require_programs(const std::string& folder, const std::vector<harness::Case>& cases);

    /// The feature of a case that a single call of a checkout's functions cannot pose, one sentence; empty without one.
    static std::string cannot(const harness::Case& c);

    struct Beside {
        parity::Answer theirs; ///< judged by our gates
        bool asked = true; ///< false: no member of theirs says what is in the call; theirs.sentence says what
        Json differences =
            Json::array(); ///< of each output that both sides wrote; empty where one wrote none
    };
    /// Runs theirs and, where `ours` is not null, the kernels that it plans, in this process: a kernel that faults ends it.
    Beside run(const harness::Case& c, const harness::KernelSource* ours,
               const harness::CaseRunOptions& options) const;

  private:
    /// Makes the call on the memory of `data`, which has the results afterwards if it ended well.
    void call(Beside& beside, const harness::Case& c, harness::CaseData& data, const std::string& arch) const;
    /// The folder for the files of one side of a case, made if it is not there; nullopt where none are kept.
    std::optional<std::filesystem::path> kept_folder(const harness::Case& c, const char* side) const;

    std::string folder_;
    std::chrono::seconds limit_;
    int device_;
    std::string keep_;
};

Json to_json(const CheckoutKernels::Beside& beside);
CheckoutKernels::Beside beside_of(const Json& json);

} // namespace fmha::cli
