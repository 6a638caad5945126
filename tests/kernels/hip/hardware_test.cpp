// The architecture files and the instruction table say the same about every matrix unit.

#include "dispatcher/types/element.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/targets/hip/instruction_names.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

namespace fmha::hip_target::test {
namespace {

/// Shape and operand type; 8-bit types by their OCP names, as the table has them.
using Row = std::tuple<int, int, int, ElementType>;

std::set<Row> of_file(const arch::Hardware& hardware) {
    std::set<Row> rows;
    for (const arch::MatrixInstruction& instruction : hardware.matrix_instructions) {
        for (const auto& type : EnumTable<DataType>::names) {
            // That the deepest instruction for scaled operands takes others as well is a fact of the chip that no program uses.
            const bool scaled = type.value == DataType::mxfp8 || type.value == DataType::mxfp4;
            if (instruction.k >= 128 && !scaled) continue;
            if ((instruction.data_types >> static_cast<unsigned>(type.value) & 1U) != 0)
                rows.emplace(instruction.m, instruction.n, instruction.k,
                             element_types(type.value, Fp8Flavour::ocp).k);
        }
    }
    return rows;
}

std::set<Row> of_table(MatrixUnit unit) {
    std::set<Row> rows;
    for (const auto& name : EnumTable<MatrixInstruction>::names) {
        if (!has_instruction(unit, name.value)) continue;
        const InstructionInfo info = instruction_info(name.value);
        rows.emplace(info.m, info.n, info.k, info.operand);
    }
    return rows;
}

/// wgmma: 64 rows, 32 bytes of k, and a multiple of 8 columns up to 256 (PTX ISA, 9.7.15).
bool is_group_product(const Row& row) {
    const auto& [m, n, k, type] = row;
    return m == 64 && element_bytes(type, k) == 32 && n % 8 == 0 && n <= 256;
}

std::string text(const std::set<Row>& rows) {
    std::string out;
    for (const auto& [m, n, k, type] : rows)
        out += std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " " +
               std::string(to_string(type)) + "; ";
    return out;
}

TEST(Hardware, FilesAndTableNameTheSameInstructions) {
    const auto archs = arch::ArchSet::built_in();
    for (const arch::ArchTables& arch : archs.all()) {
        const MatrixUnit unit = matrix_unit(arch.name().view());
        ASSERT_NE(unit, MatrixUnit::none) << arch.name().view();
        std::set<Row> listed = of_file(arch.hardware());
        // Products of warp groups are no rows of the table, which says where lanes hold elements.
        const auto groups = std::erase_if(listed, [](const Row& row) { return is_group_product(row); });
        EXPECT_EQ(groups > 0, unit == MatrixUnit::nvidia) << arch.name().view();
        EXPECT_EQ(text(listed), text(of_table(unit))) << arch.name().view();
    }
}

TEST(Hardware, FilesAndTableAgreeOnTheWave) {
    const auto archs = arch::ArchSet::built_in();
    for (const arch::ArchTables& arch : archs.all())
        for (const auto& name : EnumTable<MatrixInstruction>::names)
            if (has_instruction(matrix_unit(arch.name().view()), name.value)) {
                EXPECT_EQ(instruction_info(name.value).wave_size, arch.hardware().wave_size)
                    << arch.name().view() << " " << name.name;
            }
}

} // namespace
} // namespace fmha::hip_target::test
