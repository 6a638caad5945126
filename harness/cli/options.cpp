#include "harness/cli/options.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cli/comma_parts.hpp"
#include "harness/cli/output_files.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>

namespace fmha::cli {
namespace {

/// CLI11 reads "-1" as the largest unsigned number.
std::uint64_t unsigned_from(const std::string& names, const std::string& text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || at != end)
        throw CLI::ValidationError(names,
                                   "\"" + text + "\" is not allowed; allowed: 0 to 18446744073709551615");
    return value;
}

/// An empty value is a shell variable that was never set, not a wish.
std::string refuse_empty(const std::string& text) {
    return text.empty() ? "an empty value is not allowed" : "";
}

std::string refuse_empty_part(const std::string& text) {
    return text.empty() ? refuse_empty(text) : why_no_list(text);
}

/// Many programs take "-" for standard output, and a file of that name would be found late.
std::string refuse_dash(const std::string& text) {
    return text == "-"
               ? "\"-\" is not allowed, standard output has the verdict; allowed: a path, ./- for that name"
               : refuse_empty(text);
}

/// CLI11's sentence about such a word is "Could not convert".
template <class Number>
std::string refuse_other_than(const std::string& what, const std::string& text) {
    if (text.empty()) return refuse_empty(text);
    Number value{};
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && at == end ? "" : "\"" + text + "\" is not " + what;
}
std::string refuse_no_integer(const std::string& text) {
    return refuse_other_than<std::int64_t>("an integer of 64 bits", text);
}
std::string refuse_no_number(const std::string& text) {
    return refuse_other_than<double>("a number", text);
}

/// An option that may "have extra arguments" takes a value in brackets apart at its commas, as lists of configuration files, and the
/// words behind its value.
CLI::Option* whole_values(CLI::Option* option) {
    return option->allow_extra_args(false)->take_all();
}

} // namespace

OptionSet::OptionSet(CLI::App& app) : app_(app) {}

void OptionSet::flag(const std::string& names, bool& target, const std::string& help) {
    app_.add_flag(names, target, help);
}

void OptionSet::option(const std::string& names, std::string& target, const std::string& help) {
    texts_.push_back(app_.add_option(names, target, help)->capture_default_str()->check(refuse_empty));
}

void OptionSet::required_option(const std::string& names, std::string& target, const std::string& help) {
    texts_.push_back(
        app_.add_option(names, target, help)->capture_default_str()->required()->check(refuse_empty));
}

void OptionSet::output(const std::string& names, std::string& target, const std::string& help) {
    outputs_.push_back(app_.add_option(names, target, help)->capture_default_str()->check(refuse_dash));
}

void OptionSet::required_output(const std::string& names, std::string& target, const std::string& help) {
    outputs_.push_back(
        app_.add_option(names, target, help)->capture_default_str()->required()->check(refuse_dash));
}

void OptionSet::option(const std::string& names, std::int64_t& target, const std::string& help) {
    app_.add_option(names, target, help)->capture_default_str()->check(refuse_no_integer);
}

void OptionSet::option(const std::string& names, std::uint64_t& target, const std::string& help) {
    app_.add_option_function<std::string>(
            names, [&target, names](const std::string& text) { target = unsigned_from(names, text); }, help)
        ->default_str(std::to_string(target));
}

void OptionSet::option(const std::string& names, double& target, const std::string& help) {
    app_.add_option(names, target, help)->capture_default_str()->check(refuse_no_number);
}

void OptionSet::option(const std::string& names, std::optional<std::uint64_t>& target,
                       const std::string& help) {
    app_.add_option_function<std::string>(
        names, [&target, names](const std::string& text) { target = unsigned_from(names, text); }, help);
}

void OptionSet::option(const std::string& names, std::optional<std::int64_t>& target,
                       const std::string& help) {
    app_.add_option(names, target, help)->check(refuse_no_integer);
}

void OptionSet::list(const std::string& names, std::vector<std::string>& target, const std::string& help) {
    const auto take = [&target](const std::vector<std::string>& texts) {
        target.clear();
        for (const std::string& text : texts)
            std::ranges::move(comma_parts(text), std::back_inserter(target));
    };
    // CLI11's own delimiter leaves no value of a lone comma, and takes the next word instead.
    lists_.push_back(whole_values(app_.add_option_function<std::vector<std::string>>(names, take, help))
                         ->expected(1)
                         ->check(refuse_empty_part));
}

void OptionSet::each(const std::string& names, std::vector<std::string>& target, const std::string& help) {
    texts_.push_back(whole_values(app_.add_option(names, target, help))->expected(1)->check(refuse_empty));
}

void OptionSet::pair(const std::string& names, std::vector<std::string>& target, const std::string& help) {
    texts_.push_back(
        app_.add_option(names, target, help)->expected(2)->allow_extra_args(false)->check(refuse_empty));
}

void OptionSet::choice(const std::string& names, std::string& target, const std::vector<std::string>& allowed,
                       const std::string& help) {
    choose(
        names, allowed, target, [&target](const std::string& name) { target = name; }, help);
}

void OptionSet::format(OutputFormat& target, const std::string& help) {
    choice("--format", target, help);
}

void OptionSet::choose(const std::string& names, const std::vector<std::string>& allowed,
                       const std::string& usual, std::function<void(const std::string& name)> take,
                       const std::string& help) {
    app_.add_option_function<std::string>(names, take, help)
        ->default_str(usual)
        ->check(CLI::IsMember(allowed));
}

void OptionSet::positionals(const std::string& name, std::vector<std::string>& target,
                            const std::string& help) {
    // Without extra ones CLI11 takes arguments up to the least number, which it asks for nowhere.
    constexpr int most = 1 << 28;
    texts_.push_back(whole_values(app_.add_option(name, target, help))
                         ->expected(most, CLI::detail::expected_max_vector_size)
                         ->check(refuse_empty));
}

void OptionSet::require_different_files() const {
    NamedFiles outputs, inputs;
    for (const CLI::Option* option : outputs_)
        for (const std::string& file : option->results()) outputs.emplace_back(option->get_name(), file);
    std::error_code none;
    for (const CLI::Option* option : texts_)
        for (const std::string& text : option->results())
            if (std::filesystem::exists(text, none)) inputs.emplace_back(option->get_name(), text);
    for (const CLI::Option* option : lists_)
        for (const std::string& texts : option->results())
            for (const std::string& text : comma_parts(texts))
                if (std::filesystem::exists(text, none)) inputs.emplace_back(option->get_name(), text);
    require_different(outputs, inputs);
}

void read_words(const std::vector<std::string>& words, const std::function<void(OptionSet&)>& declare) {
    CLI::App app;
    OptionSet options(app);
    declare(options);
    try {
        // CLI11 consumes a vector from its end.
        std::vector<std::string> reversed(words.rbegin(), words.rend());
        app.parse(reversed);
    } catch (const CLI::ParseError& error) {
        throw InputError(error.what());
    }
}

} // namespace fmha::cli
