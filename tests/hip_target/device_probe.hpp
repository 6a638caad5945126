#pragma once

#include <filesystem>
#include <optional>
#include <string>

/// Small kernels that tests compile for an architecture and run where there is a GPU for it. FMHA_CODES_DIR keeps their code
/// objects, so that they can be built where a compiler is and run where a GPU is.
namespace fmha::hip_target::test {

/// The code object of `source`, a path in the source tree, with `include` in front of the folders of its headers. Empty when
/// this machine has no compiler for `arch`; a compiler's complaints are thrown.
std::optional<std::string> compiled_probe(const std::filesystem::path& source, const std::string& arch,
                                          const std::filesystem::path& include = ".");

/// Writes a code object to FMHA_CODES_DIR, if that is set.
void keep_object(const std::string& name, const std::string& arch, const std::string& image);

/// The one in FMHA_CODES_DIR, else a new one; empty as above.
std::optional<std::string> probe_for_device(const std::string& name, const std::filesystem::path& source,
                                            const std::string& arch,
                                            const std::filesystem::path& include = ".");

} // namespace fmha::hip_target::test
