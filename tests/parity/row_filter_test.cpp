#include "dispatcher/types/error.hpp"
#include "kernels/catalog/query/columns.hpp"
#include "kernels/catalog/query/row_filter.hpp"
#include "tests/support/sentence_of.hpp"
#include "tests/support/small_stack.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <unistd.h>

namespace fmha::catalog {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

/// Four records that differ in the fields that the expressions below look at.
std::vector<KernelConfig> records() {
    std::vector<KernelConfig> list(4);
    for (auto& config : list) config.arch = "gfx950";
    list[0].signature.hdim_q = 128;
    list[0].algorithm.pipeline = Pipeline::qr_async;
    list[1].signature.hdim_q = 128;
    list[1].signature.mask = MaskClass::causal;
    list[1].signature.has_dropout = true;
    list[2].signature.hdim_q = 64;
    list[2].signature.bias = BiasType::elementwise;
    list[2].algorithm.tile.m0 = 16;
    list[2].algorithm.pad.d = 8;
    list[3].signature.hdim_q = 256;
    list[3].signature.data_type = DataType::fp8bf16;
    list[3].signature.qscale = QScale::pertensor;
    return list;
}

std::vector<std::size_t> hits(std::string_view expression, FilterLimits limits = {}) {
    const auto all = records();
    RowFilter filter(
        expression,
        [](const KernelConfig& config, std::string& out) { out += std::to_string(config.signature.hdim_q); },
        limits);
    std::vector<std::size_t> found;
    filter.select(all, [&](std::size_t index) { found.push_back(index); });
    return found;
}

std::string refusal(std::string_view expression, FilterLimits limits = {}) {
    return fmha::test::sentence_of<InputError>([&] { hits(expression, limits); });
}

using Found = std::vector<std::size_t>;

TEST(RowFilter, RunsUpstreamExpressionsAsWritten) {
    EXPECT_EQ(hits("c.hdim_q == 128 and c.pipeline == 'qr_async'"), (Found{0}));
    EXPECT_EQ(hits("c.hdim_q == 128 and not c.dropout"), (Found{0}));
    EXPECT_EQ(hits("c.hdim_q == 128 and c.dropout == True"), (Found{1}));
    EXPECT_EQ(hits("c.mask == \"top_left\" or c.bias == \"bias\""), (Found{1, 2}));
    EXPECT_EQ(hits("c.hdim_q in [64, 256]"), (Found{2, 3}));
    EXPECT_EQ(hits("c.hdim_q not in (64, 256)"), (Found{0, 1}));
    EXPECT_EQ(hits("c.qscale != 'no' and c.data_type == 'fp8bf16'"), (Found{3}));
    EXPECT_EQ(hits("c.tile_m0 < 64 and c.tile_m0 > 0 and c.pad_d = 8"), (Found{2}));
}

TEST(RowFilter, OffersOurOwnFieldsAndTheName) {
    EXPECT_EQ(hits("c.mask_class = 'causal'"), (Found{1}));
    EXPECT_EQ(hits("c.bias_type = 'elementwise'"), (Found{2}));
    EXPECT_EQ(hits("c.has_dropout"), (Found{1}));
    EXPECT_EQ(hits("c.name = '256'"), (Found{3}));
    EXPECT_EQ(hits("c.arch = 'gfx942'"), (Found{}));
}

TEST(RowFilter, TakesTheConditionsOfSql) {
    EXPECT_EQ(hits("hdim_q = 128 AND pipeline = 'qr_async'"), (Found{0}));
    EXPECT_EQ(hits("hdim_q = 128 AND NOT dropout"), (Found{0}));
    EXPECT_EQ(hits("hdim_q BETWEEN 64 AND 128 AND mask <> 'top_left'"), (Found{0, 2}));
    EXPECT_EQ(hits("hdim_q IN (64, 256) OR pipeline LIKE '%async'"), (Found{0, 2, 3}));
    EXPECT_EQ(hits("tile[0] = 16 AND c.hdim_q = 64"), (Found{2}));
    EXPECT_EQ(hits("name = '256'"), (Found{3}));
}

TEST(RowFilter, CanBeUsedBatchAfterBatch) {
    const auto all = records();
    RowFilter filter("c.hdim_q = 128", [](const KernelConfig&, std::string&) {});
    std::size_t count = 0;
    for (int batch = 0; batch < 3; ++batch) filter.select(all, [&](std::size_t) { ++count; });
    EXPECT_EQ(count, 6U);
}

TEST(RowFilter, HasEveryPromisedColumnOnce) {
    std::set<std::string> names;
    for (const Column& column : columns()) EXPECT_TRUE(names.insert(column.name).second) << column.name;
    for (const char* promised : {"data_type",
                                 "mode",
                                 "hdim_q",
                                 "hdim_v",
                                 "pipeline",
                                 "tile_m0",
                                 "tile_n0",
                                 "tile_k0",
                                 "pad_s",
                                 "pad_sk",
                                 "pad_d",
                                 "pad_dv",
                                 "mask",
                                 "bias",
                                 "lse",
                                 "dropout",
                                 "logits",
                                 "sink",
                                 "skip_min_seqlen_q",
                                 "qscale",
                                 "paged_kv",
                                 "rope",
                                 "deterministic",
                                 "dbias",
                                 "dropout_variant"})
        EXPECT_TRUE(names.contains(promised)) << promised;
}

// Each of these kept every record, or none, or the wrong ones, when SQL read it.
TEST(RowFilter, ComparisonsChain) {
    EXPECT_EQ(hits("128 <= c.tile_m0 <= 128"), (Found{}));
    EXPECT_EQ(hits("16 <= c.tile_m0 <= 16"), (Found{2}));
    EXPECT_EQ(hits("64 < c.hdim_q < 256"), (Found{0, 1}));
    EXPECT_EQ(hits("64 <= c.hdim_q < 256 > 8"), (Found{0, 1, 2}));
    EXPECT_EQ(hits("c.hdim_q == 128 == c.hdim_q"), (Found{0, 1}));
    EXPECT_EQ(hits("1 < c.hdim_q > 127 != c.hdim_q in [128, 256]"), (Found{0, 1, 3}));
    EXPECT_EQ(hits("not 64 < c.hdim_q < 256"), (Found{2, 3}));
}

TEST(RowFilter, InLooksIntoTextListsAndTuples) {
    EXPECT_EQ(hits("'async' in c.pipeline"), (Found{0}));
    EXPECT_EQ(hits("'async' not in c.pipeline"), (Found{1, 2, 3}));
    EXPECT_EQ(hits("c.hdim_q in {64, 256,}"), (Found{2, 3}));
    EXPECT_EQ(hits("c.hdim_q in (64,)"), (Found{2}));
    EXPECT_EQ(hits("c.hdim_q in []"), (Found{}));
    EXPECT_EQ(hits("16 in c.tile"), (Found{2}));
    EXPECT_EQ(hits("1 in c.tile"), (Found{}));
    EXPECT_EQ(hits("8 in c.padding"), (Found{2}));
    EXPECT_THAT(refusal("c.pipeline in ('qr')"),
                HasSubstr("character 15: in Python these parentheses are no"));
    EXPECT_THAT(refusal("c.hdim_q in 'qr'"), HasSubstr("needs text, this is a number"));
    EXPECT_THAT(refusal("c.hdim_q in [64, '128']"), HasSubstr("this is text, and a number is looked for"));
    EXPECT_THAT(refusal("c.hdim_q in 128"), HasSubstr("needs a list, text or a tuple"));
}

TEST(RowFilter, TuplesHaveElements) {
    EXPECT_EQ(hits("c.tile[0] == 16"), (Found{2}));
    EXPECT_EQ(hits("c.tile[-6] == c.tile_m0"), (Found{0, 1, 2, 3}));
    EXPECT_EQ(hits("c.padding[2] == 8"), (Found{2}));
    EXPECT_EQ(hits("c.padding[-2] == 8 and c.padding[3] == 0"), (Found{2}));
    EXPECT_EQ(hits("c.tile == (16, 0, 0, 0, 0, 0)"), (Found{2}));
    EXPECT_EQ(hits("c.tile == '16x0x0x0x0x0'"), (Found{2}));
    EXPECT_EQ(hits("c.padding in [(0, 0, 8, 0), (1, 1, 1, 1)]"), (Found{2}));
    EXPECT_EQ(hits("c.hdim_q == 1 and c.tile[6] == 16"), (Found{})) << "and stops before it";
    EXPECT_THAT(refusal("c.tile[6] == 16"), HasSubstr("element 6 of 0x0x0x0x0x0, which has 6 elements"));
    EXPECT_THAT(refusal("c.tile[:2] == (16, 0)"), HasSubstr("':' is not allowed here"));
    EXPECT_THAT(refusal("c.pipeline[0] == 'q'"), HasSubstr("only tuples have elements (c.tile, c.wave"));
    EXPECT_THAT(refusal("c.tile[c.hdim_q] == 16"), HasSubstr("chosen by a whole number"));
}

TEST(RowFilter, TruthIsPythons) {
    EXPECT_EQ(hits("c.dropout"), (Found{1}));
    EXPECT_EQ(hits("c.dropout is True"), (Found{1}));
    EXPECT_EQ(hits("c.dropout is not True"), (Found{0, 2, 3}));
    EXPECT_EQ(hits("c.dropout == False"), (Found{0, 2, 3}));
    EXPECT_EQ(hits("c.mask"), (Found{0, 1, 2, 3})) << "every text but '' is true";
    EXPECT_EQ(hits("not c.dropout_variant"), (Found{0, 1, 2, 3}));
    EXPECT_EQ(hits("c.mask == None"), (Found{}));
    EXPECT_EQ(hits("c.mask != None"), (Found{0, 1, 2, 3}));
    EXPECT_EQ(hits("c.mask is not None and None is None"), (Found{0, 1, 2, 3}));
    EXPECT_EQ(hits("not None"), (Found{0, 1, 2, 3}));
    EXPECT_EQ(hits("c.tile_m0 and c.dropout == (c.hdim_q == 1)"), (Found{2}));
    EXPECT_EQ(hits("(c.hdim_q == 128) & (c.pipeline == 'qr_async')"), (Found{0}));
    EXPECT_EQ(hits("not not c.dropout or False"), (Found{1}));
    EXPECT_THAT(refusal("(c.tile_m0 or 128) == 128"), HasSubstr("give one of their sides here"));
    EXPECT_THAT(refusal("c.hdim_q is 128"), HasSubstr("'is' takes None, True or False"));
    EXPECT_THAT(refusal("c.hdim_q is True"), HasSubstr("neither True nor False"));
}

TEST(RowFilter, ArithmeticIsPythons) {
    EXPECT_EQ(hits("c.hdim_q / 3 > 42 and c.hdim_q / 3 < 43"), (Found{0, 1})) << "42.67: SQL gives 42";
    EXPECT_EQ(hits("c.hdim_q // 3 == 42"), (Found{0, 1}));
    EXPECT_EQ(hits("-c.hdim_q // 3 == -43"), (Found{0, 1}));
    EXPECT_EQ(hits("-c.hdim_q % 100 == 72"), (Found{0, 1})) << "SQL gives -28";
    EXPECT_EQ(hits("c.hdim_q == 2 * 64 - 1_000 + 1000.0"), (Found{0, 1}));
    EXPECT_EQ(hits("c.pipeline + '!' == 'qr_async!'"), (Found{0}));
    EXPECT_EQ(hits("c.tile_m0 != 0 and 32 // c.tile_m0 == 2"), (Found{2}));
    EXPECT_THAT(refusal("32 // c.tile_m0 == 2"), HasSubstr("division by zero"));
    EXPECT_THAT(refusal("c.hdim_q ** 2 == 4"), HasSubstr("'**' is not allowed here"));
    EXPECT_THAT(refusal("c.pipeline * 2 == 'x'"), HasSubstr("'*' needs a number, this is text"));
}

TEST(RowFilter, HasFunctionsMethodsAndThreeWordsOfSql) {
    EXPECT_EQ(hits("c.pipeline.startswith('qr') and c.pipeline.endswith('_async')"), (Found{0}));
    EXPECT_EQ(hits("len(c.pipeline) == 8 and c.pipeline.upper() == upper('qr_async')"), (Found{0}));
    EXPECT_EQ(hits("max(c.hdim_q, 100) == 100 and min(c.hdim_q, 10) == abs(-10)"), (Found{2}));
    EXPECT_EQ(hits("c.pipeline LIKE '%ASYNC'"), (Found{0})) << "as in SQL, letters of either case are equal";
    EXPECT_EQ(hits("c.pipeline not like '%async'"), (Found{1, 2, 3}));
    EXPECT_EQ(hits("c.pipeline glob 'qr_*'"), (Found{0}));
    EXPECT_EQ(hits("c.hdim_q between 65 and 255 and True"), (Found{0, 1}));
    EXPECT_EQ(hits("c.pipeline == 'qr_async' # not 'qr'\n"), (Found{0}));
}

// SQLite is C: an exception in its frames would leave its locks held and its statement half done.
TEST(RowFilter, PassesExceptionsOnAndStaysUsable) {
    const auto all = records();
    bool broken = true;
    RowFilter filter("c.name == '64'", [&](const KernelConfig& config, std::string& out) {
        if (broken) throw InputError("has no name");
        out += std::to_string(config.signature.hdim_q);
    });
    std::vector<std::size_t> found;
    const auto select = [&] { filter.select(all, [&](std::size_t index) { found.push_back(index); }); };
    EXPECT_THAT(select, testing::ThrowsMessage<InputError>("has no name"));
    broken = false;
    // From another thread, for which a lock that is left held is one.
    const auto found_elsewhere = [&] {
        alarm(20);
        std::thread(select).join();
        _exit(found == Found{2} ? 0 : 1);
    };
    EXPECT_EXIT(found_elsewhere(), testing::ExitedWithCode(0), "");
}

TEST(RowFilter, NamesTheExpressionThePlaceAndTheMistake) {
    EXPECT_THAT(refusal("c.hdim == 128"),
                HasSubstr("\"c.hdim == 128\": character 1: no such column: c.hdim; did you mean hdim_q?"));
    EXPECT_THAT(refusal("c.colour == 1"), HasSubstr("no such column: c.colour; there are: gfx_arch"));
    EXPECT_THAT(refusal("c.hdim_q == "), HasSubstr("character 13: a value is missing"));
    EXPECT_THAT(refusal("c.name.startswith()"), HasSubstr("character 8: startswith() takes 1 value, not 0"));
    EXPECT_THAT(refusal("c.name.endswith('a', 'b')"), HasSubstr("endswith() takes 1 value, not 2"));
    EXPECT_THAT(refusal("replace('a')"), HasSubstr("character 1: replace() takes 3 values, not 1"));
    EXPECT_THAT(
        refusal("hdim == 128"),
        HasSubstr("character 1: no such column: hdim (a text stands in quotes); did you mean hdim_q?"));
    EXPECT_THAT(refusal("c == 1"), HasSubstr("c stands before a column"));
    EXPECT_THAT(refusal(""), HasSubstr("empty"));
    EXPECT_THAT(refusal("# nothing\n"), HasSubstr("empty"));
    EXPECT_THAT(refusal("c.name = 'x"), HasSubstr("character 10: this quote is never closed"));
    EXPECT_THAT(refusal("c.hdim_q in [64, 128"), HasSubstr("']' is missing"));
    EXPECT_THAT(refusal("(c.hdim_q == 128"), HasSubstr("')' is missing"));
    EXPECT_THAT(refusal("c.hdim_q == '128'"), HasSubstr("character 13: '==' compares a number with text"));
    EXPECT_THAT(refusal("c.mask < 5"), HasSubstr("'<' compares text with a number"));
    EXPECT_THAT(refusal("c.name == 'a' 'b'"), HasSubstr("two texts without a sign between them"));
    EXPECT_THAT(refusal("c.name == 'a\\n'"), HasSubstr("backslash"));
    EXPECT_THAT(refusal("1 --1"), HasSubstr("'--' starts a comment in SQL and none in Python"));
    EXPECT_THAT(refusal("1 if c.lse else 0"), HasSubstr("'if' is not allowed here"));
    EXPECT_THAT(refusal("def filter_config(c): return True"), HasSubstr("statements are not allowed"));
    EXPECT_THAT(refusal("import os\n\nos.abort()"),
                testing::StartsWith("filter expression \"import os os.abort()\": character 1: statements"));
    const std::string long_one = refusal(std::string(99, ' ') + "é" + std::string(400, 'x'));
    EXPECT_THAT(long_one, testing::StartsWith("filter expression \" é" + std::string(97, 'x') + "…\": "));
    EXPECT_THAT(refusal("12monkeys"), HasSubstr("12monkeys is not a decimal number"));
    EXPECT_THAT(refusal("99999999999999999999 > 1"), HasSubstr("not a decimal number of 64 bits"));
}

TEST(RowFilter, RefusesEverythingButAnExpression) {
    EXPECT_THAT(refusal("1; DROP TABLE catalogue"), HasSubstr("';' is not allowed"));
    EXPECT_THAT(refusal("1) UNION SELECT (1"), HasSubstr("closes nothing"));
    for (const char* statement : {"c.hdim_q IN (SELECT 1)", "select * from kernels where hdim_q = 128",
                                  "WHERE hdim_q = 128", "with k as (select 1) select 1"})
        EXPECT_THAT(refusal(statement),
                    HasSubstr("a statement of SQL is not allowed; give the condition behind its WHERE"))
            << statement;
    EXPECT_THAT(refusal("EXISTS (SELECT * FROM sqlite_master)"), HasSubstr("EXISTS() is not allowed"));
    EXPECT_THAT(refusal("load_extension('x.so')"),
                HasSubstr("load_extension() is not allowed; there are: abs"));
    EXPECT_THAT(refusal("randomblob(1000000000) IS NOT NULL"), HasSubstr("randomblob() is not allowed"));
    EXPECT_THAT(refusal("c.hdim_q = ?1"), HasSubstr("'?' is not allowed here"));
    EXPECT_THAT(refusal("1 LIMIT (1"), HasSubstr("'LIMIT' is not allowed here"));
    EXPECT_THAT(refusal("c.hdim_q.real == 1"), HasSubstr("'.real' is not known"));
    for (const char* statement :
         {"INSERT INTO catalogue VALUES (1)", "UPDATE c SET hdim_q = 1", "DELETE FROM c",
          "ATTACH 'x.db' AS x", "PRAGMA writable_schema = 1", "CREATE TABLE t(x)", "VACUUM INTO 'x.db'"})
        EXPECT_THAT(refusal(statement), HasSubstr("character 1: ")) << statement;
}

TEST(RowFilter, RefusesExpressionsThatAreTooLongOrTooDeep) {
    const std::string megabyte(1024 * 1024, ' ');
    EXPECT_THAT(refusal("1" + megabyte), HasSubstr("1048577 bytes: at most 16384"));
    for (const int levels : {33, 1000}) {
        const std::string open(static_cast<std::size_t>(levels), '('), close(open.size(), ')');
        EXPECT_THAT(refusal(open + "1" + close), HasSubstr("character 34: nested more than 32 levels deep"));
        EXPECT_THAT(refusal(open), HasSubstr("nested more than 32 levels deep"));
    }
    std::string doubling = "c.hdim_q";
    for (int i = 0; i < 12; ++i) doubling = "0 < (" + doubling + ") < 300";
    EXPECT_THAT(refusal(doubling), HasSubstr("too complex"));
}

TEST(RowFilter, ReadsTheDeepestExpressionOnASmallStack) {
    const auto nested = [](const std::string& before, const std::string& after, int times) {
        std::string expression = "c.hdim_q == 64";
        for (int i = 0; i < times; ++i) expression = before + expression + after;
        return expression;
    };
    std::string said;
    for (const auto& deepest :
         {nested("(", ")", 32), nested("not not (", ")", 32), nested("max(0, ", ")", 16)}) {
        test::on_small_stack([&] { said = fmt::format("{}", fmt::join(hits(deepest), " ")); });
        EXPECT_EQ(said, "2") << deepest;
    }
    EXPECT_THAT(refusal(nested("not not (", ")", 33)), HasSubstr("nested more than 32 levels deep"));
    // Calls meet SQLite's limit first.
    EXPECT_THAT(refusal(nested("max(0, ", ")", 32)), HasSubstr(": too complex for SQLite: "));
    // Every rule of the grammar in each level, and a sum, of which SQLite makes a tree as deep as it is long.
    for (const auto& large : {nested("c.lse or c.dropout and not (0 < 0 | 1 & 0 + 1 * max(0, ", "))", 16),
                              nested("", " + 1", 10), nested("", " + 1", 200)}) {
        test::on_small_stack([&] { said = refusal(large); });
        EXPECT_THAT(said, AnyOf("accepted", HasSubstr(": too complex for SQLite: "))) << large;
    }
}

TEST(RowFilter, StopsAtTheTimeLimit) {
    FilterLimits limits;
    limits.time = std::chrono::milliseconds(20);
    const std::vector<KernelConfig> many(400'000);
    RowFilter filter(
        "len(replace(c.arch + c.pipeline + c.name, 'q', 'pp')) < 0", [](const KernelConfig&, std::string&) {},
        limits);
    EXPECT_THROW(filter.select(many, [](std::size_t) {}), InputError);
}

} // namespace
} // namespace fmha::catalog
