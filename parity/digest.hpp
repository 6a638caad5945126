#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace fmha::parity {

/// SHA-256 over names joined by one line feed, without one at the end: the form in which lists are compared.
/// The digest of no names is that of the empty text.
class NameDigest {
  public:
    NameDigest();
    ~NameDigest();
    NameDigest(NameDigest&&) noexcept;
    NameDigest& operator=(NameDigest&&) noexcept;
    NameDigest(const NameDigest&) = delete;
    NameDigest& operator=(const NameDigest&) = delete;

    void add(std::string_view name);
    /// 64 lower-case hexadecimal digits. The digest starts anew.
    std::string finish();

  private:
    struct Context;
    std::unique_ptr<Context> context_;
    std::string pending_; ///< names that have not been hashed yet; hashing in large pieces is faster
    bool first_ = true;
};

} // namespace fmha::parity
