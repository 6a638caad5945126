#include "dispatcher/types/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace fmha {
namespace {

using Library = nlohmann::ordered_json;

/// Values are copied, written and destroyed level by level on the stack, which may have no more than 128 KiB.
constexpr std::size_t deepest = 64;

Library to_library(const Json& value) {
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number_unsigned()) return value.get<std::uint64_t>();
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (value.is_number()) return value.get<double>();
    if (value.is_string()) return value.text();
    if (value.is_array()) {
        Library array = Library::array();
        for (const Json& item : value) array.push_back(to_library(item));
        return array;
    }
    if (value.is_object()) {
        // Keys are known to differ, and looking each of them up would take the square of their number.
        Library::object_t object;
        for (const auto& [key, member] : value.items())
            static_cast<Library::object_t::Container&>(object).emplace_back(key, to_library(member));
        return object;
    }
    return nullptr;
}

} // namespace

Json::Json(std::initializer_list<Member> members) : kind_(Kind::object) {
    for (const Member& member : members) (*this)[member.key] = member.value;
}

Json Json::array(std::initializer_list<Json> values) {
    Json array;
    array.kind_ = Kind::array;
    array.items_ = values;
    return array;
}

Json Json::object() {
    Json object;
    object.kind_ = Kind::object;
    return object;
}

/// Makes a value of nlohmann's events. Its own values look every key up among those before it, which takes the square of their
/// number, and keep the last of two equal keys without a word.
class Json::Builder final : public nlohmann::json_sax<Library> {
  public:
    Json take() { return std::move(root_); }

    bool null() override { return add(nullptr); }
    bool boolean(bool value) override { return add(value); }
    bool number_integer(number_integer_t value) override { return add(value); }
    bool number_unsigned(number_unsigned_t value) override { return add(value); }
    bool number_float(number_float_t value, const string_t&) override { return add(value); }
    bool string(string_t& value) override { return add(std::move(value)); }
    bool binary(binary_t&) override { return false; } // no text has one
    bool start_object(std::size_t) override { return begin(Json::object()); }
    bool start_array(std::size_t) override { return begin(Json::array()); }
    bool end_object() override { return end(); }
    bool end_array() override { return end(); }

    bool key(string_t& name) override {
        Level& level = open_.back();
        if (!is_new(level, name)) throw JsonError("key \"" + name + "\" appears twice in one object");
        level.value.keys_.push_back(std::move(name));
        return true;
    }

    bool parse_error(std::size_t, const std::string&, const Library::exception& error) override {
        // what() is "[json.exception.parse_error.101] parse error at line 3, column 5: …".
        const std::string what = error.what();
        const auto bracket = what.find("] ");
        throw JsonError("not valid JSON: " +
                        (bracket == std::string::npos ? what : what.substr(bracket + 2)));
    }

  private:
    struct Level {
        Json value;
        std::set<std::string, std::less<>> names; ///< of an object with many keys
    };

    bool add(Json value) {
        if (open_.empty())
            root_ = std::move(value);
        else
            open_.back().value.items_.push_back(std::move(value));
        return true;
    }
    bool begin(Json value) {
        if (open_.size() == deepest)
            throw JsonError("nested more than " + std::to_string(deepest) + " levels deep");
        open_.push_back({std::move(value), {}});
        return true;
    }
    bool end() {
        Json value = std::move(open_.back().value);
        open_.pop_back();
        return add(std::move(value));
    }
    static bool is_new(Level& level, const std::string& name) {
        constexpr std::size_t few = 16;
        const auto& keys = level.value.keys_;
        if (keys.size() < few) return !level.value.contains(name);
        if (level.names.empty()) level.names.insert(keys.begin(), keys.end());
        return level.names.insert(name).second;
    }

    Json root_;
    std::vector<Level> open_;
};

Json Json::parse(std::string_view text) {
    Builder builder;
    Library::sax_parse(text, &builder);
    return builder.take();
}

std::optional<Json> Json::try_parse(std::string_view text) {
    try {
        return parse(text);
    } catch (const JsonError&) {
        return std::nullopt;
    }
}

std::string Json::dump(int indent) const {
    return to_library(*this).dump(indent, ' ', false, Library::error_handler_t::replace);
}

const std::string& Json::text() const {
    if (!is_string()) refuse("a string");
    return text_;
}

bool Json::boolean() const {
    if (!is_boolean()) refuse("true or false");
    return number_.natural != 0;
}

std::int64_t Json::integer() const {
    if (kind_ == Kind::integer) return number_.integer;
    const std::uint64_t value = natural();
    if (!std::in_range<std::int64_t>(value)) refuse_range();
    return static_cast<std::int64_t>(value);
}

std::uint64_t Json::natural() const {
    if (!is_number_integer()) refuse("an integer");
    if (kind_ == Kind::integer) refuse_range();
    return number_.natural;
}

double Json::real() const {
    if (kind_ == Kind::integer) return static_cast<double>(number_.integer);
    if (kind_ == Kind::natural) return static_cast<double>(number_.natural);
    if (kind_ != Kind::real) refuse("a number");
    return number_.real;
}

const std::vector<Json>& Json::elements() const {
    if (!is_array()) refuse("an array");
    return items_;
}

std::size_t Json::size() const {
    if (is_array() || is_object()) return items_.size();
    return is_null() ? 0 : 1;
}

std::size_t Json::index_of(std::string_view key) const {
    const auto found = std::find(keys_.begin(), keys_.end(), key);
    return static_cast<std::size_t>(found - keys_.begin());
}

const Json& Json::at(std::size_t index) const {
    if (index >= elements().size())
        throw JsonError("element " + std::to_string(index) + " is not in an array of " +
                        std::to_string(size()));
    return items_[index];
}

const Json& Json::at(std::string_view key) const {
    if (!is_object()) refuse("an object");
    const std::size_t index = index_of(key);
    if (index == items_.size()) throw JsonError("key \"" + std::string(key) + "\" is missing");
    return items_[index];
}

Json& Json::operator[](std::size_t index) {
    return const_cast<Json&>(at(index)); // NOLINT(cppcoreguidelines-pro-type-const-cast): *this is not const
}

Json& Json::operator[](std::string_view key) {
    if (is_null()) kind_ = Kind::object;
    if (!is_object()) refuse("an object");
    const std::size_t index = index_of(key);
    if (index == items_.size()) {
        keys_.emplace_back(key);
        items_.emplace_back();
    }
    return items_[index];
}

bool Json::contains(std::string_view key) const {
    return is_object() && index_of(key) < items_.size();
}

Json::Iterator Json::find(std::string_view key) const {
    return {*this, is_object() ? index_of(key) : items_.size()};
}

void Json::push_back(Json value) {
    if (is_null()) kind_ = Kind::array;
    static_cast<void>(elements());
    items_.push_back(std::move(value));
}

void Json::update(const Json& other) {
    for (const auto& [key, value] : other.items()) (*this)[key] = value;
}

bool operator==(const Json& one, const Json& other) {
    using Kind = Json::Kind;
    if (one.is_number() && other.is_number() && one.kind_ != other.kind_) {
        // −1 and 2^64 − 1 are of different kinds, and an integer equals the real number of its value.
        return (one.kind_ == Kind::real || other.kind_ == Kind::real) && one.real() == other.real();
    }
    if (one.kind_ != other.kind_) return false;
    switch (one.kind_) {
    case Kind::null:
        return true;
    case Kind::boolean:
    case Kind::natural:
        return one.number_.natural == other.number_.natural;
    case Kind::integer:
        return one.number_.integer == other.number_.integer;
    case Kind::real:
        return one.number_.real == other.number_.real;
    case Kind::string:
        return one.text_ == other.text_;
    case Kind::array:
        return one.items_ == other.items_;
    case Kind::object:
        break;
    }
    return one.keys_ == other.keys_ && one.items_ == other.items_;
}

void Json::refuse(std::string_view expected) const {
    throw JsonError("expected " + std::string(expected) + ", got " + dump());
}

void Json::refuse_range() const {
    throw JsonError("the number " + dump() + " is out of range");
}

} // namespace fmha
