// A shape matrix expects a kernel exactly where the dispatcher finds one in the house catalogue, in both of its sections, on every architecture.

#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/families/family.hpp"
#include "harness/run/candidate.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/kernel_dims.hpp"
#include "kernels/arch/arch.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <unistd.h>
#include <utility>

namespace fmha::harness {
namespace {

/// Every pair of head dimensions around the largest ones, for the types of upstream's matrix.
class MatrixFile {
  public:
    MatrixFile()
        : path_(std::filesystem::temp_directory_path() / ("dims." + std::to_string(getpid()) + ".yaml")) {
        std::ofstream(path_)
            << "forward_tests:\n  smoke:\n    - name: T\n      seqlen_q: [16]\n      seqlen_k: [16]\n"
               "      hdim_q: [64, 128, 192, 256, 264]\n      hdim_v: [64, 128, 192, 256, 264]\n"
               "      dtype: [fp16, bf16, fp8bf16, fp8fp32]\n"
               "backward_tests:\n  smoke:\n    - name: T\n      seqlen_q: [16]\n      seqlen_k: [16]\n"
               "      hdim_q: [32, 96, 128, 192, 256, 264]\n      hdim_v: [32, 96, 128, 192, 256, 264]\n"
               "      dtype: [fp16]\n      mask: [top_left]\n      dropout: [0.0, 0.1]\n"
               "    - name: H\n      seqlen_q: [16]\n      seqlen_k: [16]\n"
               "      dtype: [bf16, fp8bf16]\n      bias: [none, elementwise, alibi]\n";
    }
    ~MatrixFile() { std::filesystem::remove(path_); }
    MatrixFile(const MatrixFile&) = delete;
    MatrixFile& operator=(const MatrixFile&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

/// The end of a shape, and its reason.
std::pair<Expectation, std::string> planned(const KernelSource& source, const Case& shape,
                                            const std::string& arch) {
    try {
        static_cast<void>(planned_candidate(source, family_of(shape.family), shape, to_problem(shape, arch)));
        return {Expectation::pass, {}};
    } catch (const ProblemError& error) {
        return {Expectation::invalid_problem, error.rule()};
    } catch (const NoKernelFound& error) {
        return {Expectation::no_kernel, error.what()};
    }
}

TEST(KernelDims, MatricesExpectAKernelWhereTheDispatcherFindsOne) {
    const MatrixFile matrix;
    const auto archs = arch::ArchSet::built_in();
    std::map<std::pair<ApiFamily, Expectation>, int> seen;
    for (const auto& tables : archs.all()) {
        const std::string arch = tables.name().str();
        for (const ApiFamily family : {ApiFamily::fwd, ApiFamily::bwd}) {
            const auto shapes =
                load_shape_matrix(matrix.path(), Tier::smoke, kernel_dims(arch, family), family);
            const auto source = house_kernels(make_target("host", {.arch = arch, .kernels_dir = {}}), "",
                                              kernel_families_of(shapes));
            for (const Case& shape : shapes) {
                if (family == ApiFamily::fwd && !source->has_type(shape.data_type)) continue;
                const auto [outcome, why] = planned(*source, shape, arch);
                EXPECT_EQ(shape.expect, outcome) << arch << " " << shape.id << "\n" << why;
                EXPECT_THAT(why, testing::HasSubstr(shape.expect_rule)) << arch << " " << shape.id;
                ++seen[{family, outcome}];
            }
        }
    }
    EXPECT_GT((seen[{ApiFamily::fwd, Expectation::pass}]), 200);
    EXPECT_GT((seen[{ApiFamily::fwd, Expectation::no_kernel}]), 100);
    EXPECT_GT((seen[{ApiFamily::bwd, Expectation::pass}]), 200);
    EXPECT_GT((seen[{ApiFamily::bwd, Expectation::no_kernel}]), 100);
    EXPECT_EQ((seen[{ApiFamily::bwd, Expectation::invalid_problem}]), 7 * 3) << "8-bit types (20.1)";
}

TEST(KernelDims, BackwardHasItsOwn) {
    const KernelDims dims = kernel_dims("gfx950", ApiFamily::bwd);
    EXPECT_EQ(dims.size(), 3U) << "fp32, fp16 and bf16";
    EXPECT_EQ(dims.at(DataType::bf16).rbegin()->first, 256);
    EXPECT_EQ(kernel_dims("sm_90", ApiFamily::bwd).size(), 3U);
}

// Upstream's matrix has fp8fp32 shapes of 256 channels.
TEST(KernelDims, EightBitTypesReach256Channels) {
    for (const char* arch : {"gfx942", "gfx950", "gfx1201", "sm_90"})
        EXPECT_EQ(kernel_dims(arch, ApiFamily::fwd).at(DataType::fp8fp32).rbegin()->first, 256) << arch;
    EXPECT_FALSE(kernel_dims("gfx1100", ApiFamily::fwd).contains(DataType::fp8fp32));
}

} // namespace
} // namespace fmha::harness
