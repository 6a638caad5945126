// Guards on a machine with larger pages than those of x86. A program of its own, because it replaces sysconf.

#include "harness/data/guarded_tensor.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

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

TEST(GuardedTensor, BeginsBehindAPageWhereItIsTold) {
    TensorLayout layout;
    layout.type = ElementType::fp32;
    layout.segment_elements = layout.columns = 100;
    layout.lead = 112;
    GuardedTensor tensor(layout);
    tensor.poison(Poison::nan);
    const auto memory = tensor.memory();
    ASSERT_EQ(memory.size(), 1U);
    auto* const data = static_cast<unsigned char*>(tensor.view().data);
    EXPECT_EQ(data - memory.front().data(), large_page + 112);
    EXPECT_GE(memory.front().data() + memory.front().size() - (data + 400), large_page);
    for (const auto& [at, where] : {std::pair{-1, "guard before"}, std::pair{400, "guard after"}}) {
        EXPECT_FALSE(tensor.first_stray());
        const unsigned char kept = data[at];
        data[at] ^= 1U;
        ASSERT_TRUE(tensor.first_stray_in_guards());
        EXPECT_EQ(tensor.first_stray_in_guards()->where, where);
        data[at] = kept;
    }
}

} // namespace
} // namespace fmha::harness
