#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/system/sha256.hpp"
#include "dispatcher/types/error.hpp"

#include <gmock/gmock.h>

namespace fmha::system {
namespace {

TEST(Files, AreUpdatedOnlyWhenTheirContentDiffers) {
    const TemporaryDirectory folder;
    const auto path = folder.path() / "a";
    EXPECT_TRUE(update_file(path, "one"));
    EXPECT_FALSE(update_file(path, "one"));
    EXPECT_TRUE(update_file(path, "two"));
    EXPECT_EQ(read_file(path), "two");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "a draft is left";
}

TEST(Files, SayWhatCannotBeReadOrWritten) {
    const TemporaryDirectory folder;
    EXPECT_THAT([&] { read_file(folder.path() / "none"); },
                testing::ThrowsMessage<InputError>(testing::HasSubstr("none: No such file")));
    EXPECT_THAT([&] { read_file(folder.path()); },
                testing::ThrowsMessage<InputError>(testing::HasSubstr("is a folder")));
    EXPECT_THAT([&] { write_file(folder.path() / "no" / "a", "x"); },
                testing::ThrowsMessage<InputError>(testing::HasSubstr("cannot be written")));
}

TEST(Sha256, IsTheStandardsOne) { // FIPS 180-4, the example "abc"
    EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

} // namespace
} // namespace fmha::system
