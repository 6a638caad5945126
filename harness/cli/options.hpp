#pragma once

#include "dispatcher/types/enums.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace fmha::cli {

/// The reader of standard output: a person or a program.
enum class OutputFormat : std::uint8_t { text, json };

/// The options of one subcommand. A thin face of CLI11, whose headers take seconds to compile, so that only
/// options.cpp and application.cpp include them. Every target must outlive the parse; its value before the
/// parse is the default that `--help` shows.
class OptionSet {
  public:
    explicit OptionSet(CLI::App& app);

    /// Names are CLI11's: "-n,--name".
    void flag(const std::string& names, bool& target, const std::string& help);
    void option(const std::string& names, std::string& target, const std::string& help);
    void required_option(const std::string& names, std::string& target, const std::string& help);
    /// A file or folder that the command writes. "-" is refused: standard output belongs to the verdict.
    void output(const std::string& names, std::string& target, const std::string& help);
    void required_output(const std::string& names, std::string& target, const std::string& help);
    void option(const std::string& names, std::int64_t& target, const std::string& help);
    void option(const std::string& names, std::uint64_t& target, const std::string& help);
    void option(const std::string& names, double& target, const std::string& help);
    /// Stays empty when it is not given.
    void option(const std::string& names, std::optional<std::uint64_t>& target, const std::string& help);
    void option(const std::string& names, std::optional<std::int64_t>& target, const std::string& help);
    /// May be given several times, and takes several values separated by commas. A comma with nothing on one side is a usage error.
    void list(const std::string& names, std::vector<std::string>& target, const std::string& help);
    /// May be given several times; a comma belongs to its value.
    void each(const std::string& names, std::vector<std::string>& target, const std::string& help);
    /// Exactly two values, one after the other: `--between ck claim`.
    void pair(const std::string& names, std::vector<std::string>& target, const std::string& help);
    /// One of `allowed`; anything else is a usage error that lists them.
    void choice(const std::string& names, std::string& target, const std::vector<std::string>& allowed,
                const std::string& help);
    /// One member of an enumeration by its name.
    template <NamedEnum E>
    void choice(const std::string& names, E& target, const std::string& help) {
        choose(
            names, names_of<E>(), std::string(to_string(target)),
            [&target](const std::string& name) { target = *parse_enum<E>(name); }, help);
    }
    /// The same; stays empty when it is not given.
    template <NamedEnum E>
    void choice(const std::string& names, std::optional<E>& target, const std::string& help) {
        choose(
            names, names_of<E>(), {}, [&target](const std::string& name) { target = parse_enum<E>(name); },
            help);
    }
    /// `--format text|json`.
    void format(OutputFormat& target, const std::string& help = "Format of standard output");
    /// The arguments without a name.
    void positionals(const std::string& name, std::vector<std::string>& target, const std::string& help);

    /// After the parse: throws InputError when two outputs name the same file, or when one names a file that is also read.
    void require_different_files() const;

  private:
    template <NamedEnum E>
    static std::vector<std::string> names_of() {
        std::vector<std::string> names;
        for (const auto& entry : EnumTable<E>::names) names.emplace_back(entry.name);
        return names;
    }
    /// `usual`: what --help shows as the default; empty for none.
    void choose(const std::string& names, const std::vector<std::string>& allowed, const std::string& usual,
                std::function<void(const std::string& name)> take, const std::string& help);

    CLI::App& app_;
    std::vector<const CLI::Option*> outputs_, texts_,
        lists_; ///< texts and parts of lists may be names of files that are read
};

/// Reads words that a run has recorded into the options that `declare` declares. Throws InputError for words that are none of them.
void read_words(const std::vector<std::string>& words, const std::function<void(OptionSet&)>& declare);

} // namespace fmha::cli

template <>
struct fmha::EnumTable<fmha::cli::OutputFormat> {
    using enum cli::OutputFormat;
    static constexpr std::array<EnumName<cli::OutputFormat>, 2> names{{{text, "text"}, {json, "json"}}};
    static constexpr auto& aliases = no_aliases<cli::OutputFormat>;
};
