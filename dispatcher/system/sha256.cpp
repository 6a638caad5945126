#include "dispatcher/system/sha256.hpp"

#include "dispatcher/types/error.hpp"

#include <openssl/evp.h>

#include <array>

namespace fmha::system {

std::string sha256(std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    if (EVP_Digest(text.data(), text.size(), bytes.data(), &size, EVP_sha256(), nullptr) != 1)
        throw InputError("the library OpenSSL cannot compute SHA-256");
    constexpr std::string_view digits = "0123456789abcdef";
    std::string hex;
    hex.reserve(2 * std::size_t{size});
    for (std::size_t i = 0; i < size; ++i) {
        hex += digits[bytes[i] >> 4U];
        hex += digits[bytes[i] & 15U];
    }
    return hex;
}

} // namespace fmha::system
