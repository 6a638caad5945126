// .npy files: numpy's own are read, damaged ones are refused with a sentence that names the file.

#include "dispatcher/types/error.hpp"
#include "harness/npy/npy.hpp"
#include "tests/support/sentence_of.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace fmha::harness {
namespace {

using testing::HasSubstr;

std::filesystem::path scratch_file() {
    return std::filesystem::temp_directory_path() / fmt::format("fmha_npy_test_{}.npy", getpid());
}

class Npy : public testing::Test {
  protected:
    ~Npy() override { std::filesystem::remove(scratch_file()); }
};

std::filesystem::path with_bytes(const std::string& bytes) {
    std::ofstream(scratch_file(), std::ios::binary) << bytes;
    return scratch_file();
}

/// A version-1 file with this header dictionary and `data` bytes of zeros.
std::string file(const std::string& dictionary, std::size_t data, char major = 1) {
    std::string text("\x93NUMPY", 6);
    text += major;
    text += '\0';
    text += static_cast<char>(dictionary.size() & 0xFFU);
    text += static_cast<char>(dictionary.size() >> 8U);
    if (major > 1) text += std::string(2, '\0');
    return text + dictionary + std::string(data, '\0');
}

std::string header(const std::string& descr, const std::string& shape, const std::string& order = "False") {
    return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, order, shape);
}

std::string complaint(const std::filesystem::path& path) {
    return fmha::test::sentence_of<InputError>([&] { static_cast<void>(read_npy(path)); });
}

TEST_F(Npy, ReadsWhatNumpyWrites) {
    const NpyArray array = read_npy(with_bytes(file(header("<f4", "(2, 3)"), 24)));
    EXPECT_EQ(array.type, NpyType::float32);
    EXPECT_EQ(array.shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(array.bytes.size(), 24U);
    EXPECT_EQ(read_npy(with_bytes(file(header("|u1", "()"), 1))).elements(), 1);
    EXPECT_EQ(read_npy(with_bytes(file(header("<u2", "(5,)"), 10))).shape, (std::vector<std::int64_t>{5}));
    EXPECT_EQ(read_npy(with_bytes(file(header("<f8", "(0, 7)"), 0))).elements(), 0);
    EXPECT_EQ(read_npy(with_bytes(file(header("<f2", "(1,)"), 2, 2))).type, NpyType::float16);
}

TEST_F(Npy, RoundTrips) {
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {3}, {2, 3, 4, 5}, {0}}) {
        NpyArray array{NpyType::uint16, shape, {}};
        for (std::int64_t i = 0; i < 2 * array.elements(); ++i)
            array.bytes.push_back(static_cast<unsigned char>(i * 7));
        write_npy(scratch_file(), array);
        const NpyArray again = read_npy(scratch_file());
        EXPECT_EQ(again.type, array.type);
        EXPECT_EQ(again.shape, array.shape);
        EXPECT_EQ(again.bytes, array.bytes);
        // Data start at a multiple of 64, as numpy's do.
        EXPECT_EQ((std::filesystem::file_size(scratch_file()) - array.bytes.size()) % 64, 0U);
    }
}

TEST_F(Npy, DamagedFilesAreRefused) {
    struct Row {
        std::string bytes, sentence;
    };
    const std::vector<Row> table{
        {"", "is not a .npy file"},
        {"NUMPY", "is not a .npy file"},
        {"PK\x03\x04 a zip archive, as .npz files are", "is not a .npy file"},
        {file(header("<f4", "(2,)"), 8, 9), "version 9 is not known"},
        {std::string("\x93NUMPY\x01", 7) + std::string(1, '\0'), "truncated inside its header"},
        {file(header("<f4", "(2,)"), 8).substr(0, 30), "truncated inside its header"},
        {std::string("\x93NUMPY\x02", 7) + std::string("\0\xff\xff\xff\xff", 5), "is damaged"},
        {file(header("<f4", "(2, 3)"), 23), "needs 24 bytes of data, the file is truncated to 23"},
        {file(header("<f4", "(2, 3)"), 25), "needs 24 bytes of data, the file has 25"},
        {file(header("<f4", "(2, 3)", "True"), 24), "Fortran order"},
        {file(header(">f4", "(2, 3)"), 24), "big endian"},
        {file(header("<i8", "(2, 3)"), 48), "dtype '<i8' is not exchanged"},
        {file(header("<c8", "(2, 3)"), 48), "dtype '<c8' is not exchanged"},
        {file(header("|O", "(2, 3)"), 48), "dtype '|O' is not exchanged"},
        {file(header("|b1", "(2, 3)"), 6), "dtype '|b1' is not exchanged"},
        {file(header("<f4", "(2, -3)"), 24), "negative extent -3"},
        {file(header("<f4", "(1099511627776, 1099511627776)"), 0), "does not fit into 64 bits"},
        {file(header("<f4", "(9223372036854775807,)"), 0),
         "the shape has the extent 9223372036854775807; allowed: up to 18 digits"},
        {file(header("<f4", "(1099511627776,)"), 0), "truncated to 0"},
        {file(header("<f4", "[2, 3]"), 24), "expected '('"},
        {file(header("<f4", "(2, x)"), 24), "not a tuple of integers"},
        {file(header("<f4", "(2, 3"), 24), "not a tuple of integers"},
        {file("{'descr': '<f4', 'shape': (2,)}", 8), "lacks descr, fortran_order or shape"},
        {file("{'descr': '<f4', 'descr': '<f4'}", 8), "repeated header key 'descr'"},
        {file("{'descr': '<f4', 'colour': 'red'}", 8), "unknown or repeated header key 'colour'"},
        {file("{'descr: <f4}", 8), "a string does not end"},
        {file("descr", 8), "expected '{'"},
        {file("{'descr': [('a', '<f4'), ('b', '<i2')], 'fortran_order': False, 'shape': (2,), }", 12),
         "the dtype has fields (a structured array); allowed: one number an element"},
        {file(header("<f4", "(2,)") + "; import os", 8), "text after the header"},
    };
    for (const auto& row : table) {
        const std::string said = complaint(with_bytes(row.bytes));
        EXPECT_THAT(said, HasSubstr(row.sentence));
        EXPECT_THAT(said, HasSubstr(scratch_file().string()));
    }
}

TEST_F(Npy, MissingFilesAndFolders) {
    EXPECT_THAT(complaint("/nonexistent/q.npy"), HasSubstr("/nonexistent/q.npy: cannot be opened"));
    EXPECT_THAT(complaint(std::filesystem::temp_directory_path()), HasSubstr("is a folder"));
    EXPECT_THROW(write_npy("/nonexistent/q.npy", {}), InputError);
    // Opening it would wait for a writer.
    std::filesystem::remove(scratch_file());
    ASSERT_EQ(mkfifo(scratch_file().c_str(), 0600), 0);
    EXPECT_THAT(complaint(scratch_file()), HasSubstr("is a pipe; allowed: a .npy file"));
    std::filesystem::remove(scratch_file());
}

} // namespace
} // namespace fmha::harness
