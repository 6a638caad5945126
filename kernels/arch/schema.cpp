#include "kernels/arch/schema.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include <vector>

namespace fmha::arch {

namespace {

/// valijson gives a path as "<root>", "[key]", "[0]" …; this makes it a JSON pointer.
nlohmann::json::json_pointer pointer_of(const std::vector<std::string>& context) {
    nlohmann::json::json_pointer pointer;
    for (std::size_t i = 1; i < context.size(); ++i) {
        const std::string& step = context[i];
        if (step.size() >= 2 && step.front() == '[') pointer /= step.substr(1, step.size() - 2);
    }
    return pointer;
}

std::string shown_value(const nlohmann::json& document, const nlohmann::json::json_pointer& pointer) {
    if (!document.contains(pointer)) return "(absent)";
    std::string text = document.at(pointer).dump();
    constexpr std::size_t limit = 120;
    return text.size() <= limit ? text : fmt::format("{} …", text.substr(0, limit));
}

} // namespace

void check_schema(const std::string& file, std::string_view document_text, std::string_view schema_text) {
    const auto document = nlohmann::json::parse(document_text), schema = nlohmann::json::parse(schema_text);
    valijson::Schema parsed;
    valijson::SchemaParser parser;
    const valijson::adapters::NlohmannJsonAdapter schema_adapter(schema);
    parser.populateSchema(schema_adapter, parsed);

    valijson::Validator validator;
    valijson::ValidationResults results;
    const valijson::adapters::NlohmannJsonAdapter target(document);
    if (validator.validate(parsed, target, &results)) return;

    // The library reports the innermost violation first and then each enclosing object; the longest path is
    // the cause.
    std::vector<valijson::ValidationResults::Error> errors;
    valijson::ValidationResults::Error error;
    while (results.popError(error)) errors.push_back(error);
    std::string message;
    int shown = 0;
    for (std::size_t i = 0; i < errors.size() && shown < 8; ++i) {
        bool encloses_a_reported_one = false;
        for (std::size_t j = 0; j < i && !encloses_a_reported_one; ++j)
            encloses_a_reported_one =
                errors[i].context.size() < errors[j].context.size() &&
                std::equal(errors[i].context.begin(), errors[i].context.end(), errors[j].context.begin());
        if (encloses_a_reported_one) continue;
        const auto pointer = pointer_of(errors[i].context);
        if (shown++ > 0) message += "; ";
        message += fmt::format("{}#{}: {}: {}", file, pointer.to_string(), shown_value(document, pointer),
                               errors[i].description);
    }
    throw InputError(message);
}

} // namespace fmha::arch
