// write_seeds SOURCES OUT TABLE HEADER…: copies headers from below SOURCES to below OUT, with a place for a mistake by one
// in every comparison of numbers (a < b becomes a < seeded(7) + b) and in every quotient (a / b becomes (seeded(8) + a) / b), and
// lists the places in TABLE, as initialisers of SeedPlace.

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

/// The code with blanks in place of comments and preprocessor lines, character for character.
std::string code_only(const std::string& text) {
    std::string code = text;
    for (std::size_t begin = 0; begin < text.size();) {
        const auto end = std::min(text.find('\n', begin), text.size());
        const auto line = std::string_view(text).substr(begin, end - begin);
        const auto first = line.find_first_not_of(' ');
        const bool directive = first != std::string_view::npos && line[first] == '#';
        const auto hidden = directive ? 0 : std::min(line.find("//"), line.size());
        std::fill(code.begin() + static_cast<std::ptrdiff_t>(begin + hidden),
                  code.begin() + static_cast<std::ptrdiff_t>(end), ' ');
        begin = end + 1;
    }
    return code;
}

bool in_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

/// A mistake's place: what is written before and behind which characters.
struct Place {
    std::string expression;
    std::size_t begin = 0; ///< "seeded(n) + " goes here
    std::size_t close = 0; ///< a closing parenthesis for it goes here; 0 = none
};

class Header {
  public:
    explicit Header(const std::string& text) : code_(code_only(text)) {}

    std::vector<Place> places() const {
        static constexpr std::array<std::string_view, 6> comparisons{
            " < ", " > ", " <= ", " >= ", " == ", " != "};
        std::vector<Place> found;
        for (std::size_t at = 0; at < code_.size(); ++at) {
            if (code_.compare(at, 3, " / ") == 0) {
                const auto dividend = operand_begin(at);
                found.push_back({expression(dividend, at + 3, true), dividend, at});
            }
            for (const auto comparison : comparisons) {
                if (code_.compare(at, comparison.size(), comparison) != 0) continue;
                const auto right = code_.find_first_not_of(" \n", at + comparison.size());
                if (is_number(right)) found.push_back({expression(side_begin(at), right, false), right, 0});
            }
        }
        return found;
    }

  private:
    /// Enumerators and null pointers have no neighbours.
    bool is_number(std::size_t at) const {
        const auto end =
            std::find_if_not(code_.begin() + static_cast<std::ptrdiff_t>(at), code_.end(), in_name);
        const std::string name(code_.begin() + static_cast<std::ptrdiff_t>(at), end);
        const auto behind = static_cast<std::size_t>(end - code_.begin());
        return name != "nullptr" && code_.compare(behind, 2, "::") != 0;
    }

    /// Where the name, number or parenthesis before `end` begins.
    std::size_t operand_begin(std::size_t end) const {
        auto begin = end;
        if (code_[end - 1] == ')') {
            int depth = 0;
            do {
                --begin;
                depth += code_[begin] == ')' ? 1 : code_[begin] == '(' ? -1 : 0;
            } while (depth > 0);
        }
        while (begin > 0 && in_name(code_[begin - 1])) --begin;
        return begin;
    }

    /// Where the left side of the comparison at `end` begins.
    std::size_t side_begin(std::size_t end) const {
        auto begin = end;
        for (int depth = 0; begin > 0; --begin) {
            const char c = code_[begin - 1];
            if (depth == 0 && std::string_view("({;,&|?:=").find(c) != std::string_view::npos) break;
            depth += c == ')' ? 1 : c == '(' ? -1 : 0;
        }
        begin = code_.find_first_not_of(" \n", begin);
        static constexpr std::string_view give = "return ";
        const auto given = code_.rfind(give, end);
        return given != std::string::npos && given >= begin ? given + give.size() : begin;
    }

    /// What the table calls the place: from `begin` to the end of the operand at `right`.
    std::string expression(std::size_t begin, std::size_t right, bool quotient) const {
        auto end = right;
        for (int depth = 0; end < code_.size(); ++end) {
            const char c = code_[end];
            if (depth == 0 && std::string_view("),;&|?:}").find(c) != std::string_view::npos) break;
            if (depth == 0 && quotient && c == ' ') break;
            depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        }
        std::string words;
        for (const char c : code_.substr(begin, end - begin))
            if (!(c == ' ' || c == '\n') || (!words.empty() && words.back() != ' '))
                words += c == '\n' ? ' ' : c;
        while (words.ends_with(' ')) words.pop_back();
        return words;
    }

    std::string code_;
};

std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error(path.string() + ": cannot be read");
    return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw std::runtime_error(path.string() + ": cannot be written");
}

} // namespace

int main(int count, char** words) try {
    const std::vector<std::string> arguments(words + 1, words + count);
    if (arguments.size() < 4) throw std::runtime_error("usage: write_seeds SOURCES OUT TABLE HEADER...");
    std::string table;
    int number = 0;
    for (std::size_t i = 3; i < arguments.size(); ++i) {
        const std::string text = read(fs::path(arguments[0]) / arguments[i]);
        std::map<std::size_t, std::string> insertions;
        std::map<std::string, int> times;
        for (const Place& place : Header(text).places()) {
            const int time = ++times[place.expression];
            table +=
                fmt::format("{{{}, \"{}\", \"{}{}\"}},\n", number, fs::path(arguments[i]).filename().string(),
                            place.expression, time > 1 ? fmt::format(" #{}", time) : "");
            insertions[place.begin] +=
                fmt::format("{}::fmha::test::seeded({}) + ", place.close > 0 ? "(" : "", number);
            if (place.close > 0) insertions[place.close] += ")";
            ++number;
        }
        std::string copy = "#include \"tests/kernels/seeded/seed.hpp\"\n";
        std::size_t done = 0;
        for (const auto& [at, insertion] : insertions) {
            copy += text.substr(done, at - done) + insertion;
            done = at;
        }
        write(fs::path(arguments[1]) / arguments[i], copy + text.substr(done));
    }
    write(arguments[2], table);
    return 0;
} catch (const std::exception& error) {
    std::cerr << "write_seeds: " << error.what() << '\n';
    return 1;
}
