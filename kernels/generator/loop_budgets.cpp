#include "kernels/generator/loop_budgets.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/types/strict_json.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace fmha::generator {
namespace {

struct Number {
    std::string_view name;
    std::int64_t LoopBudget::*member;
    std::string_view what;
};
constexpr std::array numbers{
    Number{"vector", &LoopBudget::vector, "vector instructions"},
    Number{"moves", &LoopBudget::moves, "copies of registers"},
    Number{"wide_integers", &LoopBudget::wide_integers, "64-bit integer instructions"},
    Number{"selects", &LoopBudget::selects, "selections by a predicate"},
    Number{"busy", &LoopBudget::busy, "thousandths of the time that the matrix unit is busy at most"},
    Number{"waiting", &LoopBudget::waiting,
           "thousandths of the time that the matrix unit is busy at most beside waits"},
};

std::filesystem::path file_of(const std::filesystem::path& folder, const ArchName& arch) {
    return folder / (arch.str() + ".json");
}

std::int64_t count_of(const Json& object, std::string_view key, const std::string& where) {
    const auto found = object.find(std::string(key));
    if (found == object.end() || !(*found).is_number_integer() || (*found).get<std::int64_t>() < 0)
        throw InputError(fmt::format("{}: key \"{}\" must be a count of 0 or more", where, key));
    return (*found).get<std::int64_t>();
}

std::string text_of(const Json& object, std::string_view key, const std::string& where) {
    const auto found = object.find(std::string(key));
    if (found == object.end() || !(*found).is_string())
        throw InputError(fmt::format("{}: key \"{}\" must be a text", where, key));
    return (*found).get<std::string>();
}

void only(const Json& object, std::size_t keys, const std::string& where) {
    if (!object.is_object()) throw InputError(fmt::format("{}: expected an object", where));
    if (object.size() != keys)
        throw InputError(fmt::format("{}: expected {} keys, got {}", where, keys, object.size()));
}

const Json& part(const Json& document, const char* key, bool array, const std::string& where) {
    const auto found = document.find(key);
    if (found == document.end() || (array ? !(*found).is_array() : !(*found).is_object()))
        throw InputError(fmt::format("{}: key \"{}\" must be an {}", where, key, array ? "array" : "object"));
    return *found;
}

bool at_least(const Number& number) {
    return number.member == &LoopBudget::busy || number.member == &LoopBudget::waiting;
}

} // namespace

LoopBudget budget_of(const built::LoopModel& loop) {
    constexpr double thousandths = 1000.0;
    const built::LoopIteration& plain = loop.plain;
    return {plain[built::LoopUnit::vector].instructions + plain[built::LoopUnit::transcendental].instructions,
            plain.moves,
            plain.wide_integers,
            plain.selects,
            static_cast<std::int64_t>(thousandths * built::busy_together(plain, loop.waves)),
            static_cast<std::int64_t>(thousandths * built::busy_waiting(plain, loop.waves))};
}

LoopBudgets read_budgets(const std::filesystem::path& folder, const ArchName& arch) {
    const auto path = file_of(folder, arch);
    if (!std::filesystem::exists(path)) return {};
    const std::string where = path.string();
    const Json document = parse_strict_json(system::read_file(path), where);
    constexpr std::size_t keys = 3;
    only(document, keys, where);
    LoopBudgets budgets;
    budgets.compiler = text_of(document, "compiler", where);
    const Json& accepted = part(document, "accepted", true, where);
    for (std::size_t i = 0; i < accepted.size(); ++i) {
        const std::string place = fmt::format("{}.accepted[{}]", where, i);
        only(accepted[i], keys, place);
        budgets.accepted.push_back({text_of(accepted[i], "date", place),
                                    text_of(accepted[i], "reason", place),
                                    count_of(accepted[i], "changes", place)});
    }
    const Json& kernels = part(document, "kernels", false, where);
    for (const auto& [name, numbers_of] : kernels.items()) {
        const std::string place = fmt::format("{}.kernels.{}", where, name);
        only(numbers_of, numbers.size(), place);
        LoopBudget budget;
        for (const Number& number : numbers) budget.*number.member = count_of(numbers_of, number.name, place);
        budgets.kernels[name] = budget;
    }
    return budgets;
}

void write_budgets(const LoopBudgets& budgets, const std::filesystem::path& folder, const ArchName& arch) {
    // A line for each kernel, so that a changed budget changes one line.
    std::string text =
        fmt::format("{{\n  \"compiler\": {},\n  \"accepted\": [", Json(budgets.compiler).dump());
    for (std::size_t i = 0; i < budgets.accepted.size(); ++i) {
        const BudgetAcceptance& entry = budgets.accepted[i];
        text += fmt::format("{}\n    {{\"date\": {}, \"reason\": {}, \"changes\": {}}}", i > 0 ? "," : "",
                            Json(entry.date).dump(), Json(entry.reason).dump(), entry.changes);
    }
    text += "\n  ],\n  \"kernels\": {";
    bool first = true;
    for (const auto& [name, budget] : budgets.kernels) {
        text += fmt::format("{}\n    {}: {{", std::exchange(first, false) ? "" : ",", Json(name).dump());
        for (std::size_t i = 0; i < numbers.size(); ++i)
            text +=
                fmt::format("{}\"{}\": {}", i > 0 ? ", " : "", numbers[i].name, budget.*numbers[i].member);
        text += '}';
    }
    text += "\n  }\n}\n";
    std::filesystem::create_directories(folder);
    system::write_file(file_of(folder, arch), text);
}

BudgetVerdict over_budget(const built::Manifest& manifest, const std::filesystem::path& folder) {
    std::map<std::string, LoopBudgets> by_arch;
    BudgetVerdict verdict;
    built::each_loop(manifest, [&](const built::BuiltKernel& kernel, const built::LoopModel& loop,
                                   const built::CodeObject& object) {
        const std::string& compiler = object.compiler;
        const std::string arch = kernel.config.arch.str();
        const auto [at, is_new] = by_arch.try_emplace(arch);
        LoopBudgets& budgets = at->second;
        if (is_new) {
            budgets = read_budgets(folder, kernel.config.arch);
            if (!budgets.kernels.empty() && budgets.compiler != compiler)
                verdict.notes.push_back(
                    fmt::format("{}: the budgets are of {}, these loops of {}: not judged",
                                file_of(folder, kernel.config.arch).string(), budgets.compiler, compiler));
        }
        if (!budgets.kernels.empty() && budgets.compiler != compiler) {
            ++verdict.not_judged;
            return;
        }
        ++verdict.judged;
        const auto budget = budgets.kernels.find(kernel.name);
        if (budget == budgets.kernels.end()) {
            verdict.findings.push_back(
                {kernel.name, "its loop has no budget; if it is right: --accept --reason \"…\""});
            return;
        }
        const LoopBudget now = budget_of(loop);
        for (const Number& number : numbers) {
            const std::int64_t is = now.*number.member, may = budget->second.*number.member;
            if (at_least(number) ? is < may : is > may)
                verdict.findings.push_back(
                    {kernel.name, fmt::format("its plain iteration has {} {}, its budget is {} {}", is,
                                              number.what, at_least(number) ? "at least" : "at most", may)});
        }
    });
    return verdict;
}

std::vector<std::string> accept_budgets(const built::Manifest& manifest, const std::filesystem::path& folder,
                                        const std::string& reason, const std::string& date) {
    struct Change {
        ArchName arch;
        LoopBudgets budgets;
        std::int64_t changes = 0;
    };
    std::map<std::string, Change> by_arch;
    built::each_loop(manifest, [&](const built::BuiltKernel& kernel, const built::LoopModel& loop,
                                   const built::CodeObject& object) {
        const std::string& compiler = object.compiler;
        const auto [at, is_new] = by_arch.try_emplace(kernel.config.arch.str());
        Change& change = at->second;
        if (is_new) {
            change.arch = kernel.config.arch;
            change.budgets = read_budgets(folder, change.arch);
            if (change.budgets.compiler != compiler) change.budgets.kernels.clear();
            change.budgets.compiler = compiler;
        }
        const auto [budget, added] = change.budgets.kernels.try_emplace(kernel.name);
        const LoopBudget now = budget_of(loop);
        if (!added && budget->second == now) return;
        budget->second = now;
        ++change.changes;
    });
    std::vector<std::string> sentences;
    for (auto& [arch, change] : by_arch) {
        sentences.push_back(fmt::format("{}: {} budgets changed or are new", arch, change.changes));
        if (change.changes == 0) continue;
        change.budgets.accepted.push_back({date, reason, change.changes});
        write_budgets(change.budgets, folder, change.arch);
    }
    return sentences;
}

} // namespace fmha::generator
