#pragma once

#include "harness/store/database.hpp"

namespace fmha::store {

/// The version that this program writes.
std::int64_t newest_schema();

/// The version of a file; 0 for an empty one. Throws InputError for a database of something else.
std::int64_t schema_of(const Database& database);

/// Brings a file to the newest version, in one transaction, and fills an empty one. Throws InputError for a file of a
/// newer program or of something else.
void migrate(const Database& database);

} // namespace fmha::store
