#include "harness/cases/check_form.hpp"

#include "dispatcher/types/element.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "harness/cases/cache_case.hpp"
#include "harness/cases/case_enums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fmha::harness {
namespace {

/// Above this a tensor is nobody's intention: 2^32 elements are 8 GiB of fp16 and 32 GiB of the
/// reference.
constexpr double largest_tensor = 4294967296.0;
/// Between the rows of the largest tensor it adds up to 2^52 elements, whose bytes are still counted in 64 bits.
constexpr std::int64_t most_padding = std::int64_t{1} << 20;
constexpr std::int64_t exact_fill_keys = 4096;
constexpr double ln2 = 0.6931471805599453;

class FormCheck {
  public:
    FormCheck(const Case& concrete, const std::string& where)
        : case_(concrete), api_(traits_of(concrete.family)), where_(where) {}

    void run(Sizes sizes) const {
        side("q", case_.seqlen_q, case_.physical_q, case_.length_form_q);
        // A cache of append-KV is told its lengths in any case.
        const bool append = api_.stores_keys;
        side("k", case_.seqlen_k, case_.physical_k, append ? LengthForm::seqlen : case_.length_form_k);
        if (append) appended();
        if (attends_over_cache()) cached();
        if (api_.gradients) backward();
        wide();
        if (sizes == Sizes::limited) size();
        exact_fill();
        if (case_.stride_padding < 0 || case_.stride_padding > most_padding)
            fail("stride_padding", case_.stride_padding, "expected 0 to 2^20 elements");
        if (case_.sink_size < 0) fail("mask", case_.sink_size, "the number of sink tokens is negative");
        if (case_.repeats < 1) fail("repeats", case_.repeats, "a case runs at least once");
        if (case_.seqlen_q.empty()) fail("seqlen_q", "[]", "expected at least one length");
    }

  private:
    template <class T>
    [[noreturn]] void fail(std::string_view field, const T& value, std::string_view sentence) const {
        throw InputError(fmt::format("{}: {}={}: {}", where_, field, value, sentence));
    }

    /// Room and pages are multiplied with one another.
    void count(std::string_view field, std::int64_t value) const {
        if (value < 0 || value > std::numeric_limits<std::int32_t>::max())
            fail(field, value, "expected 0 or more, below 2^31");
    }

    void list(const std::string& name, const std::vector<std::int64_t>& values) const {
        for (const auto value : values) {
            if (value < 0) fail(name, value, "a length is 0 or more");
            if (value > std::numeric_limits<std::int32_t>::max()) fail(name, value, "lengths are below 2^31");
        }
        if (values.size() > 1 && static_cast<std::int64_t>(values.size()) != case_.batch)
            fail(name, fmt::format("[{}]", fmt::join(values, ",")),
                 fmt::format("has {} lengths for batch {}", values.size(), case_.batch));
    }

    void side(const std::string& letter, const std::vector<std::int64_t>& logical,
              const std::vector<std::int64_t>& physical, LengthForm form) const {
        const std::string logical_name = "seqlen_" + letter, physical_name = "physical_" + letter;
        if (logical.empty()) fail(logical_name, "[]", "expected at least one length");
        list(logical_name, logical);
        list(physical_name, physical);
        const auto entries = std::max(logical.size(), physical.size());
        bool padded = false;
        for (std::size_t b = 0; b < entries && !physical.empty(); ++b) {
            const auto have = logical[std::min(b, logical.size() - 1)];
            const auto allocated = physical[std::min(b, physical.size() - 1)];
            if (have > allocated)
                fail(logical_name, have,
                     fmt::format("is longer than the allocated length {} of {}", allocated, physical_name));
            padded = padded || have < allocated;
        }
        const bool uneven = std::ranges::adjacent_find(logical, std::ranges::not_equal_to{}) != logical.end();
        if (case_.mode == Mode::batch) {
            if (std::ranges::adjacent_find(physical, std::ranges::not_equal_to{}) != physical.end())
                fail(physical_name, fmt::format("[{}]", fmt::join(physical, ",")),
                     "entries of a batch have one allocated length (N-1); unequal ones need mode=group");
            padded = padded || uneven;
        }
        if (padded && form == LengthForm::none)
            fail(
                "length_form_" + letter, "none",
                fmt::format("{} differs from the allocated length, so the kernel must be told: \"seqlen\" or "
                            "\"cu_seqlen\"",
                            logical_name));
    }

    bool attends_over_cache() const { return api_.attends && api_.reads_cache; }

    void cached() const {
        if (!case_.physical_k.empty())
            fail("physical_k", fmt::format("[{}]", fmt::join(case_.physical_k, ",")),
                 "seqlen_k says how many keys a cache holds, and capacity how many fit into it");
        const bool tie = case_.fill == Fill::ties || case_.fill == Fill::weight_ties;
        if (api_.splits_keys && tie)
            fail("fill", to_string(case_.fill), "partial results are fp32, in which no sum is a tie");
        if (case_.split.stage == SplitStage::combine && case_.split.num_splits < 1)
            fail("num_splits", case_.split.num_splits, "a case that brings partial results says how many");
        const CachePart& cache = case_.cache;
        for (const auto& [field, value] :
             {std::pair<std::string_view, std::int64_t>{"capacity", cache.capacity},
              {"page_size", cache.page_size},
              {"page_order", cache.page_order},
              {"shared_pages", cache.shared_pages}})
            count(field, value);
        if (api_.lists_pages) listed();
        chained();
        if (cache.shared_pages == 0) return;
        if (cache.page_size <= 0 || cache.gappy)
            fail("shared_pages", cache.shared_pages, "only entries that begin with a page can share one");
        if (cache.shared_pages * cache.page_size > room_of(case_))
            fail(
                "shared_pages", cache.shared_pages,
                fmt::format("an entry has room for {} keys in pages of {}", room_of(case_), cache.page_size));
        if (case_.fill == Fill::edge_last || case_.fill == Fill::edge_first)
            fail("fill", to_string(case_.fill), "entries that share keys have no keys of their own rank");
    }

    void chained() const {
        const ChainPart& chain = case_.chain;
        int kinds = 0;
        for (const auto& [field, value] :
             {std::pair<std::string_view, std::int64_t>{"appended", chain.appended},
              {"chunk_rows", chain.chunk_rows},
              {"last_rows", chain.last_rows}}) {
            if (value < 0) fail(field, value, "expected 0 or more");
            if (value == 0) continue;
            if (++kinds > 1) fail(field, value, "a case is one chain: appended, chunk_rows or last_rows");
            if (case_.split.stage == SplitStage::combine)
                fail(field, value, "a case that only combines partial results reads no keys");
        }
        if (chain.appended > 0) appended_before();
        if (rotates(case_)) rotated_before();
        if (chain.chunk_rows > 0) in_calls("chunk_rows", chain.chunk_rows);
        if (chain.last_rows > 0) in_calls("last_rows", chain.last_rows);
    }

    void appended_before() const {
        const std::int64_t appended = case_.chain.appended;
        const auto refuse = [&](std::string_view why) { fail("appended", appended, why); };
        if (appended > std::ranges::min(case_.seqlen_k))
            refuse("more keys than the shortest entry has (seqlen_k)");
        if (is_vectorized(case_) || has_page_list(case_) || case_.cache.gappy ||
            case_.cache.shared_pages > 0 || is_packed(case_))
            refuse("append-KV stores rows in slots, or in linear pages that a table of each entry names");
        if (case_.qscale == QScale::kv_blockscale || case_.qscale == QScale::per_token_head)
            refuse("append-KV stores no descales of pages or tokens");
    }

    /// Who rotates keys and queries is append-KV.
    void rotated_before() const {
        const auto refuse = [&](std::string_view why) { fail("rope", to_string(case_.append.rope), why); };
        if (case_.chain.appended == 0)
            refuse("append-KV rotates the keys and queries of attention: state appended too");
        if (case_.mode == Mode::group) refuse("append-KV exists in batch mode only (V-1)");
        if (case_.fill != Fill::normal)
            refuse("other fills fix the output for queries and keys that are not rotated");
    }

    /// Rows see the same keys in a call of their own.
    void in_calls(std::string_view field, std::int64_t rows) const {
        const auto refuse = [&](std::string_view why) { fail(field, rows, why); };
        const bool prefill = api_.lists_pages;
        if (case_.seqlen_q.size() != 1 || !case_.physical_q.empty() ||
            case_.length_form_q != LengthForm::none)
            refuse("entries have one number of query rows (seqlen_q)");
        if (rows > case_.seqlen_q.front())
            refuse(fmt::format("an entry has {} query rows", case_.seqlen_q.front()));
        if (case_.mode == Mode::group && !prefill)
            refuse("a call for some rows of packed sequences exists in batch prefill only (N-6)");
        if (case_.mask != MaskType::no_mask && !rows_count_from_last_key(case_))
            refuse("a row must see the same keys in a call of its own: mask 0, b or b:l,0");
        if (case_.bias == BiasType::alibi && case_.mask == MaskType::no_mask)
            refuse("slopes of a call count from its last row: mask b or b:l,0");
        if (case_.p_drop > 0.0 || case_.qscale == QScale::per_token_head)
            refuse("random bytes and descales of query rows belong to all rows of a sequence");
        if (field != "chunk_rows") return;
        if (api_.splits_keys)
            refuse("splits follow from the number of keys, which chunks change: their bits are not promised");
        if (case_.mask != MaskType::no_mask && case_.length_form_k != LengthForm::seqlen)
            refuse("chunks have keys of their own: length_form_k seqlen");
    }

    /// Who says how many keys an entry of batch prefill has (B-4, B-5).
    void listed() const {
        if (has_page_list(case_) && case_.length_form_k != LengthForm::none)
            fail("length_form_k", to_string(case_.length_form_k),
                 "a list of pages says how many keys an entry has (B-4)");
        const auto& keys = case_.seqlen_k;
        if (has_block_table(case_) && case_.length_form_k == LengthForm::none &&
            std::ranges::any_of(keys, [&](std::int64_t n) { return n != keys.front(); }))
            fail("length_form_k", "none", "entries of unequal lengths need the array: \"seqlen\" (B-5)");
        if (case_.cache.gappy) fail("gappy", "true", "entries of batch prefill begin with a page");
        if (case_.cache.cache_batch_idx)
            fail("cache_batch_idx", "true", "batch prefill reads pages, not slots (B-1)");
    }

    void appended() const {
        if (!case_.physical_k.empty() || case_.length_form_k != LengthForm::none)
            fail("physical_k", fmt::format("[{}]", fmt::join(case_.physical_k, ",")),
                 "seqlen_k of append-KV says how many keys the cache holds before, and capacity how many fit "
                 "into it; "
                 "physical_k and "
                 "length_form_k mean nothing here");
        count("capacity", case_.cache.capacity);
        count("page_size", case_.cache.page_size);
        if (case_.append.seqlen_knew < 0 ||
            case_.append.seqlen_knew > std::numeric_limits<std::int32_t>::max())
            fail("seqlen_knew", case_.append.seqlen_knew, "expected 0 or more keys, below 2^31");
        if (case_.sampled_rows) fail("sampled_rows", "true", "append-KV is judged in every row");
    }

    void backward() const {
        if (case_.store_randval && case_.p_drop == 0.0)
            fail("store_randval", "true", "backward reads stored random bytes with dropout only");
        if (case_.backward.compute_units < 0)
            fail("compute_units", case_.backward.compute_units, "expected 0 or more");
        if (case_.fill == Fill::huge || case_.fill == Fill::ties || case_.fill == Fill::weight_ties)
            fail("fill", to_string(case_.fill), "its answer is known of O, not of gradients");
        if (case_.fill == Fill::shifted)
            fail("fill", "shifted",
                 "an LSE of 1e5 in fp32 is rounded by more than the limits of gradients know");
    }

    void wide() const {
        if (case_.wide_tensor.empty() != (case_.wide_batch_stride == 0))
            fail("wide_batch_stride", case_.wide_batch_stride,
                 "wide_tensor and wide_batch_stride are stated together");
        constexpr std::int64_t widest = std::int64_t{1} << 40;
        if (case_.wide_batch_stride > widest)
            fail("wide_batch_stride", case_.wide_batch_stride, "expected at most 2^40 elements");
    }

    void size() const {
        const auto longest = [](const std::vector<std::int64_t>& logical,
                                const std::vector<std::int64_t>& physical) {
            const auto& lengths = physical.empty() ? logical : physical;
            return static_cast<double>(std::ranges::max(lengths));
        };
        const double rows = longest(case_.seqlen_q, case_.physical_q),
                     keys = api_.reads_cache ? static_cast<double>(room_of(case_))
                                             : longest(case_.seqlen_k, case_.physical_k);
        const double batch = static_cast<double>(std::max<std::int64_t>(case_.batch, 1));
        const double heads = static_cast<double>(std::max<std::int64_t>(case_.nhead_q, 1));
        const double heads_k = static_cast<double>(std::max<std::int64_t>(case_.nhead_k, 1));
        const double dim = static_cast<double>(std::max<std::int64_t>({case_.hdim_q, case_.hdim_v, 1}));
        const auto limit = [&](const char* tensor, double elements) {
            if (elements > largest_tensor)
                fail(tensor, fmt::format("{:.3g} elements", elements),
                     "more than 2^32 elements in one tensor");
        };
        limit("q or o", batch * heads * rows * dim);
        limit("k or v", batch * heads_k * keys * dim);
        if (case_.bias == BiasType::elementwise)
            limit("bias",
                  (case_.bias_rank == 2 ? batch : 1.0) * (case_.bias_rank > 0 ? heads : 1.0) * rows * keys);
        if (case_.store_randval) limit("randval", batch * heads * rows * keys);
    }

    void exact_fill() const {
        const bool edge = case_.fill == Fill::edge_last || case_.fill == Fill::edge_first;
        const bool tie = case_.fill == Fill::ties || case_.fill == Fill::weight_ties;
        if (!edge && !tie) return;
        if (api_.stores_keys)
            fail("fill", to_string(case_.fill), "append-KV computes no scores, which this fill is about");
        if (case_.split.stage == SplitStage::combine)
            fail("fill", to_string(case_.fill), "combining computes no scores, which this fill is about");
        const auto refuse = [&](std::string_view why) {
            fail("fill", to_string(case_.fill), fmt::format("the answer is exact only {}", why));
        };
        if (case_.logits_soft_cap != 0.0) refuse("without a logits soft-cap");
        if (case_.p_drop != 0.0) refuse("without dropout");
        if (case_.bias != BiasType::no_bias) refuse("without a finite bias");
        if (case_.sink_logits != SinkLogits::none) refuse("without sink logits");
        if (edge && case_.scale_s != 0.0) refuse("without a softmax scale of its own");
        if (std::ranges::max(case_.seqlen_k) > exact_fill_keys) refuse("without more than 4096 keys");
        if (!tie) return;
        int exponent = 0;
        const ElementTypes types = element_types(case_.data_type, Fp8Flavour::ocp);
        if (types.o == ElementType::fp32)
            refuse("with a 16- or 8-bit output, because an fp32 sum has no tie in fp32");
        if (std::abs(std::frexp(case_.scale_o, &exponent)) != 0.5)
            refuse("with an output scale that is a power of two");
        if (case_.fill == Fill::ties) return;
        if (types.p == ElementType::bf16)
            refuse("with another type: half the smallest bf16 lies below the range of exp2");
        if (case_.scale_s != ln2) refuse("with scale_s=0.6931471805599453, ln 2");
        if (case_.hdim_q < 8) refuse("with a head dimension of 8 or more");
    }

    const Case& case_;
    const ApiTraits& api_;
    const std::string& where_;
};

} // namespace

void check_form(const Case& concrete, const std::string& where, Sizes sizes) {
    FormCheck(concrete, where).run(sizes);
}

} // namespace fmha::harness
