#include "harness/families/given_inputs.hpp"

#include "dispatcher/types/check_contents.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "harness/cases/cache_case.hpp"
#include "harness/families/append_expectation.hpp"
#include "harness/npy/exchange.hpp"
#include "reference/numerics/formats.hpp"
#include "reference/numerics/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace fmha::harness {
namespace {

using Content = std::vector<unsigned char>;

/// All memory of the tensors that are updated in place, by name.
std::map<std::string, Content> updated_content(const TensorSet& tensors) {
    std::map<std::string, Content> contents;
    for (const TensorSpec& spec : tensors.specs()) {
        if (spec.flow != Flow::in_out) continue;
        Content& content = contents[spec.name];
        for (const auto& stretch : tensors.tensor(spec.name).memory())
            content.insert(content.end(), stretch.begin(), stretch.end());
    }
    return contents;
}

/// Lists of pages lead to places that exist, and give each entry the keys that the case says. What lies behind the last place
/// would be read as a page otherwise: `check_contents` knows no ends of arrays.
void check_page_list(const std::filesystem::path& folder, const Case& c, const TensorSet& tensors) {
    const auto number = [&](const char* name, std::int64_t n) {
        return std::int64_t{static_cast<std::int32_t>(tensors.tensor(name).code(0, 0, 0, n))};
    };
    const auto refuse = [&](const char* name, const std::string& sentence) {
        throw InputError(fmt::format("{}: {}", (folder / fmt::format("{}.npy", name)).string(), sentence));
    };
    const std::int64_t places = tensors.tensor("kv_page_indices").layout().columns, size = c.cache.page_size;
    for (std::int64_t b = 0; b < c.batch; ++b) {
        const std::int64_t begin = number("kv_indptr", b), end = number("kv_indptr", b + 1);
        if (begin < 0 || end < begin) return; // what B-4 says of it stands in check_contents
        if (end > places)
            refuse("kv_indptr", fmt::format("the pages of entry {} end at place {}; kv_page_indices has {}",
                                            b, end, places));
        const std::int64_t keys = c.seqlen_k[c.seqlen_k.size() == 1 ? 0 : static_cast<std::size_t>(b)];
        const std::int64_t pages = (keys + size - 1) / size;
        if (end - begin != pages)
            refuse("kv_indptr", fmt::format("entry {} has {} pages; its {} keys (seqlen_k) lie in {}", b,
                                            end - begin, keys, pages));
        if (keys == 0 || !tensors.has("kv_last_page_lens")) continue;
        const std::int64_t last = number("kv_last_page_lens", b), rest = (keys - 1) % size + 1;
        if (last != rest)
            refuse("kv_last_page_lens",
                   fmt::format("entry {} has {} keys in its last page; of {} keys (seqlen_k) {} lie there", b,
                               last, keys, rest));
    }
}

/// Calls visit(offset in K or V, description) for every element of the keys of a cache, which lie where the tables of the files say. The
/// last `appended` keys of an entry are yet to come. `description()` is the element in words.
template <class Visit>
void each_earlier_key(const reference::AttentionArgs& cache, std::int64_t appended, reference::KvSide side,
                      Visit&& visit) {
    const std::int64_t channels = side == reference::KvSide::key ? cache.shape.hdim_q : cache.shape.hdim_v;
    for (std::int64_t b = 0; b < cache.shape.batch; ++b) {
        const reference::Entry entry = reference::entry_in_cache(cache, b);
        for (std::int64_t j = 0; j < entry.seqlen_k - appended; ++j) {
            const reference::KeyPlace place = reference::key_place(cache, entry, b, j);
            for (std::int64_t h = 0; h < cache.shape.nhead_k; ++h)
                for (std::int64_t c = 0; c < channels; ++c)
                    visit(reference::key_element(cache, side, place, h, c), [&] {
                        return fmt::format(
                            "key {} of entry {} at head {} channel {} (page or slot {}, place {})", j, b, h,
                            c, place.page, place.slot);
                    });
        }
    }
}

/// L-5 for the keys of a cache: nothing is NaN, and scores are finite.
void check_values_of_keys(const std::filesystem::path& folder, const reference::AttentionArgs& cache,
                          std::int64_t appended) {
    for (const reference::KvSide side : {reference::KvSide::key, reference::KvSide::value}) {
        const bool keys = side == reference::KvSide::key;
        const TensorView& view = keys ? cache.k : cache.v;
        each_earlier_key(cache, appended, side, [&](std::int64_t at, const auto& description) {
            const double value = reference::decode(view.type, load_code(view.data, view.type, at));
            const auto refuse = [&](std::string_view what) {
                throw InputError(fmt::format("{}: {} is {} (L-5)",
                                             (folder / (keys ? "k.npy" : "v.npy")).string(), description(),
                                             what));
            };
            if (std::isnan(value)) refuse("NaN; logical inputs must not be");
            if (keys && std::isinf(value)) refuse(fmt::format("{}; scores must be finite", value));
        });
    }
}

/// The arguments of a call as those of attention over a cache; absent for another one.
std::optional<reference::AttentionArgs> cache_of(const Invocation& call) {
    return std::visit(
        [](const auto& args) -> std::optional<reference::AttentionArgs> {
            if constexpr (requires {
                              reference::attention_of(args);
                              args.place;
                          })
                return reference::attention_of(args);
            else
                return std::nullopt;
        },
        call);
}

/// Calls visit(offset in the cache, description) for every element of K or V but the new ones.
template <class Visit>
void each_beside(const AppendKvArgs& append, const reference::AppendedRows& rows, const TensorView& cache,
                 const TensorLayout& layout, Visit&& visit) {
    std::vector<std::int64_t> written;
    each_appended(append, rows, [&](const TensorView& view, std::int64_t at, std::int64_t, const auto&) {
        if (view.data == cache.data) written.push_back(at);
    });
    std::ranges::sort(written);
    for (std::int64_t b = 0; b < layout.batches; ++b)
        for (std::int64_t h = 0; h < layout.heads; ++h)
            for (std::int64_t row = 0; row < layout.rows; ++row)
                for (std::int64_t c = 0; c < layout.columns; ++c)
                    if (const std::int64_t at = cache.offset(b, h, row, c);
                        !std::ranges::binary_search(written, at))
                        visit(at, [&] {
                            return fmt::format("{} {} head {} row {} column {}",
                                               append.place.page_size > 0 ? "page" : "slot", b, h, row, c);
                        });
}

/// Calls visit(offset in K or V, description) for every element of a cache that append-KV leaves alone and whose content the files define:
/// rows of a pool without a key mean nothing before attention. `attention`: what runs behind append-KV, if anything.
template <class Visit>
void each_left_alone(const AppendKvArgs& append, const reference::AppendedRows& rows,
                     const std::optional<reference::AttentionArgs>& attention, const TensorSet& tensors,
                     const std::string& cache, Visit&& visit) {
    const bool keys = cache == "k";
    if (attention)
        each_earlier_key(*attention, append.seqlen_knew,
                         keys ? reference::KvSide::key : reference::KvSide::value, visit);
    else
        each_beside(append, rows, keys ? append.k : append.v, tensors.tensor(cache).layout(), visit);
}

} // namespace

GivenInputs read_given_inputs(const std::filesystem::path& folder, const Family& family, const Case& c,
                              CaseData& data) {
    GivenInputs given;
    const std::uint64_t own = data.tensors().content_digest();
    // Where the keys of a cache and their descales lie is known when the tables have been read.
    read_inputs(folder, data.tensors(), [&](const std::string& name) {
        return traits_of(c.family).reads_cache &&
               (name == "k" || name == "v" || name == "k_descale" || name == "v_descale");
    });
    // An append-KV that nothing follows needs no content of its caches.
    for (const char* const cache : {"k", "v"})
        if (appends(c) || (traits_of(c.family).stores_keys && read_if_there(folder, cache, data.tensors())))
            given.caches.emplace_back(cache);
    if (data.tensors().has("kv_indptr")) check_page_list(folder, c, data.tensors());
    for (const KernelFamily stage : family.stages(c)) {
        const Invocation arguments = data.invocation_of(stage);
        check_contents(arguments);
        const auto cache = cache_of(arguments);
        if (cache && data.tensors().has("k")) check_values_of_keys(folder, *cache, c.chain.appended);
    }
    if (data.tensors().content_digest() == own) given.origin = InputOrigin::own_bytes;
    return given;
}

std::vector<GateVerdict> read_given_outputs(const std::filesystem::path& folder, const Family& family,
                                            const Case& c, CaseData& data,
                                            const std::vector<std::string>& caches) {
    TensorSet& tensors = data.tensors();
    const std::map<std::string, Content> before = updated_content(tensors);
    if (before.empty()) {
        read_outputs(folder, tensors);
        return {};
    }
    const std::vector<KernelFamily> stages = family.stages(c);
    const Invocation first = data.invocation_of(stages.front());
    const auto& append = std::get<AppendKvArgs>(first);
    // The tables of the inputs say where the new keys lie.
    const reference::AppendedRows rows = reference::append(append);
    const auto attention = cache_of(data.invocation_of(stages.back()));
    const auto each_left = [&](const std::string& cache, const auto& visit) {
        each_left_alone(append, rows, attention, tensors, cache, visit);
    };
    std::map<std::string, std::vector<std::uint32_t>> left;
    for (const std::string& cache : caches) {
        const TensorView view = tensors.tensor(cache).view();
        each_left(cache, [&](std::int64_t at, const auto&) {
            left[cache].push_back(load_code(view.data, view.type, at));
        });
    }
    read_outputs(folder, tensors);
    std::vector<GateVerdict> gates;
    for (const auto& [cache, codes] : left) {
        const TensorView view = tensors.tensor(cache).view();
        const auto is_nan = [&](std::uint32_t code) {
            return std::isnan(reference::decode(view.type, code));
        };
        ExactGate gate("G5.5", cache);
        bool said = false;
        std::size_t next = 0;
        each_left(cache, [&](std::int64_t at, const auto& description) {
            const std::uint32_t got = load_code(view.data, view.type, at), want = codes[next++];
            said = said || !is_nan(got);
            // Programs that convert a NaN may change its bits.
            if (gate.verdict().passed && got != want && !(is_nan(got) && is_nan(want)))
                gate.fail(fmt::format(
                    "{}: got {:#x}, not {:#x}, the bits of {}.npy, where append-KV writes nothing",
                    description(), got, want, cache));
        });
        if (said) gates.push_back(gate.verdict());
    }
    const auto each_judged = [&](const auto& visit) {
        each_appended(append, rows, [&](const TensorView& view, std::int64_t at, std::int64_t, const auto&) {
            visit(view, at);
        });
        each_kept_query(append, [&](std::int64_t at, const auto&, std::int64_t) { visit(append.q, at); });
    };
    std::vector<std::uint32_t> written;
    each_judged([&](const TensorView& view, std::int64_t at) {
        written.push_back(load_code(view.data, view.type, at));
    });
    for (const auto& [name, content] : before) tensors.tensor(name).restore(content);
    std::size_t next = 0;
    each_judged([&](const TensorView& view, std::int64_t at) {
        store_code(view.data, view.type, at, written[next++]);
    });
    return gates;
}

} // namespace fmha::harness
