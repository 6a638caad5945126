// The facts read from the ELF header of a code object, with headers as the compilers write them.

#include "kernels/loader/code_object.hpp"
#include "tests/loader/fake_runtime.hpp"

#include <elf.h>
#include <gmock/gmock.h>

#include <cstring>

namespace fmha::loader::test {
namespace {

struct Row {
    std::uint16_t machine;
    unsigned char abi;
    std::uint32_t flags;
    std::string_view said;
};

std::string header(const Row& row) {
    Elf64_Ehdr elf{};
    std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
    elf.e_ident[EI_CLASS] = ELFCLASS64;
    elf.e_ident[EI_ABIVERSION] = row.abi;
    elf.e_machine = row.machine;
    elf.e_flags = row.flags;
    return {reinterpret_cast<const char*>(&elf), sizeof elf};
}

// Flags and ABI versions as clang 22 and nvcc 13 write them, and as nvcc 12 did.
TEST(CodeObject, IsDescribed) {
    for (const Row& row :
         {Row{224, 2, 0x53F, "code object version 4 for gfx90a"},
          Row{224, 3, 0x54C, "code object version 5 for gfx942"},
          Row{224, 4, 0x54F, "code object version 6 for gfx950"},
          Row{224, 4, 0x041, "code object version 6 for gfx1100"},
          Row{224, 4, 0x04A, "code object version 6 for gfx1151"},
          Row{224, 4, 0x04E, "code object version 6 for gfx1201"},
          Row{224, 4, 0x0FE, "code object version 6 for an unknown architecture"},
          Row{190, 8, 0x06005A04, "cubin for sm_90"}, Row{190, 8, 0x06006402, "cubin for sm_100"},
          Row{190, 7, 0x005A055A, "cubin for sm_90"}, Row{62, 0, 0, "not a code object"}})
        EXPECT_EQ(describe_code_object(header(row)), row.said);
    EXPECT_EQ(describe_code_object(""), "not a code object");
    EXPECT_EQ(describe_code_object(std::string(200, 'x')), "not a code object");
}

TEST(CodeObject, AdviceNamesTheReleaseThatReadsIt) {
    EXPECT_THAT(code_object_advice(fake_image("gfx942", {}, 6)), testing::HasSubstr("ROCm 6.3"));
    EXPECT_THAT(code_object_advice(fake_image("gfx942", {}, 5)), testing::HasSubstr("ROCm 5.4"));
    EXPECT_EQ(code_object_advice("hello"), "");
}

TEST(CodeObject, AnUnknownMachineIsLeftToTheRuntime) {
    EXPECT_NO_THROW(check_code_object(header({224, 4, 0x0FE, ""}), "gfx9999", "k.hsaco"));
}

} // namespace
} // namespace fmha::loader::test
