// The matrix-instruction table against the hardware: every instruction of this machine's GPU multiplies random operands,
// and gives bit for bit what the model of its row gives. The operands are such that every sum is exact.

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "kernels/loader/code_object.hpp"
#include "kernels/loader/device.hpp"
#include "kernels/loader/plugin.hpp"
#include "kernels/programs/formats.hpp"
#include "kernels/targets/hip/emulated/matrix_model.hpp"
#include "tests/hip_target/device_probe.hpp"
#include "tests/hip_target/instructions/probe_args.hpp"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include <map>
#include <random>

namespace fmha::hip_target::test {
namespace {

const std::filesystem::path probe = "tests/hip_target/instructions/probe.hip";

std::vector<MatrixInstruction> instructions_of(std::string_view arch) {
    std::vector<MatrixInstruction> names;
    for (int i = 1; i < matrix_instructions; ++i)
        if (const auto name = static_cast<MatrixInstruction>(i); has_instruction(matrix_unit(arch), name))
            names.push_back(name);
    return names;
}

/// A folder with the probe's list of instructions.
class ProbeList {
  public:
    explicit ProbeList(std::string_view arch) {
        std::string lines;
        for (const MatrixInstruction name : instructions_of(arch))
            lines += fmt::format("PROBE({})\n", to_string(name));
        system::write_file(folder_.path() / "probes.h", lines);
    }
    const std::filesystem::path& folder() const { return folder_.path(); }

  private:
    system::TemporaryDirectory folder_;
};

/// The registers of a wave before a multiplication.
struct Registers {
    std::vector<std::uint32_t> a, b;
    std::vector<float> c;
};

class Operands {
  public:
    Operands(const InstructionInfo& info, MatrixUnit unit)
        : info_(info),
          type_(info.operand == ElementType::fp8_ocp && unit == MatrixUnit::cdna3   ? ElementType::fp8_fnuz
                : info.operand == ElementType::bf8_ocp && unit == MatrixUnit::cdna3 ? ElementType::bf8_fnuz
                                                                                    : info.operand) {}

    /// Words of one operand in a lane, with its scale.
    int words(int elements) const {
        return elements * element_bits(type_) / 32 + (info_.scale_block != 0 ? 1 : 0);
    }

    /// Elements are small whole numbers that every format has, or halves of 4 bits, scales near 1.
    Registers draw(std::mt19937& random) const {
        std::map<std::pair<int, int>, std::uint32_t> a, b; // one code an element, whoever holds copies of it
        Registers out;
        for (int lane = 0; lane < info_.wave_size; ++lane) {
            fill(out.a, info_.a_elements, random, [&](int e) -> std::uint32_t& {
                return a[{info_.a_row.at(lane, e), info_.a_k.at(lane, e)}];
            });
            fill(out.b, info_.b_elements, random, [&](int e) -> std::uint32_t& {
                return b[{info_.b_k.at(lane, e), info_.b_col.at(lane, e)}];
            });
            for (int r = 0; r < info_.c_elements; ++r)
                out.c.push_back(static_cast<float>(std::uniform_int_distribution(-100, 100)(random)));
        }
        return out;
    }

    /// What the model makes of them.
    std::vector<float> product(const Registers& registers, const MatrixModel& model) const {
        std::vector<float> c = registers.c;
        model.multiply({c.data(), info_.c_elements}, {registers.a.data(), words(info_.a_elements)},
                       {registers.b.data(), words(info_.b_elements)});
        return c;
    }

  private:
    template <class CodeOf>
    void fill(std::vector<std::uint32_t>& words, int elements, std::mt19937& random, CodeOf code_of) const {
        const int bits = element_bits(type_), per_word = 32 / bits;
        for (int e = 0; e < elements; ++e) {
            std::uint32_t& code = code_of(e);
            if (code == 0) code = kernels::encode(value(random), type_);
            if (e % per_word == 0) words.push_back(0);
            words.back() |= code << static_cast<unsigned>(e % per_word * bits);
        }
        if (info_.scale_block != 0)
            words.push_back(static_cast<std::uint32_t>(std::uniform_int_distribution(126, 128)(random)));
    }
    float value(std::mt19937& random) const {
        const int whole = std::uniform_int_distribution(1, 4)(random);
        const bool negative = std::uniform_int_distribution(0, 1)(random) == 1;
        return static_cast<float>(negative ? -whole : whole) / (element_bits(type_) == 4 ? 2.0F : 1.0F);
    }

    InstructionInfo info_;
    ElementType type_;
};

class InstructionsProbe : public testing::TestWithParam<const char*> {};

TEST_P(InstructionsProbe, Compiles) {
    const std::string arch = GetParam();
    const std::optional<std::string> image = compiled_probe(probe, arch, ProbeList(arch).folder());
    if (!image) GTEST_SKIP() << "no compiler for " << arch;
    EXPECT_NO_THROW(loader::check_code_object(*image, arch, "the probe"));
    for (const MatrixInstruction name : instructions_of(arch))
        EXPECT_NE(image->find(fmt::format("multiply_{}", to_string(name))), std::string::npos)
            << to_string(name);
    keep_object("instructions", arch, *image);
}

INSTANTIATE_TEST_SUITE_P(Architectures, InstructionsProbe,
                         testing::Values("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90"),
                         [](const auto& arch) { return std::string(arch.param); });

/// Runs one multiplication on the device.
std::vector<float> on_device(const loader::Device& device, const loader::Module& module,
                             const InstructionInfo& info, const Registers& registers) {
    const loader::DeviceStream stream(device);
    const auto bytes = [](const auto& values) { return values.size() * sizeof(values[0]); };
    loader::DeviceBuffer a(device, bytes(registers.a)), b(device, bytes(registers.b)),
        c(device, bytes(registers.c));
    a.upload(stream, registers.a.data(), a.bytes());
    b.upload(stream, registers.b.data(), b.bytes());
    c.upload(stream, registers.c.data(), c.bytes());
    MultiplyArgs args{reinterpret_cast<const std::uint32_t*>(a.data()),
                      reinterpret_cast<const std::uint32_t*>(b.data()), reinterpret_cast<float*>(c.data())};
    module.function(fmt::format("multiply_{}", to_string(info.instruction)))
        .launch({.blocks = 1, .threads = static_cast<std::uint32_t>(info.wave_size)}, &args, stream.handle());
    std::vector<float> result(registers.c.size());
    c.download(stream, result.data(), c.bytes());
    stream.synchronise();
    return result;
}

TEST(DeviceInstructions, AgreeWithTheirRowsOfTheTable) {
    loader::DeviceRuntime* runtime = nullptr;
    try {
        runtime = &loader::open_runtime(loader::plugin_folders());
    } catch (const DeviceError& error) {
        GTEST_SKIP() << error.what();
    }
    const loader::Device device(*runtime, 0);
    const std::string& arch = device.properties().arch;
    const std::optional<std::string> image =
        probe_for_device("instructions", probe, arch, ProbeList(arch).folder());
    if (!image) GTEST_SKIP() << device.text() << ": no compiler for " << arch;
    const loader::Module module(device, *image, "the probe");
    std::mt19937 random(20261121); // NOLINT(cert-msc51-cpp): the same in every run
    for (const MatrixInstruction name : instructions_of(arch)) {
        const InstructionInfo info = instruction_info(name);
        const MatrixModel model(info, matrix_unit(arch));
        const Operands operands(info, matrix_unit(arch));
        for (int n = 0; n < 8; ++n) {
            const Registers registers = operands.draw(random);
            ASSERT_EQ(on_device(device, module, info, registers), operands.product(registers, model))
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
            const Registers registers = operands.draw(random);
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
