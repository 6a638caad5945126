// How much of a sum a matrix instruction loses, measured with random mantissas and compared with the accumulator roundoff
// u_a that kernels declare (tolerances B.1): on a device where there is one, on the emulated machine's model always.

#include "kernels/generator/resources.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "tests/hip_target/device_probe.hpp"
#include "tests/hip_target/instructions/multiplication.hpp"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fmha::hip_target::test {
namespace {

constexpr const char* architectures[] = {"gfx90a",  "gfx942",  "gfx950", "gfx1100",
                                         "gfx1151", "gfx1201", "sm_90"};

/// u_a of the kernels that multiply by this instruction.
double declared(std::string_view arch, const InstructionInfo& info) {
    KernelConfig config;
    config.arch = arch;
    const bool scaled = info.scale_block != 0;
    switch (info.operand) {
    case ElementType::fp32:
        config.signature.data_type = DataType::fp32;
        break;
    case ElementType::bf16:
        config.signature.data_type = DataType::bf16;
        break;
    case ElementType::fp8_ocp:
        config.signature.data_type = scaled ? DataType::mxfp8 : DataType::fp8;
        break;
    case ElementType::bf8_ocp:
        config.signature.data_type = DataType::bf8;
        break;
    case ElementType::fp4:
        config.signature.data_type = DataType::mxfp4;
        break;
    default:
        config.signature.data_type = DataType::fp16;
    }
    return numerics_of(config).u_a;
}

/// Operands with all the mantissa bits that every unit takes, products between 2^-8 and 4, and accumulators that are larger
/// by up to 2^14, so that the last bits of small terms are at stake.
Draw random_mantissas(ElementType type) {
    const auto value = [](std::mt19937& random, int least, int most, int mantissa_bits) {
        const int exponent = std::uniform_int_distribution(least, most)(random);
        const int mantissa = std::uniform_int_distribution(0, (1 << mantissa_bits) - 1)(random);
        const bool negative = std::uniform_int_distribution(0, 1)(random) == 1;
        const float size =
            std::ldexp(1.0F + std::ldexp(static_cast<float>(mantissa), -mantissa_bits), exponent);
        return negative ? -size : size;
    };
    const bool narrow = element_bits(type) == 4;
    // TF32 takes ten bits of a mantissa, other types round to their own number.
    return {[=](std::mt19937& random) { return value(random, narrow ? -1 : -4, narrow ? 2 : 0, 10); },
            [=](std::mt19937& random) { return value(random, -8, 14, 23); }};
}

using Multiply = std::function<std::vector<float>(const Registers&)>;

/// The largest |error| / (n · Σ|terms|) of the n = k + 1 terms of a sum: the least u_a whose growth (B.1) bounds them all.
double measured(const Operands& operands, const Multiply& multiply, int multiplications) {
    std::mt19937 random(20261122); // NOLINT(cert-msc51-cpp): the same in every run
    const Draw values = random_mantissas(operands.type());
    double worst = 0.0;
    for (int n = 0; n < multiplications; ++n) {
        const Registers registers = operands.draw(random, values);
        const auto terms = operands.terms(registers);
        const std::vector<float> results = multiply(registers);
        for (std::size_t i = 0; i < terms.size(); ++i) {
            double sum = 0.0, size = 0.0;
            for (const double term : terms[i]) {
                sum += term;
                size += std::abs(term);
            }
            const double error = std::abs(static_cast<double>(results[i]) - sum);
            worst = std::max(worst, error / (static_cast<double>(terms[i].size()) * size));
        }
    }
    return worst;
}

void tell(std::string_view whose, MatrixInstruction name, double found, double declared) {
    fmt::print("{}: {} loses at most 2^{:.1f}, declared 2^{:.0f}\n", whose, to_string(name), std::log2(found),
               std::log2(declared));
}

TEST(Accumulation, OfTheModelIsAsPreciseAsKernelsDeclare) {
    int instructions = 0;
    for (const char* arch : architectures)
        for (const MatrixInstruction name : instructions_of(arch)) {
            const InstructionInfo info = instruction_info(name);
            const Operands operands(info, matrix_unit(arch));
            const MatrixModel model(info, matrix_unit(arch));
            const double found = measured(
                operands, [&](const Registers& registers) { return operands.product(registers, model); }, 4);
            EXPECT_LE(found, declared(arch, info)) << arch << " " << to_string(name);
            EXPECT_GT(found, 0.0) << "nothing was rounded: " << arch << " " << to_string(name);
            tell(fmt::format("the model of {}", arch), name, found, declared(arch, info));
            ++instructions;
        }
    EXPECT_GT(instructions, 40);
}

/// Terms are shifted to the largest one's exponent and cut off after `bits` binary places, as tensor cores do.
Multiply truncating(const Operands& operands, int bits) {
    return [&operands, bits](const Registers& registers) {
        std::vector<float> results;
        for (const std::vector<double>& terms : operands.terms(registers)) {
            double largest = 0.0;
            for (const double term : terms) largest = std::max(largest, std::abs(term));
            const double last = std::ldexp(1.0, std::ilogb(largest) - bits);
            double sum = 0.0;
            for (const double term : terms) sum += std::trunc(term / last) * last;
            results.push_back(static_cast<float>(sum));
        }
        return results;
    };
}

TEST(Accumulation, OfFewerBitsIsNoticed) {
    for (const char* arch : architectures)
        for (const MatrixInstruction name : instructions_of(arch)) {
            const InstructionInfo info = instruction_info(name);
            const Operands operands(info, matrix_unit(arch));
            const double found = measured(operands, truncating(operands, 13), 4);
            EXPECT_GT(found, 8 * declared(arch, info)) << arch << " " << to_string(name);
            EXPECT_LE(found, 0x1p-13) << arch << " " << to_string(name);
            // Sums that are cut off after fp32's own places have the error that `truncating` kernels declare.
            EXPECT_LE(measured(operands, truncating(operands, 23), 4), 0x1p-23)
                << arch << " " << to_string(name);
        }
}

/// fp8 on Hopper is declared as precise as fp16 because the compiler makes it fp16: mma.sync of 8 bits is no instruction of
/// sm_90, it is a conversion and two HMMA. The unit of 8 bits, whose sums have fewer bits, is reached by wgmma alone.
TEST(Accumulation, OfEightBitsOnHopperIsThatOfSixteen) {
    const auto image = compiled_probe(probe_source, "sm_90", ProbeList("sm_90").folder());
    if (!image) GTEST_SKIP() << "no compiler for sm_90";
    // Registers and stack are of no interest here, but a reading without them is refused.
    std::string messages;
    for (const MatrixInstruction name : instructions_of("sm_90"))
        messages += fmt::format("ptxas info    : Compiling entry function '{0}' for 'sm_90a'\n"
                                "ptxas info    : Function properties for {0}\n"
                                "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                                "ptxas info    : Used 32 registers\n",
                                probe_symbol(name));
    const auto code = generator::nvidia_resources(messages, *image, "the probe");
    for (const MatrixInstruction name : instructions_of("sm_90")) {
        const int k = instruction_info(name).k;
        const std::int64_t multiplications = element_bits(instruction_info(name).operand) == 8 ? k / 16 : 1;
        EXPECT_THAT(code.at(probe_symbol(name)).matrix_instructions,
                    testing::ElementsAre(testing::Pair("HMMA", multiplications)))
            << to_string(name);
    }
}

TEST(Accumulation, OfTheDeviceIsAsPreciseAsKernelsDeclare) {
    const DeviceWithProbe with = open_device();
    if (!with.module) GTEST_SKIP() << with.why_none;
    const std::string& arch = with.device->properties().arch;
    for (const MatrixInstruction name : instructions_of(arch)) {
        const InstructionInfo info = instruction_info(name);
        const double found = measured(
            Operands(info, matrix_unit(arch)),
            [&](const Registers& registers) {
                return on_device(*with.device, *with.module, info, registers);
            },
            64);
        EXPECT_LE(found, declared(arch, info)) << with.device->text() << ", " << to_string(name);
        tell(with.device->text(), name, found, declared(arch, info));
    }
}

} // namespace
} // namespace fmha::hip_target::test
