// The programs that families have.

#include "kernels/targets/with_program.hpp"

#include <gmock/gmock.h>

#include <string>

namespace fmha::targets {
namespace {

TEST(WithProgram, CallsTheFamilysOwnOrSaysThatThereIsNone) {
    int programs = 0;
    for (const auto& entry : EnumTable<KernelFamily>::names) {
        bool called = false, own = false;
        const auto none = with_program(entry.value, [&]<KernelFamily family>(kernels::Program<family>) {
            called = true;
            own = family == entry.value;
        });
        EXPECT_NE(called, none.has_value()) << entry.name;
        EXPECT_EQ(called, own) << entry.name;
        EXPECT_EQ(none ? none->reason() : "",
                  called ? "" : "there is no program for family " + std::string(entry.name));
        programs += called ? 1 : 0;
    }
    EXPECT_GE(programs, 1);
}

} // namespace
} // namespace fmha::targets
