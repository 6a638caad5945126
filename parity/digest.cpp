#include "parity/digest.hpp"

#include <cstddef>

namespace fmha::parity {
namespace {

constexpr std::size_t piece = 64 * 1024;

} // namespace

NameDigest::NameDigest() {
    pending_.reserve(piece + 1024);
}

void NameDigest::add(std::string_view name) {
    if (!first_) pending_ += '\n';
    first_ = false;
    pending_ += name;
    if (pending_.size() < piece) return;
    hash_.add(pending_);
    pending_.clear();
}

std::string NameDigest::finish() {
    hash_.add(pending_);
    pending_.clear();
    first_ = true;
    return hash_.finish();
}

} // namespace fmha::parity
