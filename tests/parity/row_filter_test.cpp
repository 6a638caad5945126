#include "dispatcher/types/error.hpp"
#include "kernels/catalog/query/columns.hpp"
#include "kernels/catalog/query/expression.hpp"
#include "kernels/catalog/query/row_filter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace fmha::catalog {
namespace {

using testing::HasSubstr;

/// Four records that differ in what the expressions below look at.
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
    try {
        hits(expression, limits);
    } catch (const InputError& error) {
        return error.what();
    }
    return "accepted";
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

TEST(RowFilter, NamesTheExpressionAndSqlitesMessage) {
    EXPECT_THAT(refusal("c.hdim == 128"),
                HasSubstr("\"c.hdim == 128\": no such column: c.hdim; there are: gfx_arch"));
    EXPECT_THAT(refusal("c.hdim_q == "), HasSubstr("syntax error"));
    EXPECT_THAT(refusal(""), HasSubstr("empty"));
    EXPECT_THAT(refusal("c.name = 'x"), HasSubstr("character 10: this quote is never closed"));
    EXPECT_THAT(refusal("c.hdim_q in [64, 128"), HasSubstr("']' is missing"));
}

TEST(RowFilter, RefusesEverythingButAnExpression) {
    EXPECT_THAT(refusal("1; DROP TABLE catalogue"), HasSubstr("';' is not allowed"));
    EXPECT_THAT(refusal("1) UNION SELECT (1"), HasSubstr("closes nothing"));
    EXPECT_THAT(refusal("c.hdim_q IN (SELECT 1)"), HasSubstr("subquery is not allowed"));
    EXPECT_THAT(refusal("EXISTS (SELECT * FROM sqlite_master)"), HasSubstr("subquery is not allowed"));
    EXPECT_THAT(
        refusal(
            "c.hdim_q IN (WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r) SELECT n FROM r)"),
        HasSubstr("not allowed"));
    EXPECT_THAT(refusal("load_extension('x.so')"), testing::Not(HasSubstr("accepted")));
    EXPECT_THAT(refusal("randomblob(1000000000) IS NOT NULL"),
                HasSubstr("the function randomblob() is not allowed"));
    EXPECT_THAT(refusal("c.hdim_q = ?1"), testing::Not(HasSubstr("accepted")));
    EXPECT_THAT(refusal("1 LIMIT (1"), testing::Not(HasSubstr("accepted")));
    for (const char* statement :
         {"INSERT INTO catalogue VALUES (1)", "UPDATE c SET hdim_q = 1", "DELETE FROM c",
          "ATTACH 'x.db' AS x", "PRAGMA writable_schema = 1", "CREATE TABLE t(x)", "VACUUM INTO 'x.db'"})
        EXPECT_THAT(refusal(statement), HasSubstr("syntax error")) << statement;
    EXPECT_THAT(refusal("c.hdim_q IN pragma_table_info('c')"), testing::Not(HasSubstr("accepted")));
}

TEST(RowFilter, RefusesWhatIsTooLongOrTooDeep) {
    const std::string megabyte(1024 * 1024, ' ');
    EXPECT_THAT(refusal("1" + megabyte), HasSubstr("1048577 bytes: at most 16384"));
    std::string deep = "1";
    for (int i = 0; i < 1000; ++i) deep = "(" + deep + "+1)";
    EXPECT_THAT(refusal(deep), testing::Not(HasSubstr("accepted")));
}

TEST(RowFilter, StopsAtTheTimeLimit) {
    FilterLimits limits;
    limits.time = std::chrono::milliseconds(20);
    const std::vector<KernelConfig> many(400'000);
    RowFilter filter(
        "length(replace(c.arch || c.pipeline || c.tile, 'q', 'pp')) < 0",
        [](const KernelConfig&, std::string&) {}, limits);
    EXPECT_THROW(filter.select(many, [](std::size_t) {}), InputError);
}

} // namespace
} // namespace fmha::catalog
