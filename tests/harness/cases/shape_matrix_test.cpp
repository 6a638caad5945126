#include "dispatcher/types/error.hpp"
#include "harness/cases/load.hpp"
#include "harness/cases/shape_matrix.hpp"
#include "tests/support/sentence_of.hpp"
#include "tests/support/small_stack.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <unistd.h>

namespace fmha::harness {
namespace {

using testing::ElementsAre;

const std::filesystem::path matrix = FMHA_SMALL_MATRIX;

/// Kernels of an architecture that does not exist.
const KernelDims dims{{DataType::fp16, {{256, 256}}},
                      {DataType::bf16, {{256, 256}}},
                      {DataType::fp8bf16, {{128, 128}}},
                      {DataType::fp8fp32, {{128, 128}}}};

std::map<std::string, std::vector<Case>> by_test(Tier tier) {
    std::map<std::string, std::vector<Case>> tests;
    const auto start = matrix.generic_string().size() + 1;
    for (auto& shape : load_shape_matrix(matrix, tier, dims))
        tests[shape.id.substr(start, shape.id.find_first_of("#[@", start) - start)].push_back(
            std::move(shape));
    return tests;
}

TEST(ShapeMatrix, TiersAreCumulativeAndNothingIsDropped) {
    const auto smoke = by_test(Tier::smoke);
    EXPECT_EQ(smoke.at("Products").size(), 8U);
    EXPECT_EQ(smoke.at("Repeats").size(), 3U);
    EXPECT_EQ(smoke.at("Refusals").size(), 12U);
    EXPECT_EQ(smoke.at("Defaults").size(), 1U);
    EXPECT_EQ(smoke.size(), 4U);
    const auto full = by_test(Tier::full);
    EXPECT_EQ(full.at("Features").size(), 12U);
    EXPECT_EQ(full.size(), 5U);
    EXPECT_EQ(load_shape_matrix(matrix, Tier::nightly, dims).size(),
              load_shape_matrix(matrix, Tier::full, dims).size());
    EXPECT_EQ(full.at("Features")[0].tier, Tier::full);
    EXPECT_EQ(full.at("Products")[0].tier, Tier::smoke);
}

TEST(ShapeMatrix, ProductsRunTheFirstAxisSlowest) {
    std::vector<std::vector<std::int64_t>> shapes;
    const auto tests = by_test(Tier::smoke);
    for (const auto& shape : tests.at("Products"))
        shapes.push_back({shape.batch, shape.seqlen_q[0], shape.seqlen_k[0]});
    EXPECT_THAT(shapes, ElementsAre(ElementsAre(1, 1, 10), ElementsAre(1, 1, 99), ElementsAre(1, 3, 10),
                                    ElementsAre(1, 3, 99), ElementsAre(2, 1, 10), ElementsAre(2, 1, 99),
                                    ElementsAre(2, 3, 10), ElementsAre(2, 3, 99)));
}

TEST(ShapeMatrix, AxesBecomeFields) {
    const auto shape = by_test(Tier::smoke).at("Products")[0];
    EXPECT_EQ(shape.mask, MaskType::top_left);
    EXPECT_EQ(shape.window_left, -1);
    EXPECT_EQ(shape.window_right, 0);
    EXPECT_TRUE(shape.lse);
    EXPECT_EQ(shape.nhead_q, 2);
    EXPECT_EQ(shape.nhead_k, 1);
    const auto features = by_test(Tier::full).at("Features");
    EXPECT_EQ(features[1].bias, BiasType::elementwise);
    EXPECT_EQ(features[1].p_drop, 0.2);
    EXPECT_EQ(features[2].bias, BiasType::alibi);
    EXPECT_EQ(features[4].data_type, DataType::fp8bf16);
    EXPECT_EQ(features[4].qscale, QScale::pertensor);
}

TEST(ShapeMatrix, EveryMaskOfUpstreamIsRead) {
    const auto file = std::filesystem::temp_directory_path() / fmt::format("fmha-masks-{}.yaml", getpid());
    std::ofstream(file) << "forward_tests: {smoke: [{name: T, mask: [no_mask, top_left, bottom_right]}]}\n";
    const auto shapes = load_shape_matrix(file, Tier::smoke, dims);
    std::filesystem::remove(file);
    ASSERT_EQ(shapes.size(), 3U);
    EXPECT_EQ(shapes[0].mask, MaskType::no_mask);
    EXPECT_EQ(shapes[1].mask, MaskType::top_left);
    EXPECT_EQ(shapes[2].mask, MaskType::bottom_right);
    EXPECT_THAT(std::vector({shapes[0].window_right, shapes[1].window_right, shapes[2].window_right}),
                ElementsAre(-1, 0, 0));
}

TEST(ShapeMatrix, AbsentAxesHaveUpstreamsDefaults) {
    const auto shape = by_test(Tier::smoke).at("Defaults")[0];
    EXPECT_EQ(shape.batch, 1);
    EXPECT_THAT(shape.seqlen_q, ElementsAre(1024));
    EXPECT_THAT(shape.seqlen_k, ElementsAre(1024));
    EXPECT_EQ(shape.nhead_q, 16);
    EXPECT_EQ(shape.nhead_k, 16);
    EXPECT_EQ(shape.hdim_q, 128);
    EXPECT_EQ(shape.hdim_v, 128);
    EXPECT_EQ(shape.data_type, DataType::fp16);
    EXPECT_EQ(shape.mask, MaskType::no_mask);
    EXPECT_EQ(shape.bias, BiasType::no_bias);
    EXPECT_EQ(shape.p_drop, 0.0);
    EXPECT_FALSE(shape.lse);
}

TEST(ShapeMatrix, ShapesThatCannotRunSayWhy) {
    std::map<std::string, int> expected;
    const auto tests = by_test(Tier::smoke);
    for (const auto& shape : tests.at("Refusals")) ++expected[shape.expect_rule];
    // nhead_q 6 of 4: six shapes of any dimensions. Of the others 60 is H-2, 576 and 512 are too
    // large.
    EXPECT_EQ(expected,
              (std::map<std::string, int>{{"", 1}, {"H-1", 6}, {"H-2", 2}, {"hdim_q", 2}, {"hdim_v", 1}}));
}

std::map<std::string, int> refusals(const KernelDims& kernels) {
    std::map<std::string, int> expected;
    for (const auto& shape : load_shape_matrix(matrix, Tier::smoke, kernels))
        if (shape.id.find("/Refusals") != std::string::npos)
            ++expected[shape.expect == Expectation::pass ? "pass" : shape.expect_rule];
    return expected;
}

TEST(ShapeMatrix, HeadDimensionsAreRefusedOnlyWhereTheCatalogueHasNone) {
    using Counts = std::map<std::string, int>;
    const auto fp16 = [](KernelDims::mapped_type kernels) {
        return KernelDims{{DataType::fp16, std::move(kernels)}};
    };
    EXPECT_EQ(refusals(fp16({{576, 512}})), (Counts{{"pass", 4}, {"H-1", 6}, {"H-2", 2}}));
    EXPECT_EQ(refusals(fp16({{576, 64}})), (Counts{{"pass", 2}, {"hdim_v", 2}, {"H-1", 6}, {"H-2", 2}}));
    // Dimensions that exist, never together.
    EXPECT_EQ(refusals(fp16({{576, 64}, {64, 512}})), (Counts{{"pass", 3}, {"", 1}, {"H-1", 6}, {"H-2", 2}}));
    EXPECT_EQ(refusals({}), (Counts{{"pass", 4}, {"H-1", 6}, {"H-2", 2}})) << "a type that is missing is T-1";
}

TEST(ShapeMatrix, TheFamilyIsHonouredAndShapesLeftOutAreCounted) {
    LoadOptions options{.root = matrix.parent_path(), .tier = Tier::smoke};
    const std::string file = matrix.generic_string();
    EXPECT_EQ(load_cases({file}, options).size(), 24U + 4U);
    EXPECT_THAT(left_out({file}, options), testing::IsEmpty());
    options.family = ApiFamily::bwd;
    EXPECT_EQ(load_cases({file}, options).size(), 4U);
    EXPECT_THAT(
        left_out({file}, options),
        ElementsAre("forward_tests of " + file + ": 24 shapes not run, they are of another family than bwd"));
    options.family = ApiFamily::fwd;
    EXPECT_EQ(load_cases({file}, options).size(), 24U);
    options.tier = Tier::full;
    EXPECT_THAT(
        left_out({file}, options),
        ElementsAre("backward_tests of " + file + ": 5 shapes not run, they are of another family than fwd"));
}

TEST(ShapeMatrix, BackwardTestsAreCasesOfBackward) {
    const auto shapes = load_shape_matrix(matrix, Tier::full, dims, ApiFamily::bwd);
    ASSERT_EQ(shapes.size(), 5U);
    std::vector<std::string> expected;
    for (const Case& shape : shapes) {
        EXPECT_EQ(shape.family, ApiFamily::bwd);
        EXPECT_THAT(shape.id, testing::HasSubstr("/backward_tests/"));
        // As upstream: neither flag is read.
        EXPECT_FALSE(shape.backward.dbias || shape.backward.deterministic);
        expected.push_back(shape.expect == Expectation::pass ? "pass" : shape.expect_rule);
    }
    EXPECT_THAT(expected, ElementsAre("pass", "pass", "20.1", "20.1", "pass"));
    EXPECT_EQ(shapes[1].p_drop, 0.2);
    EXPECT_EQ(shapes[1].bias, BiasType::alibi);
    EXPECT_TRUE(shapes[4].sampled_rows) << "16 heads of 1024 by 1024";
}

// A shape at a limit is computed whole, one row or key more is sampled.
TEST(ShapeMatrix, ShapesBeyondTheLimitsAreSampled) {
    const auto file = std::filesystem::temp_directory_path() / fmt::format("fmha_limits_{}.yaml", getpid());
    const auto sampled = [&](const char* section, std::int64_t queries, std::int64_t keys) {
        std::ofstream(file) << fmt::format(
            "{}:\n  smoke:\n    - {{name: T, batch: [1], nhead_q: [1], "
            "nhead_k: [1], hdim_q: [8], hdim_v: [8], seqlen_q: [{}], seqlen_k: [{}]}}\n",
            section, queries, keys);
        const auto family = std::string_view(section) == "backward_tests" ? ApiFamily::bwd : ApiFamily::fwd;
        const auto shapes = load_shape_matrix(file, Tier::smoke, {}, family);
        EXPECT_EQ(shapes.size(), 1U);
        EXPECT_EQ(shapes.front().repeats == 1, shapes.front().sampled_rows);
        return shapes.front().sampled_rows;
    };
    // Five million elements of K and V.
    EXPECT_FALSE(sampled("backward_tests", 1, 312'500));
    EXPECT_TRUE(sampled("backward_tests", 1, 312'501));
    EXPECT_FALSE(sampled("forward_tests", 1, 312'500));
    EXPECT_TRUE(sampled("forward_tests", 1, 312'501));
    // Two thousand million operations: five products of backward, two of forward.
    EXPECT_FALSE(sampled("forward_tests", 12'500, 5000));
    EXPECT_TRUE(sampled("forward_tests", 12'501, 5000));
    EXPECT_FALSE(sampled("backward_tests", 5000, 5000));
    EXPECT_TRUE(sampled("backward_tests", 5001, 5000));
    std::filesystem::remove(file);
}

std::string refusal_of(const std::string& text) {
    const auto file = std::filesystem::temp_directory_path() / fmt::format("fmha_bad_{}.yaml", getpid());
    std::ofstream(file) << text;
    std::string said =
        fmha::test::sentence_of<InputError>([&] { load_shape_matrix(file, Tier::smoke, dims); });
    if (said.starts_with(file.generic_string())) said.replace(0, file.generic_string().size(), "F");
    std::filesystem::remove(file);
    return said;
}

TEST(ShapeMatrix, ASecondDocumentIsRefused) {
    const std::string one = "forward_tests: {smoke: [{name: A, seqlen_q: [16], seqlen_k: [16]}]}\n";
    EXPECT_EQ(refusal_of(one), "accepted");
    EXPECT_EQ(refusal_of("---\n" + one + "...\n"), "accepted");
    const std::string more = "F: has more than one document; allowed: one";
    EXPECT_EQ(refusal_of(one + "---\n" + one), more);
    EXPECT_EQ(refusal_of("{" + one + "} x"), more) << "what stands behind the document";
    EXPECT_EQ(refusal_of(""), "F: expected a map with forward_tests");
}

TEST(ShapeMatrix, ADocumentThatIsNestedTooDeeplyIsRefusedOnASmallStackToo) {
    const std::string too_deep = "F: line 1: nested more than 32 levels deep";
    for (const char* opening : {"[", "{a: ", "- ", "? "})
        for (const int levels : {32, 33, 1000}) {
            std::string text, said;
            for (int level = 0; level < levels; ++level) text += opening;
            if (std::string_view("[{").find(opening[0]) != std::string_view::npos)
                text += "1" + std::string(static_cast<std::size_t>(levels), opening[0] == '[' ? ']' : '}');
            test::on_small_stack([&] { said = refusal_of(text); });
            EXPECT_EQ(said == too_deep, levels > 32) << opening << levels << said;
            EXPECT_EQ(said.find("not valid YAML"), std::string::npos) << said;
        }
}

TEST(ShapeMatrix, ValuesThatNamesOfCasesCannotHaveAreRefused) {
    const auto test = [](const std::string& members) {
        return "forward_tests: {smoke: [{" + members + "}]}\n";
    };
    for (const char* number : {".nan", ".inf", "-.inf"})
        EXPECT_EQ(refusal_of(test(fmt::format("name: A, dropout: [{}]", number))),
                  fmt::format("F: A: dropout: {} is not allowed: expected a finite number", number));
    EXPECT_EQ(refusal_of(test(R"(name: "A#2")")),
              "F: name: \"A#2\" is not allowed: the name of a test has no \"#\" and no control characters");
    for (const char* name : {R"("A\u0000B")", R"("A\nB")", R"("\u007f")"})
        EXPECT_THAT(refusal_of(test(fmt::format("name: {}", name))),
                    testing::HasSubstr("is not allowed: the name of a test has no"));
    EXPECT_THAT(refusal_of(test("name: backward_tests/A")), testing::HasSubstr("are of another section"));
    EXPECT_EQ(refusal_of(test("name: 'A [1] @2/b'")), "accepted");
}

TEST(ShapeMatrix, RepeatsHaveNamesOfTheirOwn) {
    const auto repeats = by_test(Tier::smoke).at("Repeats");
    std::set<std::string> names;
    for (const auto& shape : repeats) names.insert(shape.id);
    EXPECT_EQ(names.size(), 3U);
    EXPECT_THAT(repeats[2].id, testing::HasSubstr("/Repeats#2["));
    EXPECT_EQ(repeats[2].seqlen_k, repeats[0].seqlen_k);
}

TEST(ShapeMatrix, NamesAreReproducers) {
    for (const auto& shape : load_cases({matrix.string()}, {.root = matrix.parent_path(),
                                                           .tier = Tier::full,
                                                           .kernel_dims = [](ApiFamily) { return dims; }})) {
        auto again = load_case(shape.id, matrix.parent_path());
        again.tier = shape.tier;
        EXPECT_EQ(again, shape) << shape.id;
    }
}

} // namespace
} // namespace fmha::harness
