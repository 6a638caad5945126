#include "dispatcher/types/args_fields.hpp"
#include "tests/dispatcher/ck/members.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

/// Upstream's calls become ours and come back. Which members exist is read from the lists that declare them, so that a
/// member that the adapter forgets comes back as it was not.
namespace fmha::ck {
namespace {

using ::testing::IsEmpty;

std::array<std::byte, 1 << 14> memory;

/// Another value of the same type, the n-th.
template <class T>
void change(T& value, int n) {
    if constexpr (std::is_pointer_v<T>) {
        const auto* now = static_cast<const std::byte*>(static_cast<const void*>(value));
        const std::ptrdiff_t at = now == nullptr ? 0 : now - memory.data();
        value = static_cast<T>(
            const_cast<void*>(static_cast<const void*>(memory.data() + (at + 64 * n) % (1 << 14))));
    } else if constexpr (std::is_same_v<T, bool>) {
        value = !value;
    } else if constexpr (std::is_enum_v<T>) {
        value = static_cast<T>(static_cast<int>(value) + n);
    } else if constexpr (std::is_same_v<T, std::string>) {
        value = value == "bf16" ? "fp16" : "bf16";
    } else if constexpr (std::is_same_v<T, seed_and_offset>) {
        auto [seed, offset] = std::get<0>(value);
        value = std::pair<std::uint64_t, std::uint64_t>(seed + static_cast<std::uint64_t>(n), offset + 7);
    } else if constexpr (std::is_floating_point_v<T>) {
        value += static_cast<T>(n) * T(0.125);
    } else {
        value = static_cast<T>(value + static_cast<T>(n));
    }
}

Surroundings around() {
    Surroundings a;
    a.arch = std::string_view("gfx950");
    a.page_count = 40;
    a.capacity = 500;
    return a;
}

/// The features that each family switches on and off between its bases, and its members that depend on one another.
template <class Theirs>
void settle(Theirs& call, const std::string& changed) {
    auto& [traits, a] = call;
    const auto twin = [&](const std::string& name, auto& member, auto& other) {
        if (changed == "traits." + name)
            other = static_cast<std::remove_reference_t<decltype(other)>>(member);
        else
            member = static_cast<std::remove_reference_t<decltype(member)>>(other);
    };
    twin("hdim_q", traits.hdim_q, a.hdim_q);
    twin("hdim_v", traits.hdim_v, a.hdim_v);
    if constexpr (requires { a.mask_type; }) twin("mask_type", traits.mask_type, a.mask_type);
    if constexpr (requires { traits.page_size; }) {
        twin("page_size", traits.page_size, a.page_block_size);
        twin("kv_memory_layout", traits.kv_memory_layout, a.kv_memory_layout);
        twin("kv_lookup_table", traits.kv_lookup_table, a.kv_lookup_table);
    }
    if constexpr (requires { traits.nhead_q; }) {
        twin("seqlen_q", traits.seqlen_q, a.seqlen_q);
        twin("seqlen_k", traits.seqlen_k, a.seqlen_k);
        twin("batch", traits.batch, a.batch);
        twin("max_seqlen_q", traits.max_seqlen_q, a.max_seqlen_q);
        twin("max_seqlen_k", traits.max_seqlen_k, a.max_seqlen_k);
        twin("nhead_q", traits.nhead_q, a.nhead_q);
        twin("nhead_k", traits.nhead_k, a.nhead_k);
    }
    if constexpr (requires { a.p_undrop; }) {
        if (changed == "p_undrop")
            a.p_drop = 1.0F - a.p_undrop;
        else
            a.p_undrop = 1.0F - a.p_drop;
    }
    if constexpr (requires { a.split_stride_o_acc; }) {
        if (changed == "nhead_stride_o_acc")
            a.split_stride_o_acc = (a.nhead_stride_o_acc += 2) / a.num_splits;
        if (changed == "nhead_stride_lse_acc")
            a.split_stride_lse_acc = (a.nhead_stride_lse_acc += 2) / a.num_splits;
        a.nhead_stride_o_acc = a.num_splits * a.split_stride_o_acc;
        a.nhead_stride_lse_acc = a.num_splits * a.split_stride_lse_acc;
    }
}

/// Calls with a value of its own in every member, in several settings of the features that decide which members are read.
template <class Theirs>
std::vector<Theirs> bases() {
    std::vector<Theirs> all;
    for (int n = 0; n < 5; ++n) {
        Theirs call{};
        int count = 0;
        each_member_of_call(call, [&](const std::string&, auto& member) {
            using T = std::remove_reference_t<decltype(member)>;
            ++count;
            if constexpr (std::is_pointer_v<T> || std::is_same_v<T, seed_and_offset>)
                change(member, count);
            else if constexpr (std::is_floating_point_v<T>)
                member = 0.5F;
            else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
                member = static_cast<T>(100 + count);
            else if constexpr (std::is_same_v<T, bool>)
                member = n % 2 == 0;
        });
        auto& [traits, a] = call;
        traits.data_type = "fp16";
        if constexpr (requires { a.num_splits; }) a.num_splits = 3;
        if constexpr (requires { a.num_head_q_total; }) a.num_head_q_total = a.head_start = 0;
        if constexpr (requires { traits.is_store_randval; }) traits.is_store_randval = false;
        if constexpr (requires { traits.use_pagedkv; }) traits.use_pagedkv = true;
        if constexpr (requires { traits.is_group_mode; }) traits.is_group_mode = n == 1 || n == 3;
        if constexpr (requires { a.mask_type; }) a.mask_type = n % 4;
        if constexpr (requires { traits.bias_type; }) traits.bias_type = static_cast<bias_enum>((n + 1) % 3);
        if constexpr (requires { traits.rope_type; }) traits.rope_type = static_cast<rope_enum>((n + 1) % 3);
        if constexpr (requires { traits.page_size; }) {
            a.kv_memory_layout = static_cast<kv_memory_layout_enum>(n / 2 % 2);
            a.kv_lookup_table = static_cast<kv_lookup_table_enum>(n % 2);
            traits.qscale_type = static_cast<quant_scale_enum>(n % 2 == 0 ? 3 * (n % 4 == 0) : 1);
        } else if constexpr (requires { traits.qscale_type; }) {
            traits.qscale_type = static_cast<quant_scale_enum>(n < 3 ? n : n == 3 ? 4 : 2);
        }
        if constexpr (requires { a.rotary_dim; }) {
            a.rotary_dim = 32;
            a.sink_ptr = nullptr;
        }
        bool quantised = false;
        if constexpr (requires { traits.do_fp8_static_quant; }) quantised = traits.do_fp8_static_quant;
        if constexpr (requires { a.scale_o; })
            if (!quantised) a.scale_o = a.scale_p = n == 0 ? 0.0F : 1.0F;
        settle(call, "");
        all.push_back(to_theirs(to_ours(call, around())));
    }
    return all;
}

/// The members in which two calls differ.
template <class Theirs>
std::set<std::string> differing(const Theirs& left, const Theirs& right) {
    std::map<std::string, std::string> seen;
    std::set<std::string> names;
    const auto text = [](const auto& member) -> std::string {
        using T = std::remove_cvref_t<decltype(member)>;
        if constexpr (std::is_pointer_v<T>)
            return std::to_string(reinterpret_cast<std::uintptr_t>(member));
        else if constexpr (std::is_same_v<T, std::string>)
            return member;
        else if constexpr (std::is_same_v<T, seed_and_offset>)
            return std::to_string(std::get<0>(member).first) + " " +
                   std::to_string(std::get<0>(member).second);
        else if constexpr (std::is_enum_v<T>)
            return std::to_string(static_cast<int>(member));
        else
            return std::to_string(member);
    };
    each_member_of_call(left,
                        [&](const std::string& name, const auto& member) { seen[name] = text(member); });
    each_member_of_call(right, [&](const std::string& name, const auto& member) {
        if (seen[name] != text(member)) names.insert(name);
    });
    return names;
}

enum class Fate { comes_back, refused, lost };

/// The fate of a changed member of upstream's, in the base where it fares best.
template <class Theirs>
std::map<std::string, Fate> fates(const std::vector<Theirs>& calls) {
    std::map<std::string, Fate> result;
    each_member_of_call(calls.front(),
                        [&](const std::string& name, const auto&) { result[name] = Fate::lost; });
    for (const Theirs& base : calls)
        for (auto& [name, fate] : result)
            for (int n = 1; n <= 4 && fate != Fate::comes_back; ++n) {
                Theirs changed = base;
                each_member_of_call(changed, [&](const std::string& other, auto& member) {
                    if (other == name) change(member, n);
                });
                settle(changed, name);
                try {
                    const Theirs back = to_theirs(to_ours(changed, around()));
                    if (differing(changed, base).contains(name) && !differing(changed, back).contains(name))
                        fate = Fate::comes_back;
                } catch (const UnsupportedInvocation& error) {
                    const std::string plain = name.substr(name.rfind('.') + 1);
                    if (std::string(error.what()).find(plain) != std::string::npos) fate = Fate::refused;
                }
            }
    return result;
}

template <class Theirs>
void expect_all_come_back(const std::set<std::string>& refused, const std::set<std::string>& lost) {
    const std::vector<Theirs> calls = bases<Theirs>();
    for (const Theirs& call : calls)
        EXPECT_THAT(differing(call, to_theirs(to_ours(call, around()))), IsEmpty());
    std::set<std::string> found_refused, found_lost;
    for (const auto& [name, fate] : fates(calls)) {
        if (fate == Fate::refused) found_refused.insert(name);
        if (fate == Fate::lost) found_lost.insert(name);
    }
    EXPECT_EQ(found_refused, refused);
    EXPECT_EQ(found_lost, lost);
}

TEST(CkAdapter, EveryMemberOfForwardComesBack) {
    expect_all_come_back<FwdCall>({"num_head_q_total", "head_start"}, {});
}
// scale_p comes back inside scale_o, and is refused where nothing is quantised.
TEST(CkAdapter, EveryMemberOfSplitKvComesBack) {
    expect_all_come_back<SplitKvCall>({"scale_p"}, {});
}
TEST(CkAdapter, EveryMemberOfPagedKvComesBack) {
    expect_all_come_back<PagedKvCall>({"scale_p", "traits.use_pagedkv"}, {});
}
// No kernel that appends reads sink logits.
TEST(CkAdapter, EveryMemberOfAppendKvComesBack) {
    expect_all_come_back<AppendKvCall>({"sink_ptr"}, {});
}
// No trait of batch prefill asks for static quantisation.
TEST(CkAdapter, EveryMemberOfBatchPrefillComesBack) {
    expect_all_come_back<BatchPrefillCall>({"scale_o", "scale_p"}, {});
}
// Upstream's backward stores random bytes for a look, and reads none of these members unless is_store_randval asks for that.
TEST(CkAdapter, EveryMemberOfBackwardComesBack) {
    expect_all_come_back<BwdCall>(
        {"traits.is_store_randval"},
        {"batch_stride_randval", "nhead_stride_randval", "rand_val_ptr", "stride_randval"});
}

/// The other direction: every leaf of our arguments comes back or is refused, somewhere.
template <class Theirs, class Args>
std::set<std::string> lost_of_ours() {
    std::set<std::string> lost;
    std::vector<Call<Args>> calls;
    for (const Theirs& theirs : bases<Theirs>()) calls.push_back(to_ours(theirs, around()));
    each_leaf(calls.front().args, [&](const std::string& path, const auto&) { lost.insert(path); });
    const auto leaf_text = [](const Args& args, const std::string& path) {
        std::string text;
        each_leaf(args, [&](const std::string& other, const auto& leaf) {
            using T = std::remove_cvref_t<decltype(leaf)>;
            if (other != path) return;
            if constexpr (std::is_pointer_v<T>)
                text = std::to_string(reinterpret_cast<std::uintptr_t>(leaf));
            else if constexpr (std::is_enum_v<T>)
                text = std::to_string(static_cast<int>(leaf));
            else
                text = std::to_string(leaf);
        });
        return text;
    };
    // Strides and type of an absent tensor say nothing.
    const auto absent = [&](const Args& args, const std::string& path) {
        return leaf_text(args, path.substr(0, path.rfind('.') + 1) + "data") == "0" &&
               !path.ends_with(".data");
    };
    for (auto it = lost.begin(); it != lost.end();)
        it = std::all_of(calls.begin(), calls.end(), [&](const auto& call) { return absent(call.args, *it); })
                 ? lost.erase(it)
                 : std::next(it);
    for (const Call<Args>& base : calls)
        for (auto it = lost.begin(); it != lost.end();) {
            Call<Args> changed = base;
            each_leaf(changed.args, [&](const std::string& path, auto& leaf) {
                if (path == *it) change(leaf, 1);
            });
            bool kept = false;
            try {
                const Call<Args> back = to_ours(to_theirs(changed), around());
                kept = leaf_text(back.args, *it) == leaf_text(changed.args, *it);
            } catch (const UnsupportedInvocation&) {
                kept = true;
            }
            it = kept ? lost.erase(it) : std::next(it);
        }
    return lost;
}

TEST(CkAdapter, NothingOfOursIsLostOnTheWayToUpstream) {
    // Pages and room of a cache are for the surroundings to say; sizes of blocks say nothing where none are scaled.
    std::set<std::string> unsaid{"place.page_count", "quant.block_scale_size_k", "quant.block_scale_size_q"};
    EXPECT_THAT((lost_of_ours<FwdCall, FwdArgs>()), IsEmpty());
    EXPECT_EQ((lost_of_ours<SplitKvCall, SplitKvArgs>()), unsaid);
    EXPECT_EQ((lost_of_ours<PagedKvCall, PagedKvArgs>()), unsaid);
    EXPECT_EQ((lost_of_ours<AppendKvCall, AppendKvArgs>()),
              (std::set<std::string>{"place.page_count", "shape.seqlen_k"}));
    unsaid.erase("place.page_count");
    EXPECT_EQ((lost_of_ours<BatchPrefillCall, BatchPrefillArgs>()), unsaid);
    EXPECT_THAT((lost_of_ours<BwdCall, BwdArgs>()), IsEmpty());
}

} // namespace
} // namespace fmha::ck
