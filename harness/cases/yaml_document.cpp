#include "harness/cases/yaml_document.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

#include <sstream>

namespace fmha::harness {
namespace {

/// Reads on and keeps nothing.
class Skipped final : public YAML::EventHandler {
  public:
    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
    void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
    void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
    void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                         YAML::EmitterStyle::value) override {}
    void OnSequenceEnd() override {}
    void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                    YAML::EmitterStyle::value) override {}
    void OnMapEnd() override {}
};

} // namespace

YAML::Node one_document(const std::string& text, const std::string& where) {
    YAML::Node document = YAML::Load(text);
    // YAML::LoadAll would say how many there are, but never ends where a document is followed by what begins none.
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    Skipped skipped;
    if (parser.HandleNextDocument(skipped) && parser.HandleNextDocument(skipped))
        throw InputError(fmt::format("{}: has more than one document; allowed: one", where));
    return document;
}

} // namespace fmha::harness
