#include "harness/run/case_result.hpp"

#include "dispatcher/system/shell_word.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/results/result_json.hpp"

#include <fmt/format.h>

namespace fmha::harness {

CaseResult blank_result(const Case& c) {
    CaseResult result;
    result.name = c.id;
    result.about = c.about;
    result.family = c.family;
    result.tier = c.tier;
    result.labels = c.labels;
    result.seed = c.seed;
    result.sampled = c.sampled_rows;
    return result;
}

int launches_of(const Case& c, const CaseRunOptions& options) {
    return (options.repeats > 0 ? options.repeats : c.repeats) + options.warm_up;
}

CaseResult lost_result(const Case& c, const CaseRunOptions& options, const TaskEnd& end) {
    CaseResult result = blank_result(c);
    result.message = end.answer;
    if (end.kind == TaskEnd::Kind::no_memory)
        result.not_run_reason = NotRunReason::no_memory;
    else if (end.kind == TaskEnd::Kind::no_process)
        result.not_run_reason = NotRunReason::no_device;
    else
        result.outcome = end.kind == TaskEnd::Kind::timed_out ? Outcome::timed_out : Outcome::crashed;
    result.reproduce = reproducing_command(c, options, "");
    return result;
}

std::vector<CaseResult> answered(const Case& c, const CaseRunOptions& options, const TaskEnd& end) {
    if (end.kind != TaskEnd::Kind::done) return {lost_result(c, options, end)};
    try {
        return unpack(end.answer);
    } catch (const InputError& error) {
        return {lost_result(c, options, {TaskEnd::Kind::crashed, error.what()})};
    }
}

CaseResult unfinished_result(const Case& c, const CaseRunOptions& options, NotRunReason reason) {
    CaseResult result = blank_result(c);
    result.not_run_reason = reason;
    result.message = reason == NotRunReason::after_failure
                         ? "the run ended at an earlier case"
                         : "the run was interrupted before this case had finished";
    result.reproduce = reproducing_command(c, options, "");
    return result;
}

std::string reproducing_command(const Case& c, const CaseRunOptions& options, const std::string& kernel) {
    const GivenOptions& given = options.given;
    std::string command = fmt::format("fmha verify {} --arch {}", system::shell_word(c.id), options.arch);
    if (!given.catalogue.empty()) command += " --catalogue --rules " + given.catalogue;
    command += given.target_flags;
    if (!given.arch_dir.empty()) command += " --arch-dir " + system::shell_word(given.arch_dir);
    if (!given.cases_root.empty()) command += " --cases-root " + system::shell_word(given.cases_root);
    if (options.all_kernels && !kernel.empty())
        command += (given.catalogue.empty() ? " --kernels all --kernel " : " --kernel ") +
                   system::shell_word(kernel);
    if (!given.where.empty()) command += " --where " + system::shell_word(given.where);
    if (options.repeats > 0) command += fmt::format(" --repeats {}", options.repeats);
    if (options.warm_up > 0) command += fmt::format(" --warmup {}", options.warm_up);
    if (given.timeout) command += fmt::format(" --timeout {}", given.timeout->count());
    return command;
}

} // namespace fmha::harness
