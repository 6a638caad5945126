#include "harness/cli/run_identity.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/program.hpp"
#include "dispatcher/system/sha256.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/cases/case_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>

namespace fmha::cli {
namespace {

/// Of every file in a folder; "" for no folder.
std::string digest_of_folder(const std::string& folder) {
    if (folder.empty()) return {};
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.is_regular_file())
            files.emplace(entry.path().lexically_relative(folder).generic_string(),
                          system::sha256(system::read_file(entry.path())));
    return system::sha256(fmt::format("{}", files));
}

} // namespace

std::string program_sha256() {
    return system::sha256(system::program_bytes());
}

std::string cases_sha256(const std::vector<harness::Case>& cases) {
    std::string text;
    for (const auto& c : cases) {
        text += fmt::format("{}\n{}\n{}\n{}\n{}\n", c.id, c.about, to_string(c.tier),
                            fmt::join(c.labels, ","), c.seed);
        for (const auto& field : harness::case_fields())
            if (!field.compound()) text += fmt::format("{}={}\n", field.name, field.print(c));
    }
    return system::sha256(text);
}

Json run_identity(const std::vector<harness::Case>& cases, const harness::Target& target,
                  const harness::RunOptions& options) {
    const auto& run = options.of_case;
    const auto& given = run.given;
    const std::string kernels = target.kernel_build();
    return {{"cases", cases.size()},
            {"cases_sha256", cases_sha256(cases)},
            {"cases_root", given.cases_root},
            {"target", std::string(target.name()) + given.target_flags},
            {"machine", target.description()},
            {"driver", target.driver()},
            {"compiler", __VERSION__},
            {"arch", run.arch},
            {"arch_files_sha256", digest_of_folder(given.arch_dir)},
            {"kernels", !given.catalogue.empty() ? "list " + given.catalogue
                        : run.all_kernels        ? "all"
                                                 : "planned"},
            {"kernel", run.kernel_filter},
            {"where", given.where},
            {"repeats", run.repeats},
            {"warmup", run.warm_up},
            {"timeout", options.timeout.count()},
            {"memory_limit", run.memory_limit},
            {"work_limit", fmt::format("{}", run.work_limit)},
            {"version", FMHA_VERSION},
            {"program_sha256", program_sha256()},
            {"kernels_sha256", kernels.empty() ? kernels : system::sha256(kernels)}};
}

} // namespace fmha::cli
