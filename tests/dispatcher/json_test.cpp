// The JSON value: it writes JSON with every character escaped that must be, and reads it back as it was.

#include "dispatcher/types/json.hpp"
#include "tests/support/small_stack.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <limits>

namespace fmha {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Json, WritesEveryKindInOrder) {
    const Json json{{"text", "a"},
                    {"count", std::size_t{3}},
                    {"less", -2},
                    {"half", 0.5},
                    {"whole", 1.0},
                    {"yes", true},
                    {"none", nullptr},
                    {"list", Json::array({1, "b", Json::array(), Json::object()})},
                    {"names", std::vector<std::string>{"x", "y"}},
                    {"by_name", std::map<std::string, std::int64_t>{{"m", 7}}},
                    {"inside", {{"z", 1}, {"a", 2}}}};
    EXPECT_EQ(json.dump(),
              R"({"text":"a","count":3,"less":-2,"half":0.5,"whole":1.0,"yes":true,"none":null,)"
              R"("list":[1,"b",[],{}],"names":["x","y"],"by_name":{"m":7},"inside":{"z":1,"a":2}})");
    EXPECT_EQ(Json({{"a", Json::array({1, 2})}, {"b", Json::object()}}).dump(1),
              "{\n \"a\": [\n  1,\n  2\n ],\n \"b\": {}\n}");
    EXPECT_EQ(Json().dump(), "null");
    EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null") << "JSON has no infinity";
}

TEST(Json, EscapesTextAndKeys) {
    EXPECT_EQ(Json("quote \" slash \\ \b\f\n\r\t \x01\x1f é").dump(),
              R"("quote \" slash \\ \b\f\n\r\t \u0001\u001f é")");
    EXPECT_EQ(Json({{"a\"b\n", 1}}).dump(), R"({"a\"b\n":1})");
    EXPECT_EQ(Json("cut \xC3").dump(), "\"cut \xEF\xBF\xBD\"") << "not UTF-8: the replacement character";
    const std::string zero("a\0b", 3);
    EXPECT_EQ(Json(zero).dump(), R"("a\u0000b")");
    EXPECT_EQ(Json::parse(Json(zero).dump()).text(), zero);
}

TEST(Json, ComesBackAsItWas) {
    const Json json{{"text", "\"\n\\"},
                    {"large", std::numeric_limits<std::uint64_t>::max()},
                    {"small", std::numeric_limits<std::int64_t>::min()},
                    {"third", 1.0 / 3.0},
                    {"tiny", 5e-324},
                    {"list", Json::array({true, nullptr, Json{{"k", "v"}}})}};
    for (const int indent : {-1, 0, 2}) EXPECT_EQ(Json::parse(json.dump(indent)), json) << indent;
    EXPECT_EQ(Json::parse(json.dump()).dump(), json.dump());
}

TEST(Json, ReadsNumbersOfEveryWidth) {
    EXPECT_EQ(Json::parse("18446744073709551615").get<std::uint64_t>(),
              std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(Json::parse("-9").get<int>(), -9);
    EXPECT_EQ(Json::parse("7").get<double>(), 7.0);
    EXPECT_EQ(Json::parse("[1, 2]").get<std::vector<std::int32_t>>(), (std::vector<std::int32_t>{1, 2}));
    EXPECT_EQ((Json::parse("[[1, 2]]").get<std::vector<std::pair<int, int>>>().front()), std::pair(1, 2));
    const auto thrown = [](const char* text, auto read) { return [=] { read(Json::parse(text)); }; };
    EXPECT_THAT(thrown("-1", [](const Json& json) { json.get<std::uint64_t>(); }),
                ThrowsMessage<JsonError>(HasSubstr("-1 is out of range")));
    EXPECT_THAT(thrown("300", [](const Json& json) { json.get<std::int8_t>(); }),
                ThrowsMessage<JsonError>(HasSubstr("300 is out of range")));
    EXPECT_THAT(thrown("1.5", [](const Json& json) { json.get<int>(); }),
                ThrowsMessage<JsonError>(HasSubstr("expected an integer, got 1.5")));
    EXPECT_THAT(thrown("[3]", [](const Json& json) { json.text(); }),
                ThrowsMessage<JsonError>(HasSubstr("expected a string, got [3]")));
    EXPECT_THAT(thrown("[[1]]", [](const Json& json) { json.get<std::vector<std::pair<int, int>>>(); }),
                ThrowsMessage<JsonError>(HasSubstr("expected an array of two, got [1]")));
}

TEST(Json, FindsAndAddsKeys) {
    Json json;
    json["b"] = 1;
    json["a"]["deep"] = "x";
    json["b"] = 2;
    EXPECT_EQ(json.dump(), R"({"b":2,"a":{"deep":"x"}})");
    EXPECT_TRUE(json.contains("a"));
    EXPECT_FALSE(json.contains("deep"));
    EXPECT_EQ(json.find("c"), json.end());
    EXPECT_EQ(json.find("b")->get<int>(), 2);
    EXPECT_EQ(json.value("c", 5), 5);
    EXPECT_EQ(json.value("b", 5), 2);
    std::string keys;
    for (const auto& [key, value] : json.items()) keys += key + value.dump() + ";";
    EXPECT_EQ(keys, R"(b2;a{"deep":"x"};)");
    Json other{{"b", 3}, {"c", 4}};
    json.update(other);
    EXPECT_EQ(json.dump(), R"({"b":3,"a":{"deep":"x"},"c":4})");
    EXPECT_THAT([&] { static_cast<const Json&>(json)["d"]; },
                ThrowsMessage<JsonError>(HasSubstr("key \"d\" is missing")));
    EXPECT_THAT([&] { json.at(0); }, ThrowsMessage<JsonError>(HasSubstr("expected an array, got {")));
    EXPECT_THAT([] { Json::array({1}).at(1); },
                ThrowsMessage<JsonError>(HasSubstr("element 1 is not in an array of 1")));
    EXPECT_THAT([] { Json("text").push_back(1); }, ThrowsMessage<JsonError>(HasSubstr("expected an array")));
    EXPECT_NE(Json(1), Json(-1));
    EXPECT_EQ(Json(1), Json(1.0));
    EXPECT_NE(Json("1"), Json(1));
}

/// {"0":0,"1":1,…}
std::string text_of_keys(std::size_t count, const std::string& last) {
    std::string text = "{";
    for (std::size_t n = 0; n < count; ++n) text += '"' + std::to_string(n) + "\":" + std::to_string(n) + ',';
    return text + '"' + last + "\":-1}";
}

TEST(Json, ReadsManyKeysInATimeThatGrowsAsTheyDo) {
    constexpr std::size_t count = 100'000; // minutes for who looks every key up among those before it
    const std::string text = text_of_keys(count, "last");
    const auto begin = std::chrono::steady_clock::now();
    const Json many = Json::parse(text);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    EXPECT_EQ(many.size(), count + 1);
    EXPECT_EQ(many.dump(), text);
    for (const std::size_t few : {1U, 15U, 16U, 17U, 100U})
        EXPECT_THAT([&] { Json::parse(text_of_keys(few, "0")); },
                    ThrowsMessage<JsonError>("key \"0\" appears twice in one object"))
            << few;
}

TEST(Json, RefusesATextThatIsNone) {
    EXPECT_THAT([] { Json::parse("{\"a\": 1,}"); }, ThrowsMessage<JsonError>(::testing::StartsWith(
                                                        "not valid JSON: parse error at line 1, column 9")));
    EXPECT_THAT([] { Json::parse(R"({"a": {"b": 1, "b": 2}})"); },
                ThrowsMessage<JsonError>("key \"b\" appears twice in one object"));
    EXPECT_THAT([] { Json::parse(std::string(100'000, '[')); },
                ThrowsMessage<JsonError>("nested more than 64 levels deep"));
    EXPECT_THAT([] { Json::parse(std::string(65, '[') + std::string(65, ']')); },
                ThrowsMessage<JsonError>("nested more than 64 levels deep"));
    EXPECT_EQ(Json::try_parse("1 2"), std::nullopt);
    EXPECT_EQ(Json::try_parse(""), std::nullopt);
    EXPECT_EQ(Json::try_parse(" [ ] "), Json::array());
}

TEST(Json, TakesTheDeepestTextOnASmallStack) {
    std::string arrays(63, '['), objects;
    for (int level = 0; level < 64; ++level) objects += "{\"a\":";
    arrays += "{}" + std::string(63, ']');
    objects += "1" + std::string(64, '}');
    for (const std::string& deep : {arrays, objects}) {
        std::string written;
        test::on_small_stack([&] {
            const Json value = Json::parse(deep),
                       copy = value; // NOLINT(performance-unnecessary-copy-initialization)
            if (copy == value) written = copy.dump();
        });
        EXPECT_EQ(written, deep);
    }
}

} // namespace
} // namespace fmha
