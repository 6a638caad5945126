#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/system/program.hpp"
#include "dispatcher/system/sha256.hpp"
#include "dispatcher/system/streams.hpp"
#include "dispatcher/types/error.hpp"

#include <chrono>
#include <fstream>
#include <gmock/gmock.h>
#include <sstream>
#include <sys/stat.h>
#include <thread>

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
    for (const auto& write : {+[](const std::filesystem::path& path) { write_file(path, "x"); },
                              +[](const std::filesystem::path& path) { check_writable(path); }}) {
        EXPECT_THAT([&] { write("/proc/nothing/here"); },
                    testing::ThrowsMessage<InputError>(
                        "/proc/nothing/here: cannot be written: No such file or directory"));
        EXPECT_THAT([&] { write(folder.path()); }, testing::ThrowsMessage<InputError>(testing::HasSubstr(
                                                       "is a folder, not a file to write")));
    }
    EXPECT_THAT([&] { write_file("/dev/full", "x"); },
                testing::ThrowsMessage<InputError>("/dev/full: cannot be written: No space left on device"));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 0) << "a draft is left";
}

TEST(Files, WithoutAnEndAreNotRead) {
    std::ifstream zeros("/dev/zero", std::ios::binary);
    EXPECT_THAT([&] { read_stream(zeros, "zeros", 1'000'000); },
                testing::ThrowsMessage<InputError>(
                    "zeros: has more than 1000000 bytes, the most that an input may have"));
    std::istringstream whole(std::string(1'000'000, 'x'));
    EXPECT_EQ(read_stream(whole, "whole", 1'000'000), std::string(1'000'000, 'x'));
}

// Sparse files, which hold no memory. The first is refused before it is read.
TEST(Files, AboveALimitAreRefusedAndPipesAreRead) {
    const TemporaryDirectory folder;
    const auto large = folder.path() / "large", pipe = folder.path() / "pipe";
    write_file(large, "");
    std::filesystem::resize_file(large, (std::uint64_t{1} << 30U) + 1);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THAT([&] { read_file(large); },
                testing::ThrowsMessage<InputError>(
                    large.string() + ": has more than 1073741824 bytes, the most that an input may have"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(50));
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    const std::string text(1'000'000, 'x');
    std::jthread writer([&] { std::ofstream(pipe) << text; });
    EXPECT_EQ(read_file(pipe), text);
    EXPECT_EQ(read_file("/dev/null"), "");
}

TEST(Files, AreWrittenWithTheirFoldersAndThroughLinks) {
    const TemporaryDirectory folder;
    const auto file = folder.path() / "new" / "file", link = folder.path() / "link";
    check_writable(file);
    EXPECT_FALSE(std::filesystem::exists(file));
    write_file(file, "one");
    std::filesystem::create_symlink(file, link);
    write_file(link, "two");
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(read_file(file), "two");
    std::filesystem::remove(file);
    write_file(link, "three");
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(read_file(file), "three");
    std::filesystem::create_symlink("round", folder.path() / "round");
    EXPECT_THAT(
        [&] { write_file(folder.path() / "round", "x"); },
        testing::ThrowsMessage<InputError>(testing::HasSubstr("round: cannot be reached: too many links")));
    write_file("/dev/null", "x");
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(Files, AreFoundBehindChainsOfLinksToFilesThatAreNotThereYet) {
    const TemporaryDirectory folder;
    const auto there = folder.path() / "there";
    std::filesystem::create_directory(there);
    std::filesystem::create_symlink("there/second", folder.path() / "first");
    std::filesystem::create_symlink(folder.path() / "file", there / "second");
    EXPECT_EQ(behind_links(folder.path() / "first"), folder.path() / "file");
    EXPECT_EQ(behind_links(folder.path() / "file"), folder.path() / "file");
}

TEST(Program, SaysWhereItLiesAndWhatItHolds) {
    EXPECT_EQ(program_path().filename(), "system_test");
    const std::string bytes = program_bytes();
    EXPECT_EQ(bytes.substr(0, 4), "\x7f"
                                  "ELF");
    EXPECT_EQ(bytes.size(), std::filesystem::file_size(program_path()));
}

TEST(Sha256, IsTheStandardsOne) { // FIPS 180-4, the example "abc"
    EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, OfPiecesIsThatOfTheWholeAndStartsAnew) { // FIPS 180-4, the example of two blocks
    Sha256 hash;
    for (const char* piece : {"abcdbcdecdefdefgefghfghighij", "", "hijkijkljklmklmnlmnomnopnopq"})
        hash.add(piece);
    EXPECT_EQ(hash.finish(), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    hash.add("abc");
    EXPECT_EQ(hash.finish(), sha256("abc"));
}

} // namespace
} // namespace fmha::system
