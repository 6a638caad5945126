#include "harness/cases/waiver.hpp"

#include "dispatcher/types/did_you_mean.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/utf8.hpp"
#include "harness/cases/yaml_document.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <map>
#include <string_view>

namespace fmha::harness {
namespace {

constexpr std::array<std::string_view, 8> keys{"cases",  "arch",    "target", "kernel",
                                               "expect", "tracker", "reason", "expires"};
constexpr std::string_view everywhere = "all";

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// A number, perhaps behind the name of its project, or an address: what somebody can look up. Not "TODO", and not 0.
bool is_tracker(std::string_view text) {
    if (std::ranges::any_of(text, [](unsigned char c) { return c <= ' ' || c == 0x7F; })) return false;
    for (const std::string_view scheme : {"https://", "http://"})
        if (text.starts_with(scheme)) return text.size() > scheme.size();
    const auto digits = std::find_if_not(text.rbegin(), text.rend(), is_digit);
    const bool behind_a_name = digits == text.rend() || *digits == '#' || *digits == '-' || *digits == '!';
    return behind_a_name && std::any_of(text.rbegin(), digits, [](char c) { return c != '0'; });
}

/// "2027-01-31", a day that there is.
bool is_day(std::string_view text) {
    constexpr std::string_view form = "0000-00-00";
    if (!std::ranges::equal(text, form, {}, [](char c) { return is_digit(c) ? '0' : c; })) return false;
    const auto number = [&](std::size_t at, std::size_t digits) {
        unsigned value = 0;
        std::from_chars(text.data() + at, text.data() + at + digits, value);
        return value;
    };
    return std::chrono::year_month_day(std::chrono::year(static_cast<int>(number(0, 4))),
                                       std::chrono::month(number(5, 2)), std::chrono::day(number(8, 2)))
        .ok();
}

/// Without blanks at its ends, and with one for each row of them and of ends of lines: folded text of YAML ends with one.
std::string one_line(const std::string& text) {
    std::string line;
    for (const char c : text) {
        const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
        if (!blank)
            line += c;
        else if (!line.empty() && line.back() != ' ')
            line += ' ';
    }
    while (line.ends_with(' ')) line.pop_back();
    return line;
}

/// Throws InputError for a line that a journal could not keep: the run would not know its own file again.
void require_utf8_lines(std::string_view text, const std::string& file) {
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::string_view line = text.substr(0, text.find('\n'));
        if (!is_utf8(line)) throw InputError(fmt::format("{}: line {}: is not UTF-8", file, number));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
    }
}

/// Reads one entry.
class EntryReader {
  public:
    EntryReader(const YAML::Node& entry, const std::string& file) : file_(file), mark_(entry.Mark()) {
        if (!entry.IsMap()) refuse(mark_, fmt::format("expected an entry of {}", fmt::join(keys, ", ")));
        for (const auto& member : entry) {
            const std::string key = member.first.IsScalar() ? member.first.Scalar() : "";
            if (std::ranges::find(keys, key) == keys.end())
                refuse(member.first.Mark(), fmt::format("\"{}\" is no key of an entry; allowed: {}{}", key,
                                                        fmt::join(keys, ", "), did_you_mean(key, keys)));
            if (!values_.emplace(key, member.second).second)
                refuse(member.first.Mark(), fmt::format("{} stands twice", key));
        }
    }

    Waiver read(std::span<const std::string> archs, std::span<const std::string> targets) const {
        Waiver waiver;
        waiver.place = place(mark_);
        waiver.cases = text("cases", "a folder, a file or a name of cases, with * for any characters");
        waiver.archs = names("arch", archs);
        waiver.targets = names("target", targets);
        if (values_.contains("kernel")) waiver.kernel = text("kernel", "a glob on names of kernels");
        const auto expect = parse_enum<KnownEnd>(text("expect", allowed_names<KnownEnd>()));
        if (!expect) refuse("expect", allowed_names<KnownEnd>());
        waiver.expect = *expect;
        constexpr std::string_view trackers =
            "a number, as in 1234, \"#1234\" or SWDEV-1234, or an address that begins with https://";
        waiver.tracker = text("tracker", trackers);
        if (!is_tracker(waiver.tracker)) refuse("tracker", trackers);
        waiver.reason = text("reason", "words that say what is wrong");
        if (values_.contains("expires")) {
            constexpr std::string_view days = "a day, as in 2027-01-31";
            waiver.expires = text("expires", days);
            if (!is_day(waiver.expires)) refuse("expires", days);
        }
        return waiver;
    }

  private:
    std::string place(const YAML::Mark& mark) const {
        return fmt::format("{}: line {}", file_, mark.line + 1);
    }
    [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& what) const {
        throw InputError(fmt::format("{}: {}", place(mark), what));
    }
    /// Of a value that is there.
    [[noreturn]] void refuse(const std::string& key, std::string_view expected) const {
        const YAML::Node& value = values_.at(key);
        const std::string shown = value.IsScalar() ? fmt::format("\"{}\"", value.Scalar())
                                  : value.IsNull() ? "no value"
                                                   : "a nested value";
        refuse(value.Mark(), fmt::format("{}: {} is not allowed; expected {}", key, shown, expected));
    }

    void require(const std::string& key, std::string_view expected) const {
        if (!values_.contains(key)) refuse(mark_, fmt::format("{} is missing; expected {}", key, expected));
    }

    std::string text(const std::string& key, std::string_view expected) const {
        require(key, expected);
        const YAML::Node& value = values_.at(key);
        std::string text = value.IsScalar() ? one_line(value.Scalar()) : "";
        if (text.empty()) refuse(key, expected);
        return text;
    }

    /// One or several of `allowed`; none for all of them, which the file has to say.
    std::vector<std::string> names(const std::string& key, std::span<const std::string> allowed) const {
        const std::string expected = fmt::format("all, or one or a list of {}", fmt::join(allowed, ", "));
        require(key, expected);
        const YAML::Node& value = values_.at(key);
        if (value.IsScalar() && value.Scalar() == everywhere) return {};
        std::vector<std::string> names;
        const auto add = [&](const YAML::Node& one) {
            const std::string name = one.IsScalar() ? one.Scalar() : "";
            if (std::ranges::find(allowed, name) == allowed.end())
                refuse(one.Mark(), fmt::format("{}: \"{}\" is not allowed; expected {}{}", key, name,
                                               expected, did_you_mean(name, allowed)));
            names.push_back(name);
        };
        if (value.IsSequence())
            for (const auto& one : value) add(one);
        else if (value.IsScalar())
            add(value);
        if (names.empty()) refuse(key, expected);
        return names;
    }

    std::string file_;
    YAML::Mark mark_;
    std::map<std::string, YAML::Node> values_;
};

} // namespace

std::vector<Waiver> read_waivers(const std::string& text, const std::string& file,
                                 std::span<const std::string> archs, std::span<const std::string> targets) {
    require_utf8_lines(text, file);
    YAML::Node document;
    try {
        document = one_document(text, file);
    } catch (const YAML::Exception& error) {
        throw InputError(fmt::format("{}: not valid YAML: {}", file, error.what()));
    }
    if (document.IsNull()) return {};
    if (!document.IsSequence()) throw InputError(fmt::format("{}: expected a list of entries", file));
    std::vector<Waiver> waivers;
    for (const auto& entry : document) waivers.push_back(EntryReader(entry, file).read(archs, targets));
    return waivers;
}

} // namespace fmha::harness
