#include "kernels/catalog/rules/table_reader.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fmha::catalog::audit {

TableNode::TableNode(const arch::Part& part) : TableNode(part.value, part.source) {}

void TableNode::refuse(const std::string& expected) const {
    std::string shown = value_->dump();
    if (shown.size() > 80) shown = shown.substr(0, 77) + "...";
    throw InputError(source_ + ": expected " + expected + ", got " + shown);
}

bool TableNode::has(std::string_view key) const {
    return value_->is_object() && value_->contains(key);
}

TableNode TableNode::at(std::string_view key) const {
    if (!has(key)) refuse("an object with the key \"" + std::string(key) + "\"");
    return {&value_->at(key), source_ + "/" + std::string(key)};
}

std::vector<std::string> TableNode::keys() const {
    if (!value_->is_object()) refuse("an object");
    std::vector<std::string> names;
    for (const auto& [key, unused] : value_->items())
        if (!key.starts_with('_')) names.push_back(key);
    return names;
}

void TableNode::allow_keys(std::initializer_list<std::string_view> known) const {
    for (const std::string& key : keys())
        if (std::ranges::find(known, key) == known.end())
            throw InputError(
                fmt::format("{}: unknown key \"{}\"; allowed: {}", source_, key, fmt::join(known, ", ")));
}

std::vector<TableNode> TableNode::items() const {
    if (!value_->is_array()) refuse("an array");
    std::vector<TableNode> nodes;
    nodes.reserve(value_->size());
    for (std::size_t i = 0; i < value_->size(); ++i)
        nodes.push_back(TableNode(&value_->at(i), source_ + "/" + std::to_string(i)));
    return nodes;
}

std::int64_t TableNode::integer(std::int64_t low, std::int64_t high) const {
    const std::string range = "an integer from " + std::to_string(low) + " to " + std::to_string(high);
    if (!value_->is_number_integer()) refuse(range);
    const auto number = value_->get<std::int64_t>();
    if (number < low || number > high) refuse(range);
    return number;
}

bool TableNode::boolean() const {
    if (!value_->is_boolean()) refuse("true or false");
    return value_->get<bool>();
}

std::string TableNode::text() const {
    if (!value_->is_string()) refuse("a string");
    return value_->get<std::string>();
}

std::vector<std::string> TableNode::texts() const {
    std::vector<std::string> values;
    for (const TableNode& node : items()) values.push_back(node.text());
    return values;
}

std::vector<std::string> TableNode::data_types() const {
    auto types = texts();
    std::ranges::sort(types);
    if (std::ranges::adjacent_find(types) != types.end()) refuse("every data type once");
    return types;
}

std::vector<std::int64_t> TableNode::distinct_integers() const {
    std::vector<std::int64_t> values;
    for (const TableNode& node : items()) {
        values.push_back(node.extent());
        if (std::ranges::count(values, values.back()) > 1) node.refuse("a number that is not listed yet");
    }
    return values;
}

} // namespace fmha::catalog::audit
