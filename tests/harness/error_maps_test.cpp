// The map of a red case shows the wrong elements where they are, under the tiles of the kernel that ran.

#include "dispatcher/types/error.hpp"
#include "harness/cases/load.hpp"
#include "harness/results/result_json.hpp"
#include "harness/run/case_runner.hpp"
#include "kernels/targets/host/faults/fault.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "tests/harness/faulty_kernels.hpp"
#include "tests/harness/gate_support.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace fmha::harness::test {
namespace {

CaseResult result_of(const std::string& name, const Launch& launch, const std::string& arch = "gfx950") {
    const Case c = load_case(name, FMHA_CASES_DIR);
    const auto source = kernels_that(launch, {c}, arch);
    CaseRunOptions options;
    options.arch = arch;
    // As it comes back from a worker process.
    return unpack(pack(run_case(c, *source, options))).at(0);
}

Launch forward_with(targets::Fault fault) {
    return [fault](const KernelConfig& config, const Invocation& args) {
        host_target::run_fwd_with_fault(config, std::get<FwdArgs>(args), fault, {.threads = 1});
    };
}

const ErrorMap* map_of(const CaseResult& result, const std::string& tensor) {
    const auto found = std::ranges::find(result.maps, tensor, &ErrorMap::tensor);
    return found == result.maps.end() ? nullptr : &*found;
}

std::int64_t wrong_at(const ErrorMap& map, std::int64_t row, std::int64_t column) {
    return map.wrong.at(
        static_cast<std::size_t>(row / map.block_rows * map.blocks_across() + column / map.block_columns));
}

TEST(ErrorMaps, ALostChannelIsTheLastColumn) {
    const CaseResult result =
        result_of("fwd/plain[seqlen=70:40,hdim=64]@1", forward_with(targets::Fault::hdim_v_tail_lost));
    ASSERT_EQ(result.outcome, Outcome::failed) << result.message;
    const ErrorMap* map = map_of(result, "o");
    ASSERT_NE(map, nullptr);
    EXPECT_EQ(map->row_axis + " " + map->column_axis, "query channel");
    EXPECT_EQ(map->rows, 70);
    EXPECT_EQ(map->columns, 64);
    EXPECT_EQ(map->block_rows, 2);
    EXPECT_EQ(map->block_columns, 2);
    EXPECT_GT(map->all_wrong(), 40);
    for (std::int64_t row = 0; row < 70; ++row) EXPECT_EQ(wrong_at(*map, row, 61), 0) << row;
    EXPECT_GT(wrong_at(*map, 0, 63), 0);
    ASSERT_EQ(result.tiles.size(), 1U);
    EXPECT_EQ(result.tiles.front().family, KernelFamily::fwd);
    EXPECT_EQ(map->tile_rows, result.tiles.front().m0);
    EXPECT_EQ(map->tile_columns, 0);
}

TEST(ErrorMaps, TheHeadWithMostWrongElementsIsShown) {
    // Keys of the next entry: the last entry alone is right.
    const CaseResult result = result_of("fwd/plain[mode=group,batch=2,seqlen_q=9,seqlen_k=[20,30]]@1",
                                        forward_with(targets::Fault::group_offset_off_by_one));
    const ErrorMap* map = map_of(result, "o");
    ASSERT_NE(map, nullptr) << result.message;
    EXPECT_EQ(map->b, 1);
    EXPECT_EQ(map->rows, 9);
    EXPECT_EQ(map->block_rows, 1);
}

TEST(ErrorMaps, GradientsOfTheBiasLieOverQueriesAndKeys) {
    const CaseResult result = result_of("bwd/plain[seqlen=20:30,bias=e:0,dbias=true]@1",
                                        launch_with(targets::BackwardFault::dbias_one_key_right), "gfx942");
    const ErrorMap* map = map_of(result, "dbias");
    ASSERT_NE(map, nullptr) << result.message;
    EXPECT_EQ(map->row_axis + " " + map->column_axis, "query key");
    EXPECT_EQ(map->rows, 20);
    EXPECT_EQ(map->columns, 30);
    EXPECT_GT(map->tile_columns, 0);
}

TEST(ErrorMaps, StoredRandomBytesAreShownOneByOne) {
    // Correct, but for the bytes of two keys of one row.
    const Launch spoils = [](const KernelConfig& config, const Invocation& invocation) {
        host_target::make_instance(config)->launch(invocation, {});
        const TensorView& bytes = std::get<FwdArgs>(invocation).randval;
        auto* stored = static_cast<unsigned char*>(bytes.data);
        for (const std::int64_t key : {3, 17}) stored[bytes.offset(0, 0, 5, key)] ^= 1U;
    };
    const CaseResult result = result_of("fwd/plain[seqlen=10:20,p_drop=0.5,store_randval=true]@1", spoils);
    ASSERT_NE(result.first_failure(), nullptr);
    EXPECT_EQ(result.first_failure()->gate, "G5.1");
    const ErrorMap* map = map_of(result, "randval");
    ASSERT_NE(map, nullptr);
    EXPECT_EQ(map->row_axis + " " + map->column_axis, "query key");
    EXPECT_EQ(map->all_wrong(), 2);
    EXPECT_EQ(wrong_at(*map, 5, 3), 1);
    EXPECT_EQ(wrong_at(*map, 5, 17), 1);
}

/// Correct, but for channel 37 of O in the rows that `spoiled` names, of entry 0 and head 0.
Launch spoils_channel(std::function<bool(std::int64_t row)> spoiled) {
    return [spoiled = std::move(spoiled)](const KernelConfig& config, const Invocation& invocation) {
        host_target::make_instance(config)->launch(invocation, {});
        const auto spoil = [&](const TensorView& o, std::int64_t rows) {
            for (std::int64_t row = 0; row < rows; ++row)
                if (spoiled(row)) {
                    const std::int64_t at = o.offset(0, 0, row, 37);
                    store_code(o.data, o.type, at, load_code(o.data, o.type, at) ^ 0x4400U);
                }
        };
        if (const auto* fwd = std::get_if<FwdArgs>(&invocation)) spoil(fwd->o, fwd->shape.seqlen_q);
        if (const auto* split = std::get_if<SplitKvArgs>(&invocation)) spoil(split->o, split->shape.seqlen_q);
    };
}

/// G1 rejects the element, and so does an exact gate of each of these cases.
TEST(ErrorMaps, AnElementThatTwoGatesRejectIsOne) {
    for (const auto& [name, exact] :
         {std::pair{"fwd/plain[hdim=64,seqlen_q=64,seqlen_k=1]@1", "G5.3"},
          std::pair{"fwd/plain[hdim=64,seqlen_q=64,seqlen_k=70,fill=edge_last]@1", "exact"},
          std::pair{"fwd/plain[hdim=64,seqlen_q=64,seqlen_k=64,fill=ties]@1", "exact"},
          std::pair{
              "fwd/plain[hdim=64,seqlen_q=64,seqlen_k=64,fill=weight_ties,scale_s=0.6931471805599453]@1",
              "exact"},
          std::pair{"splitkv/plain[dtype=fp16,hdim=64,seqlen_q=64,seqlen_k=1,stage=combine,num_splits=1]@1",
                    "G5.3"}}) {
        const CaseResult result = result_of(name, spoils_channel([](std::int64_t row) { return row == 41; }));
        EXPECT_THAT(failed_gates(result), testing::IsSupersetOf({"G1", exact})) << name << result.message;
        const ErrorMap* map = map_of(result, "o");
        ASSERT_NE(map, nullptr) << name << ": " << result.message;
        EXPECT_EQ(map->all_wrong(), 1) << name;
        EXPECT_EQ(wrong_at(*map, 41, 37), 1) << name;
        EXPECT_THAT(result.pattern, testing::AllOf(testing::StartsWith("1 of "), testing::HasSubstr("row 41"),
                                                   testing::EndsWith("only column 37")))
            << name;
    }
}

TEST(ErrorMaps, AWrongChannelOfEveryRowIsNotEverywhere) {
    const CaseResult result = result_of("fwd/plain[batch=1,heads=1,hdim=64,seqlen_q=64,seqlen_k=1]@1",
                                        spoils_channel([](std::int64_t) { return true; }));
    ASSERT_NE(map_of(result, "o"), nullptr) << result.message;
    EXPECT_EQ(map_of(result, "o")->all_wrong(), 64);
    EXPECT_EQ(result.pattern, "64 of 64 checked rows: only column 37");
}

TEST(ErrorMaps, AGreenCaseHasNone) {
    const CaseResult result = result_of("appendkv/plain@1", launch_with(no_fault<targets::AppendFault>));
    EXPECT_EQ(result.outcome, Outcome::passed) << result.message;
    EXPECT_TRUE(result.maps.empty());
}

TEST(ErrorMaps, AMapThatContradictsItselfIsNotRead) {
    ErrorMap map;
    map.rows = map.columns = 10;
    map.wrong = {1, 2};
    CaseResult result;
    result.maps = {map};
    EXPECT_THROW(unpack(pack({result})), InputError);
}

} // namespace
} // namespace fmha::harness::test
