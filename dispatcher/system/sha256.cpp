#include "dispatcher/system/sha256.hpp"

#include "dispatcher/types/error.hpp"

#include <openssl/evp.h>

#include <array>
#include <span>

namespace fmha::system {
namespace {

void require(bool worked) {
    if (!worked) throw InputError("the library OpenSSL cannot compute SHA-256");
}

} // namespace

void Sha256::Free::operator()(EVP_MD_CTX* context) const {
    EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
    require(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::add(std::string_view piece) {
    require(EVP_DigestUpdate(context_.get(), piece.data(), piece.size()) == 1);
}

std::string Sha256::finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    require(EVP_DigestFinal_ex(context_.get(), bytes.data(), &size) == 1 &&
            EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
    constexpr std::string_view digits = "0123456789abcdef";
    std::string hex;
    hex.reserve(2 * std::size_t{size});
    for (const unsigned char byte : std::span(bytes).first(size)) {
        hex += digits[byte >> 4U];
        hex += digits[byte & 15U];
    }
    return hex;
}

std::string sha256(std::string_view text) {
    Sha256 hash;
    hash.add(text);
    return hash.finish();
}

} // namespace fmha::system
