#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace fmha::harness {

/// Element types that are exchanged: numpy's float16/32/64, uint8/uint16 for the bit patterns of 8- and 4-bit types,
/// e8m0 scales and bf16, and int32 for tables and indices.
enum class NpyType : std::uint8_t { float16, float32, float64, uint8, uint16, int32 };

/// An array as a `.npy` file holds it: C order, little endian.
struct NpyArray {
    NpyType type = NpyType::float32;
    std::vector<std::int64_t> shape;
    std::vector<unsigned char> bytes;

    std::int64_t elements() const;
};

int npy_bytes(NpyType type);
/// "float16", as numpy prints it.
const char* npy_name(NpyType type);

/// Reads a file of format version 1.0, 2.0 or 3.0. Throws InputError that names the file and its mistake: no such
/// file, a folder, no .npy file, truncated, trailing bytes, a dtype that is not exchanged, big endian, Fortran
/// order, negative extents, or a size that does not fit into 64 bits.
NpyArray read_npy(const std::filesystem::path& file);
/// The same of a stream that can be searched; messages call it `where`.
NpyArray read_npy(std::istream& stream, const std::string& where);

/// Writes version 1.0, aligned as numpy aligns. Throws InputError that names the file.
void write_npy(const std::filesystem::path& file, const NpyArray& array);
void write_npy(std::ostream& stream, const NpyArray& array);

/// "2x8x128x64".
std::string shape_text(const std::vector<std::int64_t>& shape);

} // namespace fmha::harness
