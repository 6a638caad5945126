#include "harness/cases/yaml_document.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

#include <sstream>

namespace fmha::harness {
namespace {

/// Reads on, keeps nothing, and throws InputError where a document is nested too deeply: yaml-cpp reads level by level on the stack,
/// which may have no more than 128 KiB.
class Depth final : public YAML::EventHandler {
  public:
    explicit Depth(const std::string& where) : where_(where) {}

    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
    void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
    void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
    void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                         YAML::EmitterStyle::value) override {
        enter(mark);
    }
    void OnSequenceEnd() override { --open_; }
    void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                    YAML::EmitterStyle::value) override {
        enter(mark);
    }
    void OnMapEnd() override { --open_; }

  private:
    static constexpr int deepest = 32;

    void enter(const YAML::Mark& mark) {
        if (open_++ == deepest)
            throw InputError(
                fmt::format("{}: line {}: nested more than {} levels deep", where_, mark.line + 1, deepest));
    }

    const std::string& where_;
    int open_ = 0;
};

} // namespace

YAML::Node one_document(const std::string& text, const std::string& where) {
    // YAML::LoadAll would say how many there are, but never ends where a document is followed by what begins none.
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    Depth depth(where);
    if (parser.HandleNextDocument(depth) && parser.HandleNextDocument(depth))
        throw InputError(fmt::format("{}: has more than one document; allowed: one", where));
    return YAML::Load(text);
}

} // namespace fmha::harness
