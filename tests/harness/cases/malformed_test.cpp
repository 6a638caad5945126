// Every way to get a case file wrong ends in one sentence that names the place, the value and the allowed ones. `X` stands for the file
// in the expected sentences.

#include "harness/cases/case_file.hpp"
#include "tests/harness/cases/malformed.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::harness {
namespace {

using test::complaint;
using test::file;
using test::Malformed;

std::string complaint_about(const std::string& content) {
    return complaint([&] { CaseFile::parse(content, "X", "fwd/x").expand(Tier::nightly); });
}

TEST(Malformed, TheTemplateItselfIsFine) {
    EXPECT_EQ(complaint_about(file("")), "accepted");
}

TEST(Malformed, MoreCasesThanAMachineHolds) {
    std::string numbers = "1";
    for (int n = 2; n <= 100; ++n) numbers += fmt::format(", {}", n);
    const auto each = [&](std::string_view last) {
        return file(
            fmt::format(R"("each": {{"batch": [{0}], "nhead_q": [{0}], "seqlen_q": [{0}], "lse": [{1}]}})",
                        numbers, last));
    };
    EXPECT_EQ(complaint_about(each("true, false")), "X: each and pair make more than 1000000 cases");
}

TEST(Malformed, CaseFiles) {
    static constexpr Malformed table[] = {
        // The outer form.
        {"", "X: not valid JSON: parse error at line 1, column 1: syntax error while parsing value - "
             "unexpected end of input; "
             "expected '[', '{', or a literal"},
        {"[1, 2]", "X: the file: expected an object, got [1,2]"},
        {"\"set\": {\"hdim\": 64",
         "X: not valid JSON: parse error at line 1, column 87: syntax error while parsing object - "
         "unexpected end of input; expected '}'"},
        {"\"set\": {\"scale_s\": NaN}",
         "X: not valid JSON: parse error at line 1, column 87: syntax error while parsing "
         "value - invalid literal; last read: '\"scale_s\": N'"},
        {"\"set\": {\"scale_s\": 1e999}", "X: not valid JSON: number overflow parsing '1e999'"},
        {R"({"family": "fwd", "tier": "smoke", "fill": "normal"})", "X: about: is missing"},
        {R"({"about": "", "family": "fwd", "tier": "smoke", "fill": "normal"})",
         "X: about: must be a sentence, it is empty"},
        {R"({"about": 3, "family": "fwd", "tier": "smoke", "fill": "normal"})",
         "X: about: expected a string, got 3"},
        {R"({"about": "a", "tier": "smoke", "fill": "normal"})", "X: family: is missing"},
        {R"({"about": "a", "family": "foward", "tier": "smoke", "fill": "normal"})",
         "X: family: \"foward\" is not known; allowed: fwd, fwd_pagedkv, fwd_splitkv, fwd_appendkv, "
         "batch_prefill, bwd"},
        {R"({"about": "a", "family": "fwd", "fill": "normal"})", "X: tier: is missing"},
        {R"({"about": "a", "family": "fwd", "tier": "quick", "fill": "normal"})",
         "X: tier: \"quick\" is not a tier; allowed: smoke, full or nightly"},
        {R"({"about": "a", "family": "fwd", "tier": "smoke"})", "X: fill: is missing"},
        {R"({"about": "a", "family": "fwd", "tier": "smoke", "fill": "gaussian"})",
         "X: fill[0]: \"gaussian\" is not allowed; expected normal, sharp, indexed, zeros, huge, uniform, "
         "integers, "
         "edge_last, edge_first, rising, ties, weight_ties, shifted or heavy_tailed"},
        {R"({"about": "a", "family": "fwd", "tier": "smoke", "fill": []})",
         "X: fill: expected a list with at least one value, got []"},
        {R"({"about": "a", "family": "fwd", "tier": "smoke", "fill": ["zeros", "zeros"]})",
         "X: fill: has the value zeros twice"},
        {R"({"about": "a", "about": "b", "family": "fwd"})", "X: key \"about\" appears twice in one object"},
        {"\"set\": {\"hdim\": 64, \"hdim\": 32}", "X: key \"hdim\" appears twice in one object"},
        {"\"eech\": {}", "X: eech: is not a key of the case language; did you mean each?"},
        {"\"colour\": 1", "X: colour: is not a key of the case language"},
        {"\"labels\": \"mask\"", "X: labels: expected a list with at least one value, got \"mask\""},
        {"\"labels\": [\"Mask!\"]",
         "X: labels: \"Mask!\" is not a label; a label has letters a-z, digits and _"},

        // Fields and their values.
        {"\"set\": []", "X: set: expected an object, got []"},
        {"\"set\": {\"seqlen_kk\": 5}",
         "X: set.seqlen_kk: \"seqlen_kk\" is not a field of a case; did you mean seqlen_k?"},
        {"\"set\": {\"dtype\": \"fp17\"}", "X: set.dtype: \"fp17\" is not allowed; expected fp32, "
                                           "fp16, bf16, fp8, bf8, fp8bf16, fp8fp32, mxfp8 or mxfp4"},
        {"\"set\": {\"dtype\": 16}", "X: set.dtype: 16 is not allowed; expected fp32, fp16, bf16, fp8, "
                                     "bf8, fp8bf16, fp8fp32, mxfp8 or mxfp4"},
        {"\"set\": {\"lse\": 1}", "X: set.lse: 1 is not allowed; expected true or false"},
        {"\"set\": {\"lse\": \"yes\"}", "X: set.lse: \"yes\" is not allowed; expected true or false"},
        {"\"set\": {\"batch\": 2.5}",
         "X: set.batch: 2.5 is not allowed; expected an integer of at most 63 bits"},
        {"\"set\": {\"batch\": \"2\"}",
         "X: set.batch: \"2\" is not allowed; expected an integer of at most 63 bits"},
        {"\"set\": {\"batch\": null}",
         "X: set.batch: null is not allowed; expected an integer of at most 63 bits"},
        {"\"set\": {\"batch\": 9223372036854775808}",
         "X: set.batch: 9223372036854775808 is not allowed; expected an integer of at most 63 bits"},
        {"\"set\": {\"dropout_seed\": -1}",
         "X: set.dropout_seed: -1 is not allowed; expected an integer from 0 to 2^64 - 1"},
        {"\"set\": {\"heads\": \"8:2:1\"}",
         "X: set.heads: \"8:2:1\" is not allowed; expected a head count or \"query:key\", as in \"8:2\""},
        {"\"set\": {\"heads\": \"8:x\"}",
         "X: set.heads: \"8:x\" is not allowed; expected a head count or \"query:key\", as in \"8:2\""},
        {"\"set\": {\"layout\": \"bsdh\"}",
         "X: set.layout: \"bsdh\" is not allowed; expected \"bhsd\", \"bshd\" or \"input:output\""},
        {"\"set\": {\"mask\": \"causal\"}",
         "X: set.mask: \"causal\" is not allowed; expected a mask text: \"0\", \"t\", \"b\", \"t:l,r\", "
         "\"b:l,r\", "
         "\"t:l,r,sinks\", \"b:l,r,sinks\", \"xt:w\", \"xb:w\" or \"g:y,x\""},
        {"\"set\": {\"mask\": \"t:1\"}",
         "X: set.mask: \"t:1\" is not allowed; expected a mask text: \"0\", \"t\", \"b\", \"t:l,r\", "
         "\"b:l,r\", "
         "\"t:l,r,sinks\", \"b:l,r,sinks\", \"xt:w\", \"xb:w\" or \"g:y,x\""},
        {"\"set\": {\"bias\": \"e:3\"}", "X: set.bias: \"e:3\" is not allowed; expected \"none\", "
                                         "\"e:0\", \"e:1\", \"e:2\", \"a:0\", \"a:1\", \"-a:0\" or \"-a:1\""},
        {"\"set\": {\"seqlen_q\": [1, \"2\"]}",
         "X: set.seqlen_q: [1,\"2\"] is not allowed; expected one length or a list with one length an entry"},
        {"\"set\": {\"expect\": \"invalid_problem\"}",
         "X: set.expect: \"invalid_problem\" is not allowed; expected \"pass\", \"pass:KERNEL-GLOB\", "
         "\"invalid_problem:RULE\" or \"no_kernel:REASON\""},
        {"\"set\": {\"fill\": \"zeros\"}", "X: set.fill: fills are stated by the key \"fill\""},
        {"\"set\": {\"hdim\": {}}", "X: set.hdim: names no tier"},
        {"\"set\": {\"hdim\": {\"full\": 64}}",
         "X: set.hdim: has no value for \"smoke\", the tier of the file"},
        {"\"set\": {\"hdim\": {\"smoke\": 64, \"ful\": 32}}",
         "X: set.hdim.ful: \"ful\" is not a tier; allowed: smoke, full or nightly"},
        {R"({"about": "a", "family": "fwd", "tier": "full", "fill": {"smoke": "zeros", "full": "zeros"}})",
         "X: tier: \"full\" is above tier \"smoke\", which a value of this file names"},

        // Axes.
        {"\"each\": {\"hdim\": 64}", "X: each.hdim: expected a list with at least one value, got 64"},
        {"\"each\": {\"hdim\": []}", "X: each.hdim: expected a list with at least one value, got []"},
        {"\"each\": {\"hdim\": [64, \"64:64\"]}", "X: each.hdim: has the value 64 twice"},
        {"\"each\": {\"seqlen_k\": [\"around(64\"]}",
         "X: each.seqlen_k[0]: \"around(64\" is not allowed; expected \"around(n)\" with n > 0, eight times "
         "at most"},
        {"\"each\": {\"seqlen_k\": [\"around(0)\"]}",
         "X: each.seqlen_k[0]: \"around(0)\" is not allowed; expected \"around(n)\" with n > 0, eight times "
         "at most"},
        {"\"each\": {\"mask\": "
         "[\"b:around(2)around(2)around(2)around(2)around(2)around(2)around(2)around(2)around(2)\"]}",
         "X: each.mask[0]: "
         "\"b:around(2)around(2)around(2)around(2)around(2)around(2)around(2)around(2)around(2)\" is not "
         "allowed; expected \"around(n)\" with n > 0, eight times at most"},
        {"\"each\": {\"seqlen_k\": [\"around(64)\", 65]}", "X: each.seqlen_k: has the value 65 twice"},
        {"\"each\": {\"seqlen_q,seqlen_k\": [[1, 2]]}",
         "X: each.seqlen_q,seqlen_k: names several fields; fields that vary together are a pair"},
        {"\"each\": {\"lenk\": [1]}", "X: each.lenk: \"lenk\" is not a field of a case"},
        {"\"each\": {\"hdim\": [64]}, \"set\": {\"hdim_v\": 32}",
         "X: each.hdim: sets hdim_v, which set.hdim_v sets too"},
        {"\"pair\": {\"hdim\": [[64]]}",
         "X: pair.hdim: names one field; a field that varies alone belongs to each"},
        {"\"pair\": {\"hdim,hdim\": [[64, 32]]}", "X: pair.hdim,hdim: sets hdim_q twice"},
        {"\"pair\": {\"seqlen_k,seqlen\": [[64, 32]]}", "X: pair.seqlen_k,seqlen: sets seqlen_k twice"},
        {"\"pair\": {\"seqlen_q,seqlen_k\": [[1, 2], [3]]}",
         "X: pair.seqlen_q,seqlen_k[1]: expected a list of 2 values, got [3]"},
        {"\"pair\": {\"seqlen_q,seqlen_k\": [[1, 2], [1, 2]]}",
         "X: pair.seqlen_q,seqlen_k[1]: repeats [1,2]"},
        {"\"pair\": {\"seqlen_q,sqlen_k\": [[1, 2]]}",
         "X: pair.seqlen_q,sqlen_k: \"sqlen_k\" is not a field of a case; did you mean seqlen_k?"},
        {"\"also\": []", "X: also: expected a list with at least one value, got []"},
        {"\"also\": [{\"hdim\": 64, \"hdim_q\": 64}]", "X: also[0].hdim_q: sets hdim_q, which hdim sets too"},
        {"\"also\": [{\"batch\": 1}, {\"batch\": 1}]", "X: the case fwd/x[batch=1]@1 appears twice"},
        {"\"cover\": {\"each\": {\"lse\": [true, false]}}", "X: cover: needs at least two axes"},
        {"\"cover\": {\"each\": {\"lse\": [true], \"mask\": [\"0\"]}, \"unless\": []}",
         "X: cover.unless: is not a key of the case language"},
        {R"("cover": {"each": {"lse": [true], "mask": ["0"]}, "exclude": [{"lse": true, "mask": "0"}]})",
         "X: cover.exclude[0].why: is missing"},
        {R"("cover": {"each": {"lse": [true], "mask": ["0"]}, "exclude": [{"lse": true, "bias": "none", "why": "w"}]})",
         "X: cover.exclude[0].bias: is not a field of a cover axis"},
        {R"("cover": {"each": {"lse": [true], "mask": ["0"]}, "exclude": [{"lse": true, "why": "w"}]})",
         "X: cover.exclude[0]: needs at least two fields"},
        {R"("cover": {"each": {"lse": [true], "mask": ["0"]}, "exclude": [{"lse": true, "mask": "0", "why": "w"}]})",
         "X: cover.exclude: excludes every row of tier smoke; allowed: exclusions that leave a row"},

        // Values relative to the planned kernel.
        {"\"each\": {\"seqlen_k\": [\"tile_n0/2\"]}",
         "X: each.seqlen_k[0]: \"tile_n0/2\" is not allowed; numbers relative to the planned kernel are sums "
         "and products of integers, tile_m0 and tile_n0"},
        {"\"each\": {\"mask\": [\"t:tile_m0,2*-tile_n0\"]}",
         "X: each.mask[0]: \"t:tile_m0,2*-tile_n0\" is not allowed; numbers relative to the planned kernel "
         "are "
         "sums and products of integers, tile_m0 and tile_n0"},
        {"\"each\": {\"lse\": [\"tile_n0+1\"]}", "X: each.lse[0]: \"tile_n0+1\" is not allowed; with tiles "
                                                 "of 64 it is \"65\", expected true or false"},
        {"\"each\": {\"seqlen_k\": [\"around(tile_k0)\"]}",
         "X: each.seqlen_k[0]: \"around(tile_k0)\" is not allowed; expected \"around(n)\" with n > 0, eight "
         "times at most"},
        {"\"each\": {\"seqlen_k\": [\"tile_n0\", \"around(tile_n0)\"]}",
         "X: each.seqlen_k: has the value tile_n0 twice"},
        {"\"set\": {\"seqlen_k\": {\"smoke\": \"tile_n0\"}}",
         "X: set.seqlen_k.smoke: \"tile_n0\" is relative to the planned kernel; names show such a value only "
         "under each, pair, cover or also"},
        {"\"each\": {\"seqlen_k\": [\"tile_n0\"]}",
         "X: seqlen_k: \"tile_n0\" is relative to the planned kernel, and there is none to ask"},

        // Cases that contradict themselves.
        {"\"set\": {\"seqlen_q\": -5}", "X: fwd/x@1: seqlen_q=-5: a length is 0 or more"},
        {"\"set\": {\"seqlen_q\": []}", "X: fwd/x@1: seqlen_q=[]: expected at least one length"},
        {"\"set\": {\"seqlen_k\": 4294967296}", "X: fwd/x@1: seqlen_k=4294967296: lengths are below 2^31"},
        {"\"set\": {\"seqlen_q\": [1, 2, 3]}", "X: fwd/x@1: seqlen_q=[1,2,3]: has 3 lengths for batch 2"},
        {"\"set\": {\"batch\": 1099511627776}",
         "X: fwd/x@1: q or o=3.6e+16 elements: more than 2^32 elements in one tensor"},
        {"\"set\": {\"seqlen_k\": 100, \"physical_k\": 90, \"length_form_k\": \"seqlen\"}",
         "X: fwd/x@1: seqlen_k=100: is longer than the allocated length 90 of physical_k"},
        {"\"set\": {\"seqlen_k\": 100, \"physical_k\": 128}",
         "X: fwd/x@1: length_form_k=none: seqlen_k differs from the allocated length, so the kernel must be "
         "told: \"seqlen\" or \"cu_seqlen\""},
        {"\"set\": {\"seqlen_q\": [3, 4]}",
         "X: fwd/x@1: length_form_q=none: seqlen_q differs from the allocated length, so the kernel must be "
         "told: \"seqlen\" or \"cu_seqlen\""},
        {"\"set\": {\"physical_q\": [130, 140], \"length_form_q\": \"seqlen\"}",
         "X: fwd/x@1: physical_q=[130,140]: entries of a batch have one allocated length (N-1); unequal ones "
         "need mode=group"},
        {"\"set\": {\"wide_tensor\": \"q\"}",
         "X: fwd/x@1: wide_batch_stride=0: wide_tensor and wide_batch_stride are stated together"},
        {"\"set\": {\"wide_tensor\": \"q\", \"wide_batch_stride\": 4611686018427387904}",
         "X: fwd/x@1: wide_batch_stride=4611686018427387904: expected at most 2^40 elements"},
        {"\"set\": {\"stride_padding\": -8}", "X: fwd/x@1: stride_padding=-8: expected 0 to 2^20 elements"},
        {"\"set\": {\"stride_padding\": 2305843009213693952}",
         "X: fwd/x@1: stride_padding=2305843009213693952: expected 0 to 2^20 elements"},
        {R"({"about": "a", "family": "fwd_pagedkv", "tier": "smoke", "set": {"capacity": 2147483647, "page_size": 16}, "fill": "normal"})",
         "X: fwd/x@1: k or v=1.1e+12 elements: more than 2^32 elements in one tensor"},
        {"\"set\": {\"num_splits\": 3}",
         "X: set.num_splits: num_splits is not a field of family fwd; families that have it: fwd_splitkv"},
        {"\"set\": {\"repeats\": 0}", "X: fwd/x@1: repeats=0: a case runs at least once"},
        {"\"set\": {\"repeats\": -1}",
         "X: set.repeats: -1 is not allowed; expected an integer from 1 to 1000000"},
        {R"({"about": "a", "family": "fwd", "tier": "smoke", "set": {"logits_soft_cap": 30}, "fill": "edge_last"})",
         "X: fwd/x[fill=edge_last]@1: fill=edge_last: the answer is exact only without a "
         "logits soft-cap"},
        {R"({"about": "a", "family": "fwd", "tier": "smoke", "set": {"seqlen_k": 5000}, "fill": "edge_first"})",
         "X: fwd/x[fill=edge_first]@1: fill=edge_first: the answer is exact only without more than 4096 "
         "keys"},
        {R"({"about": "a", "family": "bwd", "tier": "smoke", "fill": "shifted"})",
         "X: fwd/x[fill=shifted]@1: fill=shifted: an LSE of 1e5 in fp32 is rounded by more than the limits "
         "of "
         "gradients know"},
        {R"({"about": "a", "family": "fwd", "tier": "smoke", "set": {"p_drop": 0.5}, "fill": "edge_first"})",
         "X: fwd/x[fill=edge_first]@1: fill=edge_first: the answer is exact only without dropout"},
        {R"({"about": "a", "family": "fwd_splitkv", "tier": "smoke", "set": {"stage": "combine"}, "fill": "edge_last"})",
         "X: fwd/x[fill=edge_last]@1: fill=edge_last: combining computes no scores, which this fill is "
         "about"},
        {R"({"about": "a", "family": "fwd", "tier": "smoke", "set": {"dtype": "fp32"}, "fill": "ties"})",
         "X: fwd/x[fill=ties]@1: fill=ties: the answer is exact only with a 16- or 8-bit output, because an "
         "fp32 sum has no tie in fp32"},
        {R"({"about": "a", "family": "fwd", "tier": "smoke", "set": {"dtype": "fp8", "scale_o": 3}, "fill": "ties"})",
         "X: fwd/x[fill=ties]@1: fill=ties: the answer is exact only with an output scale that is a power of "
         "two"},
        {R"({"about": "a", "family": "fwd", "tier": "smoke", "fill": "weight_ties"})",
         "X: fwd/x[fill=weight_ties]@1: fill=weight_ties: the answer is exact only with "
         "scale_s=0.6931471805599453, ln 2"},
        {R"({"about": "a", "family": "fwd", "tier": "smoke", "set": {"dtype": "bf16"}, "fill": "weight_ties"})",
         "X: fwd/x[fill=weight_ties]@1: fill=weight_ties: the answer is exact only with another type: half "
         "the "
         "smallest bf16 lies below the range of exp2"},
    };
    static_assert(std::size(table) >= 60);
    for (const auto& [content, sentence] : table) {
        // A content that does not start a file is spliced into the template.
        const bool whole = content.empty() || content[0] == '{' || content[0] == '[';
        EXPECT_EQ(complaint_about(whole ? std::string(content) : file(content)), sentence) << content;
    }
}

} // namespace
} // namespace fmha::harness
