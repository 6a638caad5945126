#pragma once

#include "dispatcher/types/error.hpp"

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace fmha {

/// A JSON text or value that is not as expected. Readers of files add the file and the key.
class JsonError : public InputError {
  public:
    using InputError::InputError;
};

/// A JSON value; keys of an object stay in the order in which they came. One source parses and writes with
/// nlohmann-json, whose headers cost every source that includes them seconds of compile time.
class Json {
  public:
    /// One key of an object and its value.
    struct Member;
    struct Item;
    class Iterator;
    class Items;

    Json() = default; ///< null
    // Values turn into JSON by themselves, in lists of members above all.
    // NOLINTBEGIN(google-explicit-constructor, bugprone-signed-char-misuse)
    Json(std::nullptr_t) {}
    template <std::same_as<bool> T>
    Json(T value) : kind_(Kind::boolean), number_{.natural = value ? 1U : 0U} {}
    template <std::integral T>
    requires(!std::same_as<T, bool>) Json(T value) : kind_(value < T{} ? Kind::integer : Kind::natural) {
        if (value < T{})
            number_.integer = static_cast<std::int64_t>(value);
        else
            number_.natural = static_cast<std::uint64_t>(value);
    }
    template <std::floating_point T>
    Json(T value) : kind_(Kind::real), number_{.real = static_cast<double>(value)} {}
    Json(std::string text) : kind_(Kind::string), text_(std::move(text)) {}
    Json(std::string_view text) : Json(std::string(text)) {}
    Json(const char* text) : Json(std::string(text)) {}
    /// An object: `Json{{"name", name}, {"count", 3}}`.
    Json(std::initializer_list<Member> members);
    template <class T>
    Json(const std::vector<T>& values) : kind_(Kind::array), items_(values.begin(), values.end()) {}
    template <class T>
    Json(const std::map<std::string, T>& members) : kind_(Kind::object) {
        for (const auto& [key, value] : members) {
            keys_.push_back(key);
            items_.emplace_back(value);
        }
    }
    // NOLINTEND(google-explicit-constructor, bugprone-signed-char-misuse)

    static Json array(std::initializer_list<Json> values = {});
    static Json object();

    /// Throws JsonError for a syntax error, a number that does not fit, a repeated key or more than 1000 levels: the reason
    /// and, of a syntax error, the place.
    static Json parse(std::string_view text);
    /// nullopt for a text that `parse` refuses.
    static std::optional<Json> try_parse(std::string_view text);

    /// On one line, or with `indent` spaces a level. Bytes that are no UTF-8 become U+FFFD.
    std::string dump(int indent = -1) const;

    bool is_null() const { return kind_ == Kind::null; }
    bool is_boolean() const { return kind_ == Kind::boolean; }
    bool is_number() const { return is_number_integer() || kind_ == Kind::real; }
    bool is_number_integer() const { return kind_ == Kind::integer || kind_ == Kind::natural; }
    bool is_number_unsigned() const { return kind_ == Kind::natural; }
    bool is_string() const { return kind_ == Kind::string; }
    bool is_array() const { return kind_ == Kind::array; }
    bool is_object() const { return kind_ == Kind::object; }

    /// The value as a bool, a number, a string, a pair or a vector of them. Throws JsonError for a value of another kind, and for
    /// an integer that does not fit.
    template <class T>
    T get() const {
        if constexpr (std::same_as<T, bool>) {
            return boolean();
        } else if constexpr (std::unsigned_integral<T>) {
            const std::uint64_t value = natural();
            if (!std::in_range<T>(value)) refuse_range();
            return static_cast<T>(value);
        } else if constexpr (std::signed_integral<T>) {
            const std::int64_t value = integer();
            if (!std::in_range<T>(value)) refuse_range();
            return static_cast<T>(value);
        } else if constexpr (std::floating_point<T>) {
            return static_cast<T>(real());
        } else if constexpr (std::same_as<T, std::string>) {
            return text();
        } else if constexpr (requires { typename T::first_type; }) {
            if (elements().size() != 2) refuse("an array of two");
            return {at(0).get<typename T::first_type>(), at(1).get<typename T::second_type>()};
        } else {
            T values;
            for (const Json& item : elements()) values.push_back(item.get<typename T::value_type>());
            return values;
        }
    }
    /// Of a string. Throws JsonError for another kind.
    const std::string& text() const;

    /// Elements of an array or members of an object, 0 for null, 1 otherwise.
    std::size_t size() const;
    bool empty() const { return size() == 0; }
    const Json& at(std::size_t index) const;
    const Json& at(std::string_view key) const;
    const Json& operator[](std::size_t index) const { return at(index); }
    const Json& operator[](std::string_view key) const { return at(key); }
    Json& operator[](std::size_t index);
    /// Adds the key if it is not there; null becomes an object.
    Json& operator[](std::string_view key);
    bool contains(std::string_view key) const;
    /// `end()` for a key that is not there, and for a value that is no object.
    Iterator find(std::string_view key) const;
    /// The value of a key as `get` gives it, or `fallback` without the key.
    template <class T>
    T value(std::string_view key, T fallback) const {
        return contains(key) ? at(key).get<T>() : fallback;
    }
    /// Elements of an array, or the values of an object.
    Iterator begin() const;
    Iterator end() const;
    const Json& front() const { return at(std::size_t{0}); }
    const Json& back() const { return at(size() - 1); }
    /// Keys and values of an object; none for other kinds.
    Items items() const;
    /// Null becomes an array.
    void push_back(Json value);
    /// Takes over all members of another object.
    void update(const Json& other);

    friend bool operator==(const Json&, const Json&);

  private:
    friend class Iterator;
    class Builder;
    enum class Kind : std::uint8_t { null, boolean, integer, natural, real, string, array, object };
    union Number {
        std::uint64_t natural;
        std::int64_t integer;
        double real;
    };

    bool boolean() const;
    std::int64_t integer() const;
    std::uint64_t natural() const;
    double real() const;
    const std::vector<Json>& elements() const;
    std::size_t index_of(std::string_view key) const;
    [[noreturn]] void refuse(std::string_view expected) const;
    [[noreturn]] void refuse_range() const;

    Kind kind_ = Kind::null;
    Number number_{};
    std::string text_;
    std::vector<std::string> keys_; ///< of an object, one for each of `items_`
    std::vector<Json> items_;
};

struct Json::Member {
    Member(std::string name, Json content) : key(std::move(name)), value(std::move(content)) {}
    std::string key;
    Json value;
};

class Json::Iterator {
  public:
    using value_type = Json;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(const Json& owner, std::size_t index) : owner_(&owner), index_(index) {}

    const Json& operator*() const { return owner_->items_[index_]; }
    const Json* operator->() const { return &**this; }
    const std::string& key() const { return owner_->keys_[index_]; }
    Iterator& operator++() {
        ++index_;
        return *this;
    }
    Iterator operator++(int) {
        Iterator before = *this;
        ++index_;
        return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

  private:
    const Json* owner_ = nullptr;
    std::size_t index_ = 0;
};

/// A key of an object and its value, for `for (const auto& [key, value] : json.items())`.
struct Json::Item {
    const std::string& key;
    const Json& value;
};

class Json::Items {
  public:
    class At {
      public:
        explicit At(Iterator at) : at_(at) {}
        Item operator*() const { return {at_.key(), *at_}; }
        At& operator++() {
            ++at_;
            return *this;
        }
        friend bool operator==(const At&, const At&) = default;

      private:
        Iterator at_;
    };
    explicit Items(const Json& owner) : owner_(&owner) {}
    At begin() const { return At({*owner_, 0}); }
    At end() const { return At({*owner_, owner_->is_object() ? owner_->size() : 0}); }

  private:
    const Json* owner_;
};

inline Json::Iterator Json::begin() const {
    return {*this, 0};
}
inline Json::Iterator Json::end() const {
    return {*this, items_.size()};
}
inline Json::Items Json::items() const {
    return Items(*this);
}

} // namespace fmha
