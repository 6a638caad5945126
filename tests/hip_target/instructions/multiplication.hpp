#pragma once

#include "dispatcher/system/process.hpp"
#include "kernels/loader/device.hpp"
#include "kernels/targets/hip/emulated/matrix_model.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Single multiplications by matrix instructions: their operands as registers, the model's product and a device's.
namespace fmha::hip_target::test {

/// The kernels of `multiplication.hpp`'s device side, below the source tree.
inline const std::filesystem::path probe_source = "tests/hip_target/instructions/probe.hip";

std::vector<MatrixInstruction> instructions_of(std::string_view arch);

/// "multiply_wmma_gfx12_16x16x16_f16", the probe's kernel for an instruction.
std::string probe_symbol(MatrixInstruction name);

/// A folder with the probe's list of instructions.
class ProbeList {
  public:
    explicit ProbeList(std::string_view arch);
    const std::filesystem::path& folder() const { return folder_.path(); }

  private:
    system::TemporaryDirectory folder_;
};

/// The registers of a wave before a multiplication.
struct Registers {
    std::vector<std::uint32_t> a, b;
    std::vector<float> c;
};

/// Draws the value of an element of A or B, which is rounded to the operands' type, and one of C.
struct Draw {
    std::function<float(std::mt19937&)> operand, accumulator;
};

/// The operands of one instruction of a unit.
class Operands {
  public:
    Operands(const InstructionInfo& info, MatrixUnit unit);

    const InstructionInfo& info() const { return info_; }
    /// Of A and B, in the unit's flavour.
    ElementType type() const { return type_; }

    /// Scales are near 1.
    Registers draw(std::mt19937& random, const Draw& values) const;
    /// Small whole numbers that every format has, or halves of 4 bits: every sum is exact.
    Registers draw_whole(std::mt19937& random) const;

    /// The result of the model.
    std::vector<float> product(const Registers& registers, const MatrixModel& model) const;

    /// The terms whose sum is an element of C, the old one first, in the order of C's registers: exact in binary64.
    std::vector<std::vector<double>> terms(const Registers& registers) const;

  private:
    /// Words of one operand in a lane, with its scale.
    int words(int elements) const;
    double value_of(const std::vector<std::uint32_t>& registers, int elements, int lane, int element) const;

    InstructionInfo info_;
    ElementType type_;
};

/// One multiplication on a device.
std::vector<float> on_device(const loader::Device& device, const loader::Module& module,
                             const InstructionInfo& info, const Registers& registers);

/// The device of this machine and its probe, or the reason why there is none.
struct DeviceWithProbe {
    std::optional<loader::Device> device;
    std::optional<loader::Module> module;
    std::string why_none;
};
DeviceWithProbe open_device();

} // namespace fmha::hip_target::test
