// Guards on a machine with larger pages than those of x86. A program of its own, because it replaces sysconf.

#include "harness/data/guarded_tensor.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

namespace {
constexpr std::int64_t large_page = 65536;
} // namespace

extern "C" long sysconf(int name) noexcept {
    // Nothing else of the system is asked for here.
    return name == _SC_PAGESIZE ? large_page : -1;
}

namespace fmha::harness {
namespace {

TEST(GuardedTensor, HasGuardsOfWholePages) {
    TensorLayout layout;
    layout.type = ElementType::fp16;
    layout.segment_elements = layout.columns = 100;
    GuardedTensor tensor(layout);
    tensor.poison(Poison::nan);
    const auto memory = tensor.memory();
    ASSERT_EQ(memory.size(), 1U);
    EXPECT_EQ(memory.front().size(), static_cast<std::size_t>(3 * large_page));
    EXPECT_EQ(static_cast<const unsigned char*>(tensor.view().data) - memory.front().data(), large_page);
    EXPECT_FALSE(tensor.first_stray());
}

} // namespace
} // namespace fmha::harness
