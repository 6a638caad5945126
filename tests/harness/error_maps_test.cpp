// The map of a red case shows the wrong elements where they are, under the tiles of the kernel that ran.

#include "dispatcher/types/error.hpp"
#include "harness/cases/load.hpp"
#include "harness/results/result_json.hpp"
#include "harness/run/case_runner.hpp"
#include "kernels/targets/host/faults/fault.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "tests/harness/faulty_kernels.hpp"

#include <gmock/gmock.h>

#include <algorithm>

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
