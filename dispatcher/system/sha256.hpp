#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st; // OpenSSL's EVP_MD_CTX

namespace fmha::system {

/// SHA-256 of a text that comes in pieces. Its functions throw InputError when OpenSSL cannot compute it.
class Sha256 {
  public:
    Sha256();

    void add(std::string_view piece);
    /// Of all pieces since the last call: 64 lower-case hexadecimal digits.
    std::string finish();

  private:
    struct Free {
        void operator()(evp_md_ctx_st* context) const;
    };
    std::unique_ptr<evp_md_ctx_st, Free> context_;
};

/// SHA-256 of a text, 64 lower-case hexadecimal digits.
std::string sha256(std::string_view text);

} // namespace fmha::system
