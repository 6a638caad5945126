#include "dispatcher/types/rule.hpp"

#include "tests/dispatcher/kernels.hpp"

#include <gmock/gmock.h>

#include <cctype>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace fmha {
namespace {

using testing::kernel_of;

HardwareLimits all_hardware() {
    HardwareLimits hardware;
    hardware.arch = "gfx950";
    hardware.data_types = (1U << EnumTable<DataType>::names.size()) - 1;
    hardware.pipelines = (1U << EnumTable<Pipeline>::names.size()) - 1;
    hardware.is_cdna = true;
    return hardware;
}

/// A kernel that keeps every rule, broken in one way.
struct Broken {
    std::string name, id;
    KernelFamily family;
    std::function<void(KernelConfig&, HardwareLimits&)> spoil;
    Severity severity = Severity::error;
};

std::vector<Broken> broken_kernels() {
    using enum KernelFamily;
    using K = KernelConfig;
    using H = HardwareLimits;
    return {
        {"hdim_q", "VR-01", fwd, [](K& k, H&) { k.signature.hdim_q = 100; }},
        {"hdim_v_zero", "VR-01", fwd, [](K& k, H&) { k.signature.hdim_v = 0; }},
        {"data_type", "VR-02", fwd, [](K&, H& h) { h.data_types = 0; }},
        {"pipeline", "VR-03", fwd, [](K&, H& h) { h.pipelines = 0; }},
        {"soft_cap_bias", "VR-04", fwd,
         [](K& k, H&) {
             k.signature.has_logits_soft_cap = true;
             k.signature.bias = BiasType::alibi;
         }},
        {"trload_hdim", "VR-05", fwd,
         [](K& k, H&) {
             k.algorithm.pipeline = Pipeline::qr_async_trload;
             k.signature.hdim_q = 256;
         }},
        {"v3_asymmetric", "VR-05", fwd,
         [](K& k, H&) {
             k.algorithm.pipeline = Pipeline::qr_async_trload_v3;
             k.signature.hdim_v = 64;
         }},
        {"nine_entries_in_forward", "VR-06", fwd, [](K& k, H&) { k.algorithm.tile.b6 = 32; }},
        {"six_entries_in_backward", "VR-06", bwd_dq_dk_dv, [](K& k, H&) { k.algorithm.tile.b8 = 0; }},
        {"negative_waves", "VR-06", fwd, [](K& k, H&) { k.algorithm.wave.m2 = -1; }},
        {"warp_does_not_divide", "VR-07", fwd, [](K& k, H&) { k.algorithm.tile.m0 = 96; }},
        {"step_does_not_divide", "VR-07", fwd, [](K& k, H&) { k.algorithm.tile.k0 = 24; }},
        {"zero_tile", "VR-07", fwd_splitkv, [](K& k, H&) { k.algorithm.tile.n0 = 0; }},
        {"backward_key_tile", "VR-07", bwd_dq_dk_dv, [](K& k, H&) { k.algorithm.tile.n0 = 96; }},
        {"mfma_count", "VR-08", fwd,
         [](K& k, H&) {
             k.signature.hdim_q = 256;
             k.algorithm.pipeline = Pipeline::qr;
             k.algorithm.tile.n0 = 32;
         }},
        {"occupancy", "VR-09", fwd, [](K& k, H&) { k.algorithm.block_per_cu = 0; }},
        {"wave_groups", "VR-09", fwd, [](K& k, H&) { k.algorithm.num_wave_groups = 0; }},
        {"group_unpadded_queries", "VR-10", fwd,
         [](K& k, H&) {
             k.signature.mode = Mode::group;
             k.algorithm.pad.s = false;
         }},
        {"group_unpadded_keys", "VR-10", fwd_pagedkv,
         [](K& k, H&) {
             k.signature.mode = Mode::group;
             k.algorithm.pad.sk = false;
         }},
        {"split_pipeline", "VR-11", fwd_splitkv, [](K& k, H&) { k.algorithm.pipeline = Pipeline::qr_async; }},
        {"split_column_v", "VR-11", fwd_splitkv, [](K& k, H&) { k.signature.v_layout = VLayout::column; }},
        {"paged_pipeline", "VR-12", fwd_pagedkv, [](K& k, H&) { k.algorithm.pipeline = Pipeline::qr; }},
        {"paged_flag", "VR-12", fwd_pagedkv, [](K& k, H&) { k.signature.use_paged_kv = false; }},
        {"append_group", "VR-13", fwd_appendkv, [](K& k, H&) { k.signature.mode = Mode::group; }},
        {"append_pipeline", "VR-13", fwd_appendkv, [](K& k, H&) { k.algorithm.pipeline = Pipeline::qr; }},
        {"prefill_batch", "VR-14", batch_prefill, [](K& k, H&) { k.signature.mode = Mode::batch; }},
        {"prefill_page", "VR-14", batch_prefill, [](K& k, H&) { k.signature.page_size = 24; }},
        {"prefill_pipeline", "VR-14", batch_prefill, [](K& k, H&) { k.algorithm.pipeline = Pipeline::qr; }},
        {"combine_columns", "VR-15", fwd_splitkv_combine, [](K& k, H&) { k.algorithm.tile.n1 = 64; }},
        {"backward_type", "VR-16", bwd_dot_do_o, [](K& k, H&) { k.signature.data_type = DataType::fp8; }},
        {"backward_column_v", "VR-16", bwd_dq_dk_dv,
         [](K& k, H&) { k.signature.v_layout = VLayout::column; }},
        {"wide_queries_with_dropout", "VR-17", fwd,
         [](K& k, H&) {
             k.signature.hdim_q = 192;
             k.signature.has_dropout = true;
         },
         Severity::warning},
        {"dropout_in_split", "VR-18", fwd_splitkv, [](K& k, H&) { k.signature.has_dropout = true; }},
        {"randval_without_dropout", "VR-18", fwd, [](K& k, H&) { k.signature.is_store_randval = true; }},
        {"variant_in_forward", "VR-18", fwd,
         [](K& k, H&) {
             k.signature.has_dropout = true;
             k.algorithm.dropout_variant = DropoutVariant::dropout_wg16;
         }},
        {"variant_disagrees", "VR-18", bwd_dq_dk_dv,
         [](K& k, H&) {
             k.signature.has_dropout = true;
             k.algorithm.dropout_variant = DropoutVariant::dropout_wg16_storerandval;
         }},
        {"dbias_without_bias", "VR-19", bwd_dq_dk_dv, [](K& k, H&) { k.signature.has_dbias = true; }},
        {"dbias_in_forward", "VR-19", fwd,
         [](K& k, H&) {
             k.signature.bias = BiasType::elementwise;
             k.signature.has_dbias = true;
         }},
        {"backward_soft_cap", "VR-19", bwd_dq_dk_dv,
         [](K& k, H&) { k.signature.has_logits_soft_cap = true; }},
        {"backward_quantised", "VR-19", bwd_dq_dk_dv,
         [](K& k, H&) { k.signature.qscale = QScale::pertensor; }},
        {"backward_sink", "VR-19", bwd_dq_dk_dv, [](K& k, H&) { k.signature.has_sink = true; }},
        {"rope_in_forward", "VR-19", fwd, [](K& k, H&) { k.signature.rope = Rope::interleaved; }},
        {"rope_fp8", "VR-19", fwd_appendkv,
         [](K& k, H&) {
             k.signature.rope = Rope::interleaved;
             k.signature.data_type = DataType::fp8;
         }},
        {"mx_without_scales", "VR-19", fwd,
         [](K& k, H&) {
             k.signature.data_type = DataType::mxfp8;
             k.signature.v_layout = VLayout::column;
         }},
        {"mx_row_major", "VR-19", fwd,
         [](K& k, H&) {
             k.signature.data_type = DataType::mxfp4;
             k.signature.qscale = QScale::mx;
         }},
        {"kv_blockscale_in_forward", "VR-19", fwd,
         [](K& k, H&) { k.signature.qscale = QScale::kv_blockscale; }},
        {"per_token_head_in_forward", "VR-19", fwd,
         [](K& k, H&) { k.signature.qscale = QScale::per_token_head; }},
        {"paged_page", "VR-19", fwd_pagedkv, [](K& k, H&) { k.signature.page_size = 64; }},
        {"prefill_page_one_vectorized", "VR-19", batch_prefill,
         [](K& k, H&) {
             k.signature.kv_layout = KvLayout::vectorized;
             k.signature.page_size = 1;
         }},
        {"too_many_splits", "VR-19", fwd_splitkv_combine, [](K& k, H&) { k.algorithm.max_splits_log2 = 8; }},
    };
}

class ValidationRuleTest : public ::testing::TestWithParam<Broken> {};

TEST_P(ValidationRuleTest, AcceptsTheIntactKernelAndNamesTheBrokenOne) {
    const Broken& row = GetParam();
    KernelConfig kernel = kernel_of(row.family);
    HardwareLimits hardware = all_hardware();
    EXPECT_THAT(validate(kernel, hardware), ::testing::IsEmpty());
    EXPECT_TRUE(is_valid(kernel, hardware));
    row.spoil(kernel, hardware);
    const auto findings = validate(kernel, hardware);
    EXPECT_THAT(findings,
                ::testing::Contains(::testing::AllOf(
                    ::testing::Field(&RuleFinding::id, row.id),
                    ::testing::Field(&RuleFinding::severity, row.severity),
                    ::testing::Field(&RuleFinding::message, ::testing::Not(::testing::IsEmpty())))));
    EXPECT_EQ(is_valid(kernel, hardware), row.severity == Severity::warning);
}

INSTANTIATE_TEST_SUITE_P(Rules, ValidationRuleTest, ::testing::ValuesIn(broken_kernels()),
                         [](const auto& row) { return row.param.name; });

TEST(ValidationRules, EveryRuleHasARejectingCaseAndATextInOrder) {
    std::set<std::string> tested;
    for (const Broken& row : broken_kernels()) tested.insert(row.id);
    int number = 0;
    for (const ValidationRule& rule : validation_rules()) {
        EXPECT_TRUE(tested.contains(std::string(rule.id))) << rule.id;
        EXPECT_FALSE(rule.says.empty());
        const std::string digits = std::to_string(++number);
        EXPECT_EQ(rule.id, "VR-" + std::string(2 - digits.size(), '0') + digits);
    }
    EXPECT_EQ(number, 19);
}

// The words of the two lists share pipelines without being the same text.
TEST(ValidationRules, NameThePipelinesThatTheSpecificationNames) {
    std::ifstream file(FMHA_SOURCE_DIR "/docs/spec/dispatcher-api.md");
    std::map<std::string, std::set<std::string>, std::less<>> specified;
    const auto pipelines_of = [](std::string text) {
        for (char& letter : text)
            if (letter != '_' && std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = ' ';
        std::set<std::string> found;
        std::istringstream words(text);
        for (std::string word; words >> word;)
            if (parse_enum<Pipeline>(word)) found.insert(word);
        return found;
    };
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("| VR-")) specified[line.substr(2, 5)] = pipelines_of(line.substr(7));
    EXPECT_EQ(specified.size(), validation_rules().size());
    for (const ValidationRule& rule : validation_rules())
        EXPECT_EQ(pipelines_of(std::string(rule.says)), specified[std::string(rule.id)]) << rule.id;
}

TEST(ValidationRules, CombineKernelsAreExemptFromThePipelineRule) {
    HardwareLimits hardware = all_hardware();
    hardware.pipelines = 0;
    EXPECT_TRUE(is_valid(kernel_of(KernelFamily::fwd_splitkv_combine), hardware));
}

TEST(ValidationRules, InstructionCountBindsCdnaOnly) {
    HardwareLimits hardware = all_hardware();
    KernelConfig kernel = testing::fwd_kernel(256, 256);
    kernel.algorithm.pipeline = Pipeline::qr;
    kernel.algorithm.tile.n0 = 32;
    EXPECT_FALSE(is_valid(kernel, hardware));
    hardware.is_cdna = false;
    EXPECT_TRUE(is_valid(kernel, hardware));
}

} // namespace
} // namespace fmha
