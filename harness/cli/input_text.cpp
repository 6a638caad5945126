#include "harness/cli/input_text.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <iostream>
#include <memory>

namespace fmha::cli {
namespace {

std::string raw_text(const std::string& path) {
    if (path == "-") return system::read_stream(std::cin, "-");
    return system::read_file(path);
}

} // namespace

std::string unpacked(std::string_view packed, const std::string& path, std::size_t piece,
                     std::uint64_t most) {
    z_stream stream{};
    constexpr int gzip_only = 16 + MAX_WBITS;
    if (inflateInit2(&stream, gzip_only) != Z_OK) throw InputError(path + ": cannot start unpacking");
    const std::unique_ptr<z_stream, int (*)(z_stream*)> closer(&stream, inflateEnd);
    std::string text;
    std::array<char, 1 << 16> block{};
    std::string_view rest = packed; // that zlib has not seen, which counts in 32 bits
    while (true) {
        if (stream.avail_in == 0) {
            const std::string_view next = rest.substr(0, piece);
            stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next.data()));
            stream.avail_in = static_cast<uInt>(next.size());
            rest.remove_prefix(next.size());
        }
        stream.next_out = reinterpret_cast<Bytef*>(block.data());
        stream.avail_out = static_cast<uInt>(block.size());
        const int status = inflate(&stream, Z_NO_FLUSH);
        if (status != Z_OK && status != Z_STREAM_END)
            throw InputError(fmt::format("{}: damaged gzip stream after {} bytes", path, text.size()));
        const std::size_t more = block.size() - stream.avail_out;
        if (text.size() + more > most) system::refuse_size(path + ": unpacked", most);
        text.append(block.data(), more);
        if (status != Z_STREAM_END) continue;
        // Files may be made of several gzip members one after the other.
        if (stream.avail_in == 0 && rest.empty()) return text;
        inflateReset(&stream);
    }
}

std::string input_text(const std::string& path) {
    std::string text = raw_text(path);
    const bool gzip = text.size() > 2 && text[0] == '\x1f' && text[1] == '\x8b';
    return gzip ? unpacked(text, path) : text;
}

} // namespace fmha::cli
