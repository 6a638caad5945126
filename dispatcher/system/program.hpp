#pragma once

#include <filesystem>
#include <string>

namespace fmha::system {

/// Where the running program lies; empty where the system does not say.
std::filesystem::path program_path();

/// The content of the running program, also when another file has its name by now. Throws InputError where it cannot be read.
std::string program_bytes();

} // namespace fmha::system
