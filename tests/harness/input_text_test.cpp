// Packed input, given to zlib in pieces of any size.

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cli/input_text.hpp"
#include "tests/harness/command_support.hpp"

#include <gmock/gmock.h>
#include <zlib.h>

namespace fmha::cli {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// One member of gzip.
std::string packed(const std::string& text) {
    z_stream stream{};
    constexpr int gzip_only = 16 + MAX_WBITS, memory = 8;
    EXPECT_EQ(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, gzip_only, memory, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(deflateBound(&stream, text.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(out.size() - stream.avail_out);
    deflateEnd(&stream);
    return out;
}

TEST(InputText, IsUnpackedInPieces) {
    const std::string first(200'000, 'a'), second = "b", both = packed(first) + packed(second);
    // As a file of more than 4 GiB is: zlib counts in 32 bits.
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, packed(first).size(), both.size()})
        EXPECT_EQ(unpacked(both, "file", piece), first + second) << piece;
    for (const std::size_t piece : {std::size_t{1}, both.size()})
        for (const std::string& damaged : {both.substr(0, both.size() - 1), both + "x"})
            EXPECT_THAT([&] { unpacked(damaged, "file", piece); },
                        ThrowsMessage<InputError>(HasSubstr("file: damaged gzip stream after 20000")))
                << piece;
}

// A megabyte of zeros is a thousand bytes.
TEST(InputText, IsNotUnpackedWithoutEnd) {
    const std::string small = packed(std::string(1'000'000, '0'));
    EXPECT_EQ(unpacked(small, "file", small.size(), 1'000'000).size(), 1'000'000U);
    EXPECT_THAT([&] { unpacked(small, "file", small.size(), 999'999); },
                ThrowsMessage<InputError>(
                    "file: unpacked: has more than 999999 bytes, the most that an input may have"));
}

TEST(InputText, IsUnpackedWhereItBeginsAsGzipDoes) {
    const test::Scratch folder;
    system::write_file(folder / "packed", packed("text"));
    system::write_file(folder / "plain", "text");
    EXPECT_EQ(input_text(folder / "packed"), "text");
    EXPECT_EQ(input_text(folder / "plain"), "text");
}

} // namespace
} // namespace fmha::cli
