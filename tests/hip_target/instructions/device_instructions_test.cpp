// The matrix-instruction table against the hardware: every instruction of this machine's GPU multiplies random operands,
// and gives bit for bit the result of its row's model. The operands are such that every sum is exact.

#include "kernels/loader/code_object.hpp"
#include "tests/hip_target/device_probe.hpp"
#include "tests/hip_target/instructions/multiplication.hpp"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include <random>

namespace fmha::hip_target::test {
namespace {

class InstructionsProbe : public testing::TestWithParam<const char*> {};

TEST_P(InstructionsProbe, Compiles) {
    const std::string arch = GetParam();
    const std::optional<std::string> image = compiled_probe(probe_source, arch, ProbeList(arch).folder());
    if (!image) GTEST_SKIP() << "no compiler for " << arch;
    EXPECT_NO_THROW(loader::check_code_object(*image, arch, "the probe"));
    for (const MatrixInstruction name : instructions_of(arch))
        EXPECT_NE(image->find(probe_symbol(name)), std::string::npos) << to_string(name);
    keep_object("instructions", arch, *image);
}

INSTANTIATE_TEST_SUITE_P(Architectures, InstructionsProbe,
                         testing::Values("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201",
                                         "sm_90"),
                         [](const auto& arch) { return std::string(arch.param); });

TEST(DeviceInstructions, AgreeWithTheirRowsOfTheTable) {
    const DeviceWithProbe with = open_device();
    if (!with.module) GTEST_SKIP() << with.why_none;
    const loader::Device& device = *with.device;
    const std::string& arch = device.properties().arch;
    std::mt19937 random(20261121); // NOLINT(cert-msc51-cpp): the same in every run
    for (const MatrixInstruction name : instructions_of(arch)) {
        const InstructionInfo info = instruction_info(name);
        const MatrixModel model(info, matrix_unit(arch));
        const Operands operands(info, matrix_unit(arch));
        for (int n = 0; n < 8; ++n) {
            const Registers registers = operands.draw_whole(random);
            ASSERT_EQ(on_device(device, *with.module, info, registers), operands.product(registers, model))
                << device.text() << ", " << to_string(name) << ", multiplication " << n;
        }
        fmt::print("{}: {} as the table says\n", device.text(), to_string(name));
    }
}

/// The comparison can fail: any two bits of a lane map exchanged give another product of the same operands.
TEST(DeviceInstructions, WouldDifferWithAnotherRow) {
    std::mt19937 random(7); // NOLINT(cert-msc51-cpp)
    for (const char* arch : {"gfx942", "gfx950", "gfx1201", "sm_90"})
        for (const MatrixInstruction name : instructions_of(arch)) {
            const InstructionInfo info = instruction_info(name);
            const Operands operands(info, matrix_unit(arch));
            const Registers registers = operands.draw_whole(random);
            const auto right = operands.product(registers, MatrixModel(info, matrix_unit(arch)));
            const auto expect_other = [&](auto member) {
                InstructionInfo wrong = info;
                std::swap(member(wrong).lane[1], member(wrong).lane[2]);
                if (member(wrong).lane[1] == member(info).lane[1]) return;
                EXPECT_NE(operands.product(registers, MatrixModel(wrong, matrix_unit(arch))), right)
                    << arch << " " << to_string(name);
            };
            expect_other([](auto& row) -> auto& { return row.a_row; });
            expect_other([](auto& row) -> auto& { return row.b_col; });
            expect_other([](auto& row) -> auto& { return row.a_scale.outer; });
            expect_other([](auto& row) -> auto& { return row.b_scale.outer; });
        }
}

} // namespace
} // namespace fmha::hip_target::test
