// Every flow of a tensor: its poison, its filling, its comparison and its message.

#include "harness/data/geometry.hpp"
#include "harness/data/tensor_set.hpp"

#include <gmock/gmock.h>

namespace fmha::harness::test {
namespace {

/// Two rows of four numbers, eight apart, of which a kernel may touch the second.
TensorSpec toy(std::string name, Flow flow) {
    TensorLayout layout = array_layout(ElementType::int32, 2, 4);
    layout.row_stride = 8;
    layout.segment_elements = 16;
    const auto fill = [](GuardedTensor& tensor) {
        for (std::int64_t row = 0; row < 2; ++row)
            for (std::int64_t c = 0; c < 4; ++c)
                tensor.set_code(0, 0, row, c, static_cast<std::uint32_t>(10 * row + c));
    };
    const bool filled = flow == Flow::in || flow == Flow::in_out;
    return {std::move(name), flow, layout, filled ? fill : std::function<void(GuardedTensor&)>{},
            [](const RowVisit& visit) {
                visit({0, 0, 1, 4});
            }};
}

TensorSet toys() {
    return TensorSet({toy("table", Flow::in), toy("cache", Flow::in_out), toy("result", Flow::out),
                      toy("memory", Flow::scratch)});
}

/// The message after `write` was called on a refilled set.
template <class Write>
std::optional<std::string> told(Write write) {
    TensorSet set = toys();
    set.refill(Poison::nan);
    write(set);
    const auto stray = set.stray_write();
    EXPECT_EQ(set.stray_write(), stray) << "asking changed the contents";
    return stray;
}

TEST(TensorSet, TellsWhatWasWrittenBesideTheLogicalCells) {
    const auto writes = [](const char* name, std::int64_t row, std::int64_t c) {
        return told([=](TensorSet& set) { set.tensor(name).set_code(0, 0, row, c, 1); });
    };
    for (const char* name : {"cache", "result"}) {
        EXPECT_EQ(writes(name, 1, 3), std::nullopt);
        EXPECT_EQ(writes(name, 1, 4), std::string(name) + ": element 12 (between logical elements)");
        EXPECT_EQ(writes(name, 0, 2), std::string(name) + ": element 2 (between logical elements)");
        EXPECT_EQ(writes(name, 0, -1), std::string(name) + ": element -1 (guard before)");
        EXPECT_EQ(writes(name, 2, 1000), std::string(name) + ": element 1016 (guard after)");
    }
    EXPECT_EQ(writes("memory", 0, 2), std::nullopt) << "scratch is the kernel's own";
    EXPECT_EQ(writes("memory", 0, -1), "memory: element -1 (guard before)");
    EXPECT_EQ(writes("memory", 2, 0), "memory: element 16 (guard after)");
}

TEST(TensorSet, ReadingBackKeepsWhatKernelsWrote) {
    TensorSet set = toys();
    set.refill(Poison::nan);
    set.tensor("result").set_code(0, 0, 1, 2, 77);
    set.tensor("cache").set_code(0, 0, 1, 2, 78);
    EXPECT_EQ(set.stray_write(), std::nullopt);
    EXPECT_EQ(set.tensor("result").code(0, 0, 1, 2), 77U);
    EXPECT_EQ(set.tensor("cache").code(0, 0, 1, 2), 78U);
}

TEST(TensorSet, AnArrayIsAnInputLikeATensor) {
    TensorSet set = toys();
    set.refill(Poison::nan);
    const std::uint64_t before = set.input_checksum();
    set.tensor("cache").set_code(0, 0, 1, 1, 5);
    EXPECT_EQ(set.input_checksum(), before);
    set.tensor("table").set_code(0, 0, 0, 4, 5);
    EXPECT_NE(set.input_checksum(), before) << "padding of an array counts too";
}

TEST(TensorSet, RefillRestoresWhatIsUpdatedInPlace) {
    TensorSet set = toys();
    set.refill(Poison::nan);
    set.tensor("cache").set_code(0, 0, 1, 1, 5);
    set.refill(Poison::huge);
    EXPECT_EQ(set.tensor("cache").code(0, 0, 1, 1), 11U);
    EXPECT_EQ(set.tensor("cache").code(0, 0, 1, 5), poison_code(ElementType::int32, Poison::huge));
    EXPECT_EQ(set.tensor("result").code(0, 0, 1, 1), poison_code(ElementType::int32, Poison::huge));
    EXPECT_EQ(set.stray_write(), std::nullopt);
}

TEST(TensorSet, NamesWhatItHas) {
    TensorSet set = toys();
    EXPECT_TRUE(set.has("cache"));
    EXPECT_FALSE(set.has("q"));
    EXPECT_THROW(set.tensor("q"), Error);
    EXPECT_EQ(set.memory().size(), 4U);
}

} // namespace
} // namespace fmha::harness::test
