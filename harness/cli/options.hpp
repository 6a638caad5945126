#pragma once

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
    /// The arguments without a name.
    void positionals(const std::string& name, std::vector<std::string>& target, const std::string& help);

    /// After the parse: throws InputError when two outputs name the same file, or when one names a file that is also read.
    void require_different_files() const;

  private:
    CLI::App& app_;
    std::vector<const CLI::Option*> outputs_, texts_,
        lists_; ///< texts and parts of lists may be names of files that are read
};

/// Reads words that a run has recorded into the options that `declare` declares. Throws InputError for words that are none of them.
void read_words(const std::vector<std::string>& words, const std::function<void(OptionSet&)>& declare);

} // namespace fmha::cli
