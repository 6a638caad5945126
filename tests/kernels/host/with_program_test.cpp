// The programs that families have.

#include "kernels/targets/with_program.hpp"

#include <gmock/gmock.h>

namespace fmha::targets {
namespace {

TEST(WithProgram, CallsTheFamilysOwn) {
    for (const auto& entry : EnumTable<KernelFamily>::names)
        EXPECT_EQ(
            with_program(entry.value, []<KernelFamily family>(kernels::Program<family>) { return family; }),
            entry.value)
            << entry.name;
}

TEST(WithProgram, RefusesANumberThatIsNoFamily) {
    EXPECT_THROW(with_program(static_cast<KernelFamily>(200), [](auto) {}), InputError);
}

} // namespace
} // namespace fmha::targets
