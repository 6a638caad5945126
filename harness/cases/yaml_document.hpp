#pragma once

#include <string>

#include <yaml-cpp/yaml.h>

namespace fmha::harness {

/// The document of a text that is one: null where there is none. Throws YAML::Exception, and InputError, with `where`, where
/// anything stands behind the document or it is nested too deeply.
YAML::Node one_document(const std::string& text, const std::string& where);

} // namespace fmha::harness
