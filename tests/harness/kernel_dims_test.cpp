// A shape matrix expects a kernel exactly where the dispatcher finds one in the house catalogue, on every architecture.

#include "harness/cases/case_problem.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/kernel_dims.hpp"
#include "kernels/arch/arch.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

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
               "      dtype: [fp16, bf16, fp8bf16, fp8fp32]\n";
    }
    ~MatrixFile() { std::filesystem::remove(path_); }
    MatrixFile(const MatrixFile&) = delete;
    MatrixFile& operator=(const MatrixFile&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

/// Why the dispatcher finds no kernel; empty when it finds one.
std::string refusal(const KernelSource& source, const Case& shape, const std::string& arch) {
    try {
        static_cast<void>(source.planned(to_problem(shape, arch), nullptr));
        return {};
    } catch (const NoKernelFound& error) {
        return error.what();
    }
}

TEST(KernelDims, MatricesExpectAKernelWhereTheDispatcherFindsOne) {
    const MatrixFile matrix;
    const auto archs = arch::ArchSet::built_in();
    int found = 0, refused = 0;
    for (const auto& tables : archs.all()) {
        const std::string arch = tables.name().str();
        const auto source = house_kernels(make_target("host", {.arch = arch, .kernels_dir = {}}), "");
        for (const Case& shape :
             load_shape_matrix(matrix.path(), Tier::smoke, kernel_dims(arch, ApiFamily::fwd))) {
            if (!source->has_type(shape.data_type)) continue;
            const std::string why = refusal(*source, shape, arch);
            EXPECT_EQ(shape.expect == Expectation::pass, why.empty()) << arch << " " << shape.id << "\n"
                                                                      << why;
            EXPECT_THAT(why, testing::HasSubstr(shape.expect_rule)) << arch << " " << shape.id;
            ++(why.empty() ? found : refused);
        }
    }
    EXPECT_GT(found, 200);
    EXPECT_GT(refused, 100);
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
