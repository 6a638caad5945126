// Files of caches: tables of the caller's own say where keys lie, and append-KV changes a part of them.

#include "reference/numerics/formats.hpp"
#include "tests/harness/exchange_support.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace fmha::cli {
namespace {

using harness::NpyArray;
using harness::NpyType;
using test::Exchanged;
using test::numbers_of;
using test::put;
using test::put_numbers;
using test::Ran;
using test::round_to;
using test::run;
using test::Scratch;
using testing::HasSubstr;
using testing::Not;

/// Both commands that read the files of `one` in `tensors` refuse them with `sentence`.
void expect_refused(const std::string& one, const std::string& tensors, const std::string& sentence) {
    const std::vector<std::string> files{"--case", one, "--cases-root", FMHA_CASES_DIR, "--tensors", tensors};
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"reference", "--out", tensors + "/out"}, {"check"}}) {
        std::vector<std::string> line = command;
        line.insert(line.end(), files.begin(), files.end());
        const Ran ran = run(line);
        EXPECT_EQ(ran.code, 2) << command.front();
        EXPECT_THAT(ran.err, HasSubstr(sentence)) << command.front();
    }
}

/// A table of pages that leads out of the pool is a sentence and no page is read; entries that no key needs may hold anything.
TEST(Exchange, AMalformedTableIsNotFollowed) {
    const Scratch folder;
    const std::string one = "splitkv/plain@1", tensors = folder / "given";
    const std::vector<std::string> again{"reference", "--case", one,     "--cases-root", FMHA_CASES_DIR,
                                         "--tensors", tensors,  "--out", folder / "out"};
    ASSERT_EQ(run({"reference", "--case", one, "--cases-root", FMHA_CASES_DIR, "--out", tensors}).code, 0);
    NpyArray table = harness::read_npy(tensors + "/block_table.npy");
    ASSERT_EQ(table.elements(), 2);
    const auto put = [&](std::int64_t place, std::int32_t page) {
        std::memcpy(table.bytes.data() + 4 * place, &page, 4);
        harness::write_npy(tensors + "/block_table.npy", table);
    };
    put(1, -1); // no key lies in it
    EXPECT_EQ(run(again).code, 0) << run(again).err;
    for (const std::int32_t page : {-1, 3, 1 << 30}) {
        put(0, page);
        expect_refused(
            one, tensors,
            fmt::format("P-2: block_table of entry 0 has page {} at place 0; the pool has 3 pages", page));
    }
}

/// The same of slots: as many as K has.
TEST(Exchange, AMalformedSlotIsNotFollowed) {
    for (const auto& [one, cache] :
         {std::pair<std::string, std::string>{"splitkv/decode[page_size=0,cache_batch_idx=true]@1", "/k.npy"},
          {"appendkv/layouts[page_size=0,cache_batch_idx=true]@1", "/k_out.npy"}}) {
        const Scratch folder;
        const std::string tensors = folder / "given";
        const Ran first = run({"reference", "--case", one, "--cases-root", FMHA_CASES_DIR, "--out", tensors});
        ASSERT_EQ(first.code, 0) << first.err;
        NpyArray slots = harness::read_npy(tensors + "/cache_batch_idx.npy");
        const auto count = static_cast<std::int32_t>(harness::read_npy(tensors + cache).shape[0]);
        for (const std::int32_t slot : {count, 100'000'000}) {
            std::memcpy(slots.bytes.data(), &slot, 4);
            harness::write_npy(tensors + "/cache_batch_idx.npy", slots);
            expect_refused(
                one, tensors,
                fmt::format("P-6: entry 0 has slot {} of the cache, which has {} slots", slot, count));
        }
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
    EXPECT_THAT(red.err, HasSubstr("k.npy: key 3 of entry 1 at head 0 channel 7 (page or slot "));
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

bool is_nan(std::uint16_t half) {
    return std::isnan(reference::decode(ElementType::fp16, half));
}

/// The cache NAME_out of a kernel that writes its new keys into the cache `before`. Returns the places of those that it leaves alone.
std::vector<std::size_t> write_into(const Exchanged& given, const std::string& name,
                                    const std::vector<std::uint16_t>& before) {
    auto after = numbers_of<std::uint16_t>(given.file(name + "_out"));
    std::vector<std::size_t> alone;
    for (std::size_t i = 0; i < after.size(); ++i)
        if (is_nan(after[i])) { // so the reference marks them
            alone.push_back(i);
            after[i] = before.at(i);
        }
    put_numbers(given.file(name + "_out"), after);
    return alone;
}

/// G5.5 of a case that goes on: every earlier key of a cache that is given whole.
TEST(Exchange, AppendKvLeavesEarlierKeysAlone) {
    for (const std::string one : {"pagedkv/appended[hdim=64,dtype=fp16,mode=batch,seqlen_q=5,appended=5]@1",
                                  "splitkv/appended[hdim=64,dtype=fp16,seqlen_q=5,num_splits=3,appended=1]@1",
                                  "batch_prefill/appended[dtype=fp16,seqlen_q=1,appended=1]@1"})
        for (const std::string name : {"k", "v"}) {
            const Exchanged given(one);
            given.round({"o", "k_out", "v_out"});
            EXPECT_THAT(given.check().out, Not(HasSubstr("G5.5"))) << "of NaN nothing is said";
            const auto before = numbers_of<std::uint16_t>(given.file(name));
            const auto alone = write_into(given, name, before);
            const Ran right = given.check();
            EXPECT_EQ(right.code, 0) << right.out << right.err;
            EXPECT_THAT(right.out, HasSubstr("G5.5:" + name + "=0")) << one;
            // Rows of a pool without a key are poison in the case's own inputs, and mean nothing.
            const auto nothing =
                std::ranges::find_if(alone, [&](std::size_t at) { return is_nan(before[at]); });
            ASSERT_NE(nothing, alone.end());
            put(given.file(name + "_out"), static_cast<std::int64_t>(*nothing), 0x3C00);
            EXPECT_EQ(given.check().code, 0) << one;
            for (const bool last : {false, true}) {
                auto keys = alone;
                std::erase_if(keys, [&](std::size_t at) { return is_nan(before[at]); });
                const std::size_t at = last ? keys.back() : keys.front();
                const auto place = static_cast<std::int64_t>(at);
                put(given.file(name + "_out"), place, before[at] ^ 1U);
                const Ran wrong = given.check();
                EXPECT_EQ(wrong.code, 1) << one << " " << name;
                EXPECT_THAT(wrong.out,
                            HasSubstr(fmt::format("got {:#x}, not {:#x}, the bits of {}.npy, where append-KV "
                                                  "writes nothing",
                                                  before[at] ^ 1U, before[at], name)));
                EXPECT_THAT(wrong.out, HasSubstr("G5.5 " + name + ": key "));
                put(given.file(name + "_out"), place, before[at]);
            }
        }
}

/// G5.5 of append-KV alone: everything but the new keys, where the cache before it is given. It may hold anything.
TEST(Exchange, AppendKvLeavesTheRestOfAGivenCacheAlone) {
    for (const std::string layout : {"page_size=0", "page_size=128"}) {
        const Exchanged given("appendkv/plain[dtype=fp16,heads=2,hdim=64,seqlen=3:20,rope=none," + layout +
                              "]@1");
        given.round({"k_out", "v_out", "q_out"});
        const auto marks = numbers_of<std::uint16_t>(given.file("k_out"));
        std::vector<std::uint16_t> before(marks.size());
        for (std::size_t i = 0; i < before.size(); ++i) before[i] = static_cast<std::uint16_t>(977 * i);
        const auto alone = write_into(given, "k", before);
        EXPECT_THAT(given.check().out, Not(HasSubstr("G5.5"))) << "nobody says what was there";
        NpyArray cache = harness::read_npy(given.file("k_out"));
        std::memcpy(cache.bytes.data(), before.data(), cache.bytes.size());
        harness::write_npy(given.file("k"), cache);
        const Ran right = given.check();
        EXPECT_EQ(right.code, 0) << right.out << right.err;
        EXPECT_THAT(right.out, HasSubstr("G5.5:k=0"));
        EXPECT_THAT(right.out, Not(HasSubstr("G5.5:v"))) << "only K is given";
        for (const std::size_t at : {alone.front(), alone[alone.size() / 2], alone.back()}) {
            const auto place = static_cast<std::int64_t>(at);
            put(given.file("k_out"), place, is_nan(before[at]) ? 0U : before[at] ^ 1U);
            const Ran wrong = given.check();
            EXPECT_EQ(wrong.code, 1) << at;
            EXPECT_THAT(wrong.out, HasSubstr(layout == "page_size=0" ? "G5.5 k: slot " : "G5.5 k: page "))
                << wrong.out;
            put(given.file("k_out"), place, before[at]);
        }
        // One NaN is as good as another.
        const auto nan = std::ranges::find_if(alone, [&](std::size_t at) { return is_nan(before[at]); });
        ASSERT_NE(nan, alone.end());
        put(given.file("k_out"), static_cast<std::int64_t>(*nan), before[*nan] ^ 1U ^ 0x200U);
        EXPECT_EQ(given.check().code, 0);
        std::filesystem::remove(given.file("k"));
        std::filesystem::create_symlink("nowhere", given.file("k"));
        EXPECT_THAT(given.check().err, HasSubstr("k.npy: cannot be opened"));
        std::filesystem::remove(given.file("k"));
        cache.shape = {cache.elements()};
        harness::write_npy(given.file("k"), cache);
        EXPECT_THAT(given.check().err, HasSubstr("k.npy: shape is "));
    }
}

} // namespace
} // namespace fmha::cli
