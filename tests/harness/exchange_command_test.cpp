// Files of a chain: append-KV changes a part of a cache, and attention reads all of it.

#include "harness/npy/npy.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/harness/command_support.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace fmha::cli {
namespace {

using harness::NpyArray;
using harness::NpyType;
using test::Ran;
using test::round_to;
using test::run;
using test::Scratch;
using testing::HasSubstr;
using testing::Not;

/// `bytes` of element `index` of a file.
void put(const std::string& file, std::int64_t index, std::uint32_t bits) {
    NpyArray array = harness::read_npy(file);
    const auto bytes = static_cast<std::size_t>(harness::npy_bytes(array.type));
    std::memcpy(array.bytes.data() + bytes * static_cast<std::size_t>(index), &bits, bytes);
    harness::write_npy(file, array);
}

/// A case whose reference is written to a folder, where it stands for a kernel that writes into the folder of its inputs. One at a time.
class Exchanged {
  public:
    explicit Exchanged(std::string name) : case_(std::move(name)) {
        const Ran wrote = with("reference", {"--out", tensors()});
        EXPECT_EQ(wrote.code, 0) << wrote.err;
    }
    std::string tensors() const { return folder_ / "given"; }
    std::string file(const std::string& name) const { return tensors() + "/" + name + ".npy"; }
    Ran check(std::vector<std::string> more = {}) const {
        more.insert(more.end(), {"--tensors", tensors()});
        return with("check", more);
    }
    /// The outputs get the types that a kernel writes.
    void round(const std::vector<std::string>& halves) const {
        for (const std::string& name : halves) round_to(NpyType::float16, file(name));
        if (std::filesystem::exists(file("lse"))) round_to(NpyType::float32, file("lse"));
    }

  private:
    Ran with(const std::string& command, const std::vector<std::string>& more) const {
        std::vector<std::string> line{command, "--case", case_, "--cases-root", FMHA_CASES_DIR};
        line.insert(line.end(), more.begin(), more.end());
        return run(line);
    }

    Scratch folder_;
    std::string case_;
};

template <class Number>
std::vector<Number> numbers_of(const std::string& file) {
    const NpyArray array = harness::read_npy(file);
    std::vector<Number> numbers(array.bytes.size() / sizeof(Number));
    std::memcpy(numbers.data(), array.bytes.data(), array.bytes.size());
    return numbers;
}

template <class Number>
void put_numbers(const std::string& file, const std::vector<Number>& numbers) {
    NpyArray array = harness::read_npy(file);
    ASSERT_EQ(array.bytes.size(), numbers.size() * sizeof(Number));
    std::memcpy(array.bytes.data(), numbers.data(), array.bytes.size());
    harness::write_npy(file, array);
}

/// What the reference has written is no kernel's work, whatever the type of the case and of the output.
TEST(Exchange, TheReferencesOwnFilesAreNoOutputs) {
    {
        const Exchanged single("fwd/plain[dtype=fp32]@1");
        const Ran own = single.check();
        EXPECT_EQ(own.code, 2);
        EXPECT_THAT(own.err, HasSubstr("o.npy: dtype is float64, as fmha reference writes it and no kernel; "
                                       "allowed: float32\n"));
        round_to(NpyType::float32, single.file("o"));
        EXPECT_THAT(single.check().err, HasSubstr("lse.npy: dtype is float64"));
        single.round({});
        EXPECT_EQ(single.check().code, 0) << single.check().out;
    }
    const Exchanged bytes("fwd/plain[dtype=fp16,p_drop=0.2,dropout_seed=7,store_randval=true]@1");
    bytes.round({"o"});
    EXPECT_THAT(bytes.check().err, HasSubstr("randval.npy: dtype is float64, as fmha reference writes it and "
                                             "no kernel; allowed: uint8\n"));
}

/// Inputs may be float64 as before.
TEST(Exchange, AnInputOfFp32MayBeFloat64) {
    const Exchanged single("fwd/plain[dtype=fp32]@1");
    NpyArray q = harness::read_npy(single.file("q"));
    const auto narrow = numbers_of<float>(single.file("q"));
    q.type = NpyType::float64;
    q.bytes.resize(2 * q.bytes.size());
    const std::vector<double> wide(narrow.begin(), narrow.end());
    std::memcpy(q.bytes.data(), wide.data(), q.bytes.size());
    harness::write_npy(single.file("q"), q);
    round_to(NpyType::float32, single.file("o"));
    single.round({});
    EXPECT_EQ(single.check().code, 0) << single.check().err;
}

/// Weights that are ties become 0 in a kernel that casts P and stay in one that does not: both are right. O of neither is not.
TEST(Exchange, WeightsThatAreTiesMayBeKeptOrDropped) {
    const std::string one =
        "fwd/plain[dtype=fp16,heads=4:2,hdim=64,seqlen=64:200,fill=weight_ties,scale_s=0.6931471805599453]@1";
    const auto gates_of = [](const Ran& ran) {
        EXPECT_EQ(ran.err, "");
        const std::size_t line = ran.out.find("gates ");
        return line == std::string::npos ? ran.out : ran.out.substr(line, ran.out.find('\n', line) - line);
    };
    const Exchanged given(one);
    const auto kept = numbers_of<double>(given.file("o"));
    given.round({"o"});
    EXPECT_EQ(given.check().code, 0) << given.check().out;
    EXPECT_THAT(gates_of(given.check()), HasSubstr("exact:o=0"));
    // A declared cast that may make a weight larger leaves the gate out.
    EXPECT_THAT(gates_of(given.check({"--p-prescale", "1.5"})), Not(HasSubstr("exact")));
    EXPECT_THAT(gates_of(given.check({"--normalised-p"})), Not(HasSubstr("exact")));

    std::vector<std::uint16_t> codes(kept.size());
    const auto v = numbers_of<std::uint16_t>(given.file("v"));
    constexpr std::size_t rows = 64, keys = 200, channels = 64;
    const auto write = [&](auto value) {
        for (std::size_t n = 0; n < codes.size(); ++n)
            codes[n] = static_cast<std::uint16_t>(reference::encode(ElementType::fp16, value(n)));
        put_numbers(given.file("o"), codes);
    };
    write([&](std::size_t n) {
        const std::size_t head = n / (rows * channels); // of both entries; two heads of Q share one of K
        return reference::decode(ElementType::fp16, v[head / 2 * keys * channels + n % channels]);
    });
    EXPECT_EQ(given.check().code, 0) << given.check().out;
    EXPECT_THAT(gates_of(given.check()), HasSubstr("exact:o=0"));
    write([&](std::size_t n) { return 1.01 * kept[n]; });
    EXPECT_EQ(given.check().code, 1);
    EXPECT_THAT(given.check().out, HasSubstr("exact o: b0 h0 row 0 column 0: got "));

    // With inputs of one's own nothing is known of the weights.
    auto moved = v;
    moved[0] ^= 1U;
    put_numbers(given.file("v"), moved);
    EXPECT_THAT(gates_of(given.check()), Not(HasSubstr("exact")));
}

/// S-4 word by word, with the partial O of splits without keys in its sum: S-2 has zeros there.
TEST(Exchange, CombiningMayReadSplitsWithoutKeys) {
    for (const std::string how : {"some_empty", "all_empty", "last_only"}) {
        const Exchanged given(
            "splitkv/plain[dtype=fp16,heads=2,hdim=64,seqlen=5:1,stage=combine,num_splits=4,"
            "partial_lse=" +
            how + "]@1");
        const auto o_acc = numbers_of<float>(given.file("o_acc")),
                   lse_acc = numbers_of<float>(given.file("lse_acc"));
        const auto lse = numbers_of<double>(given.file("lse")), o = numbers_of<double>(given.file("o"));
        constexpr std::size_t splits = 4, rows = 5, channels = 64;
        std::size_t empty = 0;
        for (std::size_t row = 0; row < lse.size(); ++row)
            for (std::size_t c = 0; c < channels; ++c) {
                double sum = 0.0;
                for (std::size_t split = 0; split < splits; ++split) {
                    const std::size_t at = (row / rows * splits + split) * rows + row % rows;
                    if (std::isinf(lse_acc[at])) ++empty;
                    const double weight = std::isinf(lse[row]) ? 0.0 : std::exp(lse_acc[at] - lse[row]);
                    sum += weight * o_acc[at * channels + c];
                }
                ASSERT_NEAR(sum, o[row * channels + c], 1e-6) << how << " row " << row << " channel " << c;
            }
        EXPECT_GT(empty, 0U) << how;
    }
}

/// Q is an input: what append-KV does not rotate of it has its bytes (V-4).
TEST(Exchange, ChannelsOfQThatAreNotRotatedStay) {
    for (const std::string& rope :
         {std::string("rope=interleaved,rotary_dim=32"), std::string("rope=none")}) {
        const Exchanged given("appendkv/plain[dtype=fp16,heads=2,hdim=64,seqlen=3:20," + rope + "]@1");
        given.round({"k_out", "v_out", "q_out"});
        EXPECT_EQ(given.check().code, 0) << given.check().out << given.check().err;
        put(given.file("q_out"), 64 + 40, 0x3C00);
        const Ran wrong = given.check();
        EXPECT_EQ(wrong.code, 1) << rope;
        EXPECT_THAT(wrong.out, HasSubstr("G5.4 q: b0 h0 row 1 column 40: got 0x3c00, not ")) << rope;
    }
}

/// What append-KV leaves as it is need not stand in the files of its results, as cases/README.md says: the reference writes NaN there.
TEST(Exchange, AReferenceOfAChainJudgesItself) {
    for (const std::string one : {"pagedkv/appended[hdim=64,dtype=fp16,mode=batch,seqlen_q=5,appended=5]@1",
                                  "pagedkv/rotated[dtype=fp16,seqlen_q=1,rope=interleaved,appended=1]@1",
                                  "splitkv/appended[hdim=64,dtype=fp16,seqlen_q=5,num_splits=3,appended=1]@1",
                                  "batch_prefill/appended[dtype=fp16,seqlen_q=1,appended=1]@1"}) {
        const Scratch folder;
        const std::string tensors = folder / "given";
        const std::vector<std::string> of_case{"--case", one, "--cases-root", FMHA_CASES_DIR};
        const auto with = [&](std::vector<std::string> line, const std::vector<std::string>& more) {
            line.insert(line.end(), of_case.begin(), of_case.end());
            line.insert(line.end(), more.begin(), more.end());
            return run(line);
        };
        ASSERT_EQ(with({"reference"}, {"--out", tensors}).code, 0) << one;
        for (const char* name : {"o", "k_out", "v_out"})
            round_to(NpyType::float16, tensors + "/" + name + ".npy");
        if (one.find("rope") != std::string::npos) round_to(NpyType::float16, tensors + "/q_out.npy");
        round_to(NpyType::float32, tensors + "/lse.npy");
        const Ran judged = with({"check"}, {"--tensors", tensors});
        EXPECT_EQ(judged.code, 0) << judged.out << judged.err;
        const Ran compared =
            run({"compare", one, "--cases-root", FMHA_CASES_DIR, "--tensors", tensors, tensors});
        EXPECT_EQ(compared.code, 0) << compared.out << compared.err;
        // A new key that is wrong is seen all the same.
        NpyArray keys = harness::read_npy(tensors + "/v_out.npy");
        for (std::size_t i = 0; i < keys.bytes.size(); i += 2)
            if ((keys.bytes[i + 1] & 0x7CU) != 0x7CU) keys.bytes[i] ^= 1U;
        harness::write_npy(tensors + "/v_out.npy", keys);
        const Ran wrong = with({"check"}, {"--tensors", tensors});
        EXPECT_EQ(wrong.code, 1) << one;
        EXPECT_THAT(wrong.out, HasSubstr("G5.4 v")) << one;
    }
}

/// Tables of the caller's own say where keys lie, and so which rows of a pool must be numbers.
TEST(Exchange, KeysAreNumbersWhereTheGivenTablesSay) {
    const Scratch folder;
    const std::string one = "pagedkv/appended[hdim=64,dtype=fp16,mode=batch,seqlen_q=5,appended=5]@1";
    const std::string tensors = folder / "given";
    const auto reference = [&](const std::vector<std::string>& more) {
        std::vector<std::string> line{"reference", "--case", one, "--cases-root", FMHA_CASES_DIR};
        line.insert(line.end(), more.begin(), more.end());
        return run(line);
    };
    ASSERT_EQ(reference({"--out", tensors}).code, 0);
    NpyArray table = harness::read_npy(tensors + "/block_table.npy");
    const std::int64_t page_elements = 2 * 128 * 64, pages = harness::read_npy(tensors + "/k.npy").shape[0];
    const std::int64_t entry = table.shape[1]; // of entry 1, whose first page is full
    std::int32_t page = 0;
    std::memcpy(&page, table.bytes.data() + 4 * entry, 4);
    // The page goes to another place of the pool, and NaN to where it was.
    std::int64_t free = 0;
    for (bool used = true; used; ++free) {
        used = false;
        for (std::int64_t i = 0; i < table.elements(); ++i) {
            std::int32_t other = 0;
            std::memcpy(&other, table.bytes.data() + 4 * i, 4);
            used = used || other == free;
        }
        if (!used) break;
    }
    ASSERT_LT(free, pages);
    for (const char* name : {"/k.npy", "/v.npy"}) {
        NpyArray pool = harness::read_npy(tensors + name);
        const auto at = [&](std::int64_t p) { return pool.bytes.data() + 2 * p * page_elements; };
        std::memcpy(at(free), at(page), 2 * page_elements);
        std::memset(at(page), 0xFF, 2 * page_elements);
        harness::write_npy(tensors + name, pool);
    }
    put(tensors + "/block_table.npy", entry, static_cast<std::uint32_t>(free));
    const Ran moved = reference({"--tensors", tensors, "--out", folder / "moved"});
    EXPECT_EQ(moved.code, 0) << moved.err;
    EXPECT_EQ(harness::read_npy(folder / "moved/o.npy").bytes, harness::read_npy(tensors + "/o.npy").bytes);
    put(tensors + "/k.npy", free * page_elements + 3 * 64 + 7, 0x7E00);
    const Ran red = reference({"--tensors", tensors, "--out", folder / "moved"});
    EXPECT_EQ(red.code, 2);
    EXPECT_THAT(red.err, HasSubstr("k.npy: key 3 of entry 1 is NaN at head 0 channel 7"));
    // Queries are read whole, also where a part of them is rotated.
    const std::string rotated =
        "pagedkv/rotated[dtype=fp16,seqlen_q=1,rope=interleaved,rotary_dim=48,appended=1]@1";
    const std::string turned = folder / "turned";
    ASSERT_EQ(run({"reference", "--case", rotated, "--cases-root", FMHA_CASES_DIR, "--out", turned}).code, 0);
    put(turned + "/q.npy", 63, 0x7E00);
    const Ran query = run({"reference", "--case", rotated, "--cases-root", FMHA_CASES_DIR, "--tensors",
                           turned, "--out", folder / "moved"});
    EXPECT_EQ(query.code, 2);
    EXPECT_THAT(query.err, HasSubstr("q.npy: entry 0 head 0 row 0 column 63 is NaN"));
}

/// The lengths of a case are those of its name, also where a list of pages could give others.
TEST(Exchange, AListOfPagesHoldsTheKeysOfTheCase) {
    const Scratch folder;
    const std::string given = folder / "given";
    const auto reference = [&](const std::vector<std::string>& more) {
        std::vector<std::string> line{
            "reference", "--case",
            "batch_prefill/plain[seqlen_k=300,kv_lookup=sglang_1d,page_size=16,batch=2]@1", "--cases-root",
            FMHA_CASES_DIR};
        line.insert(line.end(), more.begin(), more.end());
        return run(line);
    };
    ASSERT_EQ(reference({"--out", given}).code, 0);
    const NpyArray starts = harness::read_npy(given + "/kv_indptr.npy"),
                   lengths = harness::read_npy(given + "/kv_last_page_lens.npy");
    const std::int64_t places = harness::read_npy(given + "/kv_page_indices.npy").elements();
    const auto said = [&](const char* file, std::int64_t index, std::int64_t number) {
        harness::write_npy(given + "/kv_indptr.npy", starts);
        harness::write_npy(given + "/kv_last_page_lens.npy", lengths);
        put(given + file, index, static_cast<std::uint32_t>(number));
        const Ran ran = reference({"--tensors", given, "--out", folder / "out"});
        EXPECT_EQ(ran.code, 2) << number;
        return ran.err;
    };
    EXPECT_THAT(
        said("/kv_indptr.npy", 2, places + 1),
        HasSubstr(fmt::format("kv_indptr.npy: the pages of entry 1 end at place {}; kv_page_indices has {}",
                              places + 1, places)));
    EXPECT_THAT(said("/kv_indptr.npy", 2, places - 2),
                HasSubstr("kv_indptr.npy: entry 1 has 18 pages; its 300 keys (seqlen_k) lie in 19"));
    EXPECT_THAT(
        said("/kv_last_page_lens.npy", 0, 11),
        HasSubstr(
            "kv_last_page_lens.npy: entry 0 has 11 keys in its last page; of 300 keys (seqlen_k) 12 lie"));
    EXPECT_THAT(said("/kv_indptr.npy", 1, -1), HasSubstr("B-4: kv_indptr goes from 1 to -1 at entry 0"));
}

/// Swaps two entries of the outermost axis of a file.
void swap_pages(const std::string& file, std::int64_t one, std::int64_t other) {
    NpyArray array = harness::read_npy(file);
    const auto bytes = std::ssize(array.bytes) / array.shape.front();
    std::swap_ranges(array.bytes.begin() + one * bytes, array.bytes.begin() + (one + 1) * bytes,
                     array.bytes.begin() + other * bytes);
    harness::write_npy(file, array);
}

/// So it is with descales by page: those count that the given table leads to, and no others.
TEST(Exchange, DescalesAreNumbersWhereTheGivenTablesSay) {
    constexpr std::int64_t entry = 1;
    struct Row {
        std::string name;
        std::vector<const char*> by_page;
    };
    for (const auto& [one, by_page] :
         {Row{"batch_prefill/page_scales[hdim=128,dtype=fp8bf16,length_form_k=seqlen,"
              "mask=b,logits_soft_cap=0,qscale=kv_blockscale,page_size=1024,"
              "kv_layout=linear,kv_lookup=vllm_2d]@1",
              {"/k", "/v", "/k_descale", "/v_descale"}},
          Row{"batch_prefill/faults[dtype=fp8bf16,length_form_k=seqlen,"
              "qscale=per_token_head,page_size=16,kv_layout=vectorized,"
              "kv_lookup=vllm_2d]@1",
              {"/k", "/v", "/k_descale"}}}) {
        const Scratch folder;
        const std::string tensors = folder / "given";
        const auto reference = [&, name = one](const std::vector<std::string>& more) {
            std::vector<std::string> line{"reference", "--case", name, "--cases-root", FMHA_CASES_DIR};
            line.insert(line.end(), more.begin(), more.end());
            return run(line);
        };
        ASSERT_EQ(reference({"--out", tensors}).code, 0);
        const NpyArray table = harness::read_npy(tensors + "/block_table.npy");
        const auto page_at = [&](std::int64_t i) {
            std::int32_t page = 0;
            std::memcpy(&page, table.bytes.data() + 4 * i, 4);
            return std::int64_t{page};
        };
        const std::int64_t place = entry * table.shape[1], page = page_at(place);
        const auto is_used = [&](std::int64_t p) {
            for (std::int64_t i = 0; i < table.elements(); ++i)
                if (page_at(i) == p) return true;
            return false;
        };
        std::int64_t free = 0;
        while (is_used(free)) ++free;
        ASSERT_LT(free, harness::read_npy(tensors + "/k.npy").shape[0]);
        for (const char* name : by_page) swap_pages(tensors + name + ".npy", page, free);
        put(tensors + "/block_table.npy", place, static_cast<std::uint32_t>(free));
        const Ran moved = reference({"--tensors", tensors, "--out", folder / "moved"});
        EXPECT_EQ(moved.code, 0) << moved.err;
        EXPECT_EQ(harness::read_npy(folder / "moved/o.npy").bytes,
                  harness::read_npy(tensors + "/o.npy").bytes);
        const NpyArray scales = harness::read_npy(tensors + "/k_descale.npy");
        put(tensors + "/k_descale.npy", free * (scales.elements() / scales.shape[0]), 0x7FC00000);
        const Ran red = reference({"--tensors", tensors, "--out", folder / "moved"});
        EXPECT_EQ(red.code, 2);
        EXPECT_THAT(red.err, HasSubstr("k_descale"));
    }
}

/// Refused before anything is allocated or read.
TEST(Exchange, ACaseBeyondTheMemoryLimitIsRefused) {
    const Scratch folder;
    const std::string one = "fwd/tiny[hdim=64,seqlen=40000000,dtype=fp32]@1",
                      sentence = "are allowed (--memory-limit)";
    for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{
             {"reference", "--case", one, "--out", folder / "out"},
             {"check", "--case", one, "--tensors", folder / "none"},
             {"compare", one, "--tensors", folder / "none", folder / "none"}}) {
        std::vector<std::string> all = line;
        all.insert(all.end(), {"--cases-root", FMHA_CASES_DIR});
        const Ran ran = run(all);
        EXPECT_EQ(ran.code, 2) << line.front();
        EXPECT_THAT(ran.err, HasSubstr(one + ": it needs"));
        EXPECT_THAT(ran.err, HasSubstr(sentence));
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
    const Ran ran = run({"reference", "--case", one, "--out", folder / "out", "--memory-limit", "-1"});
    EXPECT_THAT(ran.err, HasSubstr("--memory-limit is -1; allowed: 0 to 1000000"));
}

} // namespace
} // namespace fmha::cli
