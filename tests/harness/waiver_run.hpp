#pragma once

#include "dispatcher/system/files.hpp"
#include "tests/harness/command_support.hpp"
#include "tests/harness/faulty_forward.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

/// Runs of two cases, one of which a mistake of the kernel turns red, with a file of --waivers.
namespace fmha::cli::test {

/// With one key too many seen by every row, the first fails and the second has nothing that shows it.
inline constexpr const char* bad = "fwd/faults[mask=t]@1";
inline constexpr const char* good = "fwd/faults@1";

/// An entry on a line of its own. `more` replaces members.
inline std::string entry(const std::string& cases, const std::string& expect = "failed",
                         const std::string& more = "", const std::string& arch = "all",
                         const std::string& target = "all") {
    return fmt::format(
        "- {{cases: \"{}\", expect: {}, arch: {}, target: {}, tracker: 17, reason: One key too many.{}}}\n",
        cases, expect, arch, target, more);
}

class WaiverRun : public testing::Test {
  protected:
    std::string file(const std::string& text, const std::string& name = "known.yaml") const {
        system::write_file(folder_ / name, text);
        return folder_ / name;
    }

    /// Both cases on a kernel with the mistake.
    Ran verify(const std::string& waivers, std::vector<std::string> more = {}) const {
        more.insert(more.begin(), {bad, good, "--jobs", "1", "--waivers", file(waivers)});
        return verify_on<harness::test::FaultyForward>(more, host_target::Fault::mask_right_too_wide);
    }

    /// The same on a kernel that ends its process where there is a mask, and leaves a mark before.
    Ran verify_crashing(const std::string& waivers, const std::string& cases = bad) const {
        const std::function<void(const FwdArgs&)> crash = [mark = mark()](const FwdArgs& args) {
            if (args.mask.type == MaskType::no_mask) return;
            std::ofstream(mark) << "launched";
            std::abort();
        };
        return verify_on<harness::test::SpoiledKernel>(
            {cases, good, "--jobs", "1", "--waivers", file(waivers)}, crash);
    }
    std::string mark() const { return folder_ / "mark"; }
    bool launched() const { return std::filesystem::exists(mark()); }

    Json report(const std::string& name = "r.json") const {
        return Json::parse(system::read_file(folder_ / name));
    }

    Scratch folder_;
};

} // namespace fmha::cli::test
