#include "harness/families/given_inputs.hpp"

#include "dispatcher/types/check_contents.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "harness/families/append_expectation.hpp"
#include "harness/npy/exchange.hpp"
#include "reference/numerics/formats.hpp"
#include "reference/numerics/places.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
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

/// L-5 for the keys of a cache, which lie where the tables of the files say. The last `appended` keys of an entry are yet to come.
template <class Args>
void refuse_nan_keys(const std::filesystem::path& folder, const Args& args, std::int64_t appended) {
    const reference::AttentionArgs cache = reference::attention_of(args);
    for (std::int64_t b = 0; b < cache.shape.batch; ++b) {
        const reference::Entry entry = reference::entry_in_cache(cache, b);
        for (std::int64_t j = 0; j < entry.seqlen_k - appended; ++j) {
            const reference::KeyPlace place = reference::key_place(cache, entry, b, j);
            for (const reference::KvSide side : {reference::KvSide::key, reference::KvSide::value}) {
                const bool keys = side == reference::KvSide::key;
                const TensorView& view = keys ? cache.k : cache.v;
                for (std::int64_t h = 0; h < cache.shape.nhead_k; ++h)
                    for (std::int64_t c = 0; c < (keys ? cache.shape.hdim_q : cache.shape.hdim_v); ++c)
                        if (std::isnan(reference::decode(
                                view.type, load_code(view.data, view.type,
                                                     reference::key_element(cache, side, place, h, c)))))
                            throw InputError(fmt::format("{}: key {} of entry {} is NaN at head {} channel "
                                                         "{} (page or slot {}, place {}); "
                                                         "logical inputs must not be (L-5)",
                                                         (folder / (keys ? "k.npy" : "v.npy")).string(), j, b,
                                                         h, c, place.page, place.slot));
            }
        }
    }
}

} // namespace

InputOrigin read_given_inputs(const std::filesystem::path& folder, const Family& family, const Case& c,
                              CaseData& data) {
    const std::uint64_t own = data.tensors().content_digest();
    // Where the keys of a cache and their descales lie is known when the tables have been read.
    read_inputs(folder, data.tensors(), [&](const std::string& name) {
        return traits_of(c.family).reads_cache &&
               (name == "k" || name == "v" || name == "k_descale" || name == "v_descale");
    });
    if (data.tensors().has("kv_indptr")) check_page_list(folder, c, data.tensors());
    for (const KernelFamily stage : family.stages(c)) {
        const Invocation arguments = data.invocation_of(stage);
        check_contents(arguments);
        std::visit(
            [&](const auto& args) {
                if constexpr (requires {
                                  reference::attention_of(args);
                                  args.place;
                              })
                    if (data.tensors().has("k")) refuse_nan_keys(folder, args, c.chain.appended);
            },
            arguments);
    }
    return data.tensors().content_digest() == own ? InputOrigin::own_bytes : InputOrigin::caller;
}

void read_given_outputs(const std::filesystem::path& folder, const Family& family, const Case& c,
                        CaseData& data) {
    TensorSet& tensors = data.tensors();
    const std::map<std::string, Content> before = updated_content(tensors);
    if (before.empty()) {
        read_outputs(folder, tensors);
        return;
    }
    const std::vector<KernelFamily> stages = family.stages(c);
    const Invocation first = data.invocation_of(stages.front());
    const auto& append = std::get<AppendKvArgs>(first);
    // The tables of the inputs say where the new keys lie.
    const reference::AppendedRows rows = reference::append(append);
    read_outputs(folder, tensors);
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
}

} // namespace fmha::harness
