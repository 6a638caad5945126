#include "kernels/generator/source.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/built/manifest.hpp"

#include <fmt/format.h>

#include <unordered_map>

namespace fmha::generator {
namespace {

constexpr std::size_t column_limit = 110;

template <class E>
constexpr std::string_view enum_name;
template <>
constexpr std::string_view enum_name<KernelFamily> = "KernelFamily";
template <>
constexpr std::string_view enum_name<DataType> = "DataType";
template <>
constexpr std::string_view enum_name<Mode> = "Mode";
template <>
constexpr std::string_view enum_name<VLayout> = "VLayout";
template <>
constexpr std::string_view enum_name<MaskClass> = "MaskClass";
template <>
constexpr std::string_view enum_name<BiasType> = "BiasType";
template <>
constexpr std::string_view enum_name<QScale> = "QScale";
template <>
constexpr std::string_view enum_name<Rope> = "Rope";
template <>
constexpr std::string_view enum_name<KvLayout> = "KvLayout";
template <>
constexpr std::string_view enum_name<KvLookup> = "KvLookup";
template <>
constexpr std::string_view enum_name<Pipeline> = "Pipeline";
template <>
constexpr std::string_view enum_name<LoadMode> = "LoadMode";
template <>
constexpr std::string_view enum_name<DropoutVariant> = "DropoutVariant";

/// A value as C++ spells it. Members of enumerations that differ from the default are spelt like their names.
template <class T>
std::string literal(const T& value) {
    if constexpr (NamedEnum<T>)
        return fmt::format("fmha::{}::{}", enum_name<T>, to_string(value));
    else if constexpr (std::integral<T>)
        return field_text(value);
    else
        return fmt::format("\"{}\"", std::string_view(value));
}

/// Lists of numbers read best as one.
template <class T>
concept NumberList = std::same_as<T, Tile> || std::same_as<T, GemmTriples>;

/// "{128, 64, 32}": up to the last number that is not 0.
std::string number_list(const NumberList auto& numbers) {
    std::string text;
    std::string pending;
    each_field(numbers, [&](std::string_view, const auto& number) {
        pending += (text.empty() && pending.empty() ? "" : ", ") + std::to_string(number);
        if (number != 0) text += std::exchange(pending, {});
    });
    return "{" + text + "}";
}

/// One assignment for every field, in field order.
template <Fielded T>
void assignments(const std::string& path, const T& value, std::vector<std::string>& lines) {
    each_field(value, [&](std::string_view name, const auto& member) {
        using M = std::remove_cvref_t<decltype(member)>;
        const std::string place = fmt::format("{}.{}", path, name);
        if constexpr (NumberList<M>)
            lines.push_back(fmt::format("{} = {};", place, number_list(member)));
        else if constexpr (Fielded<M>)
            assignments(place, member, lines);
        else
            lines.push_back(fmt::format("{} = {};", place, literal(member)));
    });
}

std::string kernel_struct(std::size_t number, const KernelConfig& config) {
    std::string text = fmt::format("struct K{} {{\n"
                                   "    FMHA_DEVICE static constexpr fmha::KernelConfig config() {{\n"
                                   "        fmha::KernelConfig c;\n",
                                   number);
    std::vector<std::string> lines, defaults;
    assignments("c", config, lines);
    assignments("c", KernelConfig{}, defaults);
    for (std::size_t i = 0; i < lines.size(); ++i)
        if (lines[i] != defaults[i]) text += fmt::format("        {}\n", lines[i]);
    return text + "        return c;\n    }\n};\n";
}

/// The macro, broken where clang-format breaks it.
std::string exported(std::size_t number, std::string_view name) {
    const std::string symbol = built::symbol_of(name), kernel = fmt::format("K{}", number);
    const std::string head = "FMHA_KERNEL(";
    if (head.size() + symbol.size() + kernel.size() + 3 <= column_limit)
        return fmt::format("{}{}, {})\n", head, symbol, kernel);
    if (head.size() + symbol.size() + 1 <= column_limit)
        return fmt::format("{}{},\n{:{}}{})\n", head, symbol, "", head.size(), kernel);
    const bool one_line = 4 + symbol.size() + kernel.size() + 3 <= column_limit;
    return fmt::format("{}\n    {},{}{})\n", head, symbol, one_line ? " " : "\n    ", kernel);
}

} // namespace

std::vector<Unit> units_of(std::span<const NamedKernel> kernels, std::size_t per_file) {
    std::vector<Unit> units;
    for (const NamedKernel& kernel : kernels) {
        if (units.empty() || units.back().kernels.size() == per_file ||
            !(units.back().kernels.front().config.arch == kernel.config.arch))
            units.emplace_back();
        units.back().kernels.push_back(kernel);
    }
    for (Unit& unit : units) {
        unit.stem = unit.kernels.front().name;
        if (unit.kernels.size() > 1) unit.stem += fmt::format("+{}", unit.kernels.size() - 1);
    }
    return units;
}

std::string source_of(const Unit& unit) {
    std::string text;
    for (const NamedKernel& kernel : unit.kernels) text += fmt::format("// {}\n", identifier(kernel.config));
    text += "#include \"kernels/targets/hip/entry.hpp\"\n\nnamespace {\n\n";
    for (std::size_t i = 0; i < unit.kernels.size(); ++i)
        text += kernel_struct(i, unit.kernels[i].config) + "\n";
    text += "} // namespace\n\n";
    for (std::size_t i = 0; i < unit.kernels.size(); ++i) text += exported(i, unit.kernels[i].name);
    return text;
}

void check_symbols(std::span<const NamedKernel> kernels) {
    std::unordered_map<std::string, const NamedKernel*> owners;
    for (const NamedKernel& kernel : kernels) {
        const auto [owner, added] = owners.emplace(built::symbol_of(kernel.name), &kernel);
        if (!added)
            throw DeclarationError(fmt::format("kernels {} and {} would both export {}",
                                               identifier(owner->second->config), identifier(kernel.config),
                                               owner->first));
    }
}

} // namespace fmha::generator
