#include "harness/npy/npy.hpp"

#include "dispatcher/types/error.hpp"

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <string_view>

namespace fmha::harness {
namespace {

struct TypeRow {
    NpyType type;
    int bytes;
    const char* name;
    const char* descr;
};
constexpr std::array<TypeRow, 6> types{{{NpyType::float16, 2, "float16", "<f2"},
                                        {NpyType::float32, 4, "float32", "<f4"},
                                        {NpyType::float64, 8, "float64", "<f8"},
                                        {NpyType::uint8, 1, "uint8", "|u1"},
                                        {NpyType::uint16, 2, "uint16", "<u2"},
                                        {NpyType::int32, 4, "int32", "<i4"}}};

const TypeRow& row_of(NpyType type) {
    return types[static_cast<std::size_t>(type)];
}

constexpr std::string_view magic{"\x93NUMPY", 6};
/// Nobody's header is larger; a larger one is a damaged length.
constexpr std::uint32_t largest_header = 1U << 20U;

/// Reads the dictionary literal of a header in the form that numpy writes, nothing of Python beyond it.
class HeaderParser {
  public:
    HeaderParser(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {}

    NpyArray parse() {
        NpyArray array;
        bool has_descr = false, has_order = false, has_shape = false;
        expect('{');
        while (!accept('}')) {
            const std::string key = quoted();
            expect(':');
            if (key == "descr" && !has_descr) {
                if (accept('['))
                    fail("the dtype has fields (a structured array); allowed: one number an element");
                array.type = type(quoted());
                has_descr = true;
            } else if (key == "fortran_order" && !has_order) {
                if (word() != "False")
                    fail("the array is in Fortran order; allowed: C order (numpy.ascontiguousarray)");
                has_order = true;
            } else if (key == "shape" && !has_shape) {
                array.shape = shape();
                has_shape = true;
            } else {
                fail(fmt::format("unknown or repeated header key '{}'", key));
            }
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        if (!has_descr || !has_order || !has_shape) fail("the header lacks descr, fortran_order or shape");
        skip_space();
        if (at_ != text_.size()) fail("text after the header's dictionary");
        return array;
    }

  private:
    [[noreturn]] void fail(const std::string& what) const { throw InputError(where_ + ": " + what); }

    void skip_space() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    }
    bool accept(char c) {
        skip_space();
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    void expect(char c) {
        if (!accept(c)) fail(fmt::format("the header is damaged: expected '{}' at character {}", c, at_));
    }
    std::string quoted() {
        expect('\'');
        const auto end = text_.find('\'', at_);
        if (end == std::string_view::npos) fail("the header is damaged: a string does not end");
        std::string value(text_.substr(at_, end - at_));
        at_ = end + 1;
        return value;
    }
    std::string_view word() {
        skip_space();
        const std::size_t begin = at_;
        while (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
        return text_.substr(begin, at_ - begin);
    }
    NpyType type(const std::string& descr) const {
        for (const TypeRow& row : types)
            if (descr == row.descr) return row.type;
        if (descr.starts_with('>'))
            fail(fmt::format("dtype '{}' is big endian; allowed: little endian", descr));
        fail(fmt::format(
            "dtype '{}' is not exchanged; allowed: float16, float32, float64, uint8, uint16 and int32",
            descr));
    }
    std::vector<std::int64_t> shape() {
        std::vector<std::int64_t> extents;
        expect('(');
        while (!accept(')')) {
            skip_space();
            const std::size_t begin = at_;
            if (at_ < text_.size() && text_[at_] == '-') ++at_;
            while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
            const std::string digits(text_.substr(begin, at_ - begin));
            if (digits.empty() || digits == "-")
                fail("the header is damaged: shape is not a tuple of integers");
            if (digits.front() == '-') fail(fmt::format("the shape has the negative extent {}", digits));
            if (digits.size() > 18)
                fail(fmt::format("the shape has the extent {}; allowed: up to 18 digits", digits));
            extents.push_back(std::stoll(digits));
            if (!accept(',')) {
                expect(')');
                break;
            }
        }
        return extents;
    }

    std::string_view text_;
    std::string where_;
    std::size_t at_ = 0;
};

/// Product of the extents times `bytes`; nullopt beyond 2^62.
std::optional<std::int64_t> total_bytes(const std::vector<std::int64_t>& shape, std::int64_t bytes) {
    std::int64_t total = bytes;
    for (const std::int64_t extent : shape) {
        if (extent != 0 && total > (std::int64_t{1} << 62) / extent) return std::nullopt;
        total *= extent;
    }
    return total;
}

} // namespace

int npy_bytes(NpyType type) {
    return row_of(type).bytes;
}
const char* npy_name(NpyType type) {
    return row_of(type).name;
}

std::int64_t NpyArray::elements() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
    if (shape.empty()) return "scalar";
    std::string text;
    for (const std::int64_t extent : shape) {
        if (!text.empty()) text += 'x';
        text += std::to_string(extent);
    }
    return text;
}

NpyArray read_npy(const std::filesystem::path& file) {
    const std::string where = file.string();
    std::error_code unknown; // the opening says why
    if (std::filesystem::is_directory(file, unknown))
        throw InputError(where + ": is a folder, not a .npy file");
    // The opening of a pipe waits for a writer, for ever if there is none, and its size cannot be asked for.
    if (std::filesystem::is_fifo(file, unknown))
        throw InputError(where + ": is a pipe; allowed: a .npy file, whose size is known");
    errno = 0;
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw InputError(fmt::format("{}: cannot be opened: {}", where, std::strerror(errno)));
    return read_npy(stream, where);
}

NpyArray read_npy(std::istream& stream, const std::string& where) {
    std::array<char, 8> start{};
    if (!stream.read(start.data(), start.size()) || std::string_view(start.data(), magic.size()) != magic)
        throw InputError(where + ": is not a .npy file");
    const int version = static_cast<unsigned char>(start[6]);
    if (version < 1 || version > 3)
        throw InputError(
            fmt::format("{}: .npy format version {} is not known; allowed: 1 to 3", where, version));
    std::array<unsigned char, 4> length_bytes{};
    const std::streamsize length_size = version == 1 ? 2 : 4;
    std::string header;
    std::uint32_t length = 0;
    if (stream.read(reinterpret_cast<char*>(length_bytes.data()), length_size)) {
        for (std::size_t i = 0; i < length_bytes.size(); ++i)
            length |= static_cast<std::uint32_t>(length_bytes[i]) << (8 * i);
        if (length > largest_header)
            throw InputError(fmt::format("{}: a header of {} bytes is damaged", where, length));
        header.resize(length);
    }
    if (!stream || !stream.read(header.data(), static_cast<std::streamsize>(length)))
        throw InputError(where + ": is truncated inside its header");

    NpyArray array = HeaderParser(header, where).parse();
    const auto bytes = total_bytes(array.shape, npy_bytes(array.type));
    if (!bytes)
        throw InputError(
            fmt::format("{}: shape {} does not fit into 64 bits", where, shape_text(array.shape)));
    const auto data_begin = stream.tellg();
    stream.seekg(0, std::ios::end);
    const std::int64_t there = stream.tellg() - data_begin;
    if (there != *bytes)
        throw InputError(fmt::format("{}: {} of {} needs {} bytes of data, the file {} {}", where,
                                     npy_name(array.type), shape_text(array.shape), *bytes,
                                     there < *bytes ? "is truncated to" : "has", there));
    stream.seekg(data_begin);
    array.bytes.resize(static_cast<std::size_t>(*bytes));
    if (!stream.read(reinterpret_cast<char*>(array.bytes.data()), *bytes))
        throw InputError(where + ": cannot be read");
    return array;
}

void write_npy(const std::filesystem::path& file, const NpyArray& array) {
    errno = 0;
    std::ofstream stream(file, std::ios::binary);
    write_npy(stream, array);
    stream.flush();
    if (!stream)
        throw InputError(fmt::format("{}: cannot be written{}", file.string(),
                                     errno == 0 ? "" : fmt::format(": {}", std::strerror(errno))));
}

void write_npy(std::ostream& stream, const NpyArray& array) {
    std::string shape;
    for (const std::int64_t extent : array.shape) shape += fmt::format("{}, ", extent);
    if (array.shape.size() > 1) shape.resize(shape.size() - 2);
    if (array.shape.size() == 1) shape.resize(shape.size() - 1);
    std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                     row_of(array.type).descr, shape);
    constexpr std::size_t prefix = 10, alignment = 64;
    header.append(alignment - (prefix + header.size() + 1) % alignment, ' ');
    header += '\n';
    const auto length = static_cast<std::uint16_t>(header.size());
    const std::array<char, 4> version{1, 0, static_cast<char>(length & 0xFFU),
                                      static_cast<char>(length >> 8U)};
    stream.write(magic.data(), static_cast<std::streamsize>(magic.size()));
    stream.write(version.data(), version.size());
    stream.write(header.data(), static_cast<std::streamsize>(header.size()));
    stream.write(reinterpret_cast<const char*>(array.bytes.data()),
                 static_cast<std::streamsize>(array.bytes.size()));
}

} // namespace fmha::harness
