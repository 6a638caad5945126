#include "parity/digest.hpp"

#include "dispatcher/types/error.hpp"

#include <openssl/evp.h>

#include <array>

namespace fmha::parity {
namespace {

constexpr std::size_t piece = 64 * 1024;

struct FreeContext {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

} // namespace

struct NameDigest::Context {
    std::unique_ptr<EVP_MD_CTX, FreeContext> md{EVP_MD_CTX_new()};

    void start() {
        if (md == nullptr || EVP_DigestInit_ex(md.get(), EVP_sha256(), nullptr) != 1)
            throw Error("SHA-256 is not available from OpenSSL");
    }
    void add(std::string_view text) { EVP_DigestUpdate(md.get(), text.data(), text.size()); }
};

NameDigest::NameDigest() : context_(std::make_unique<Context>()) {
    context_->start();
    pending_.reserve(piece + 1024);
}
NameDigest::~NameDigest() = default;
NameDigest::NameDigest(NameDigest&&) noexcept = default;
NameDigest& NameDigest::operator=(NameDigest&&) noexcept = default;

void NameDigest::add(std::string_view name) {
    if (!first_) pending_ += '\n';
    first_ = false;
    pending_ += name;
    if (pending_.size() < piece) return;
    context_->add(pending_);
    pending_.clear();
}

std::string NameDigest::finish() {
    context_->add(pending_);
    pending_.clear();
    first_ = true;
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context_->md.get(), bytes.data(), &size);
    context_->start();
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (unsigned i = 0; i < size; ++i) {
        text += digits[bytes[i] >> 4U];
        text += digits[bytes[i] & 15U];
    }
    return text;
}

} // namespace fmha::parity
