#include "harness/cli/recorded_catalogue.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cli/arch_files.hpp"
#include "harness/cli/run_identity.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fmha::cli {

std::optional<RecordedCatalogue> RecordedCatalogue::of(const Json& identity) {
    if (!identity.contains("catalogue")) return std::nullopt;
    std::vector<std::string> words;
    for (const Json& word : identity.at("catalogue")) words.push_back(word.get<std::string>());
    RecordedCatalogue made;
    CatalogueFilter filter;
    ArchFiles arch_files;
    read_words(words, [&](OptionSet& options) {
        made.choice_.declare(options);
        arch_files.declare(options);
        options.option("--family", filter.family, "");
        options.option("--where", filter.where, "");
        options.option("--kernel", filter.kernel, "");
        options.positionals("NAMES", filter.names, "");
    });
    made.cases_ = made.choice_.choose(arch_files.load(), identity.at("arch").get<std::string>(), filter);
    if (cases_sha256(made.cases_) != identity.value("cases_sha256", std::string()))
        throw InputError(fmt::format(
            "the list of the shards ({}) has other kernels in this program; merge with the program that "
            "ran them, where its files are",
            fmt::join(words, " ")));
    return made;
}

} // namespace fmha::cli
