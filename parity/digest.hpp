#pragma once

#include "dispatcher/system/sha256.hpp"

#include <string>
#include <string_view>

namespace fmha::parity {

/// SHA-256 over names joined by one line feed, without one at the end: the form in which lists are compared.
/// The digest of no names is that of the empty text.
class NameDigest {
  public:
    NameDigest();

    void add(std::string_view name);
    /// 64 lower-case hexadecimal digits. The digest starts anew.
    std::string finish();

  private:
    system::Sha256 hash_;
    std::string pending_; ///< names that have not been hashed yet; hashing in large pieces is faster
    bool first_ = true;
};

} // namespace fmha::parity
