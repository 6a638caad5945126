#include "kernels/generator/lane_values.hpp"

#include "kernels/generator/scan.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace fmha::generator {
namespace {

/// The values of a register. `shifted`: plus an unknown number that lanes share, so that lane 0 counts as 0.
struct Value {
    LaneValues lanes;
    bool shifted = false;
    friend bool operator==(const Value&, const Value&) = default;
};
using Held = std::shared_ptr<const Value>; // null: not known

Held held(LaneValues lanes, bool shifted) {
    if (shifted) {
        const std::uint32_t first = lanes.front();
        for (std::uint32_t& lane : lanes) lane -= first;
    }
    return std::make_shared<const Value>(Value{std::move(lanes), shifted});
}

/// The values that hold on both ways: the same ones, or those that differ by one number.
Held met(const Held& a, const Held& b) {
    if (a == nullptr || b == nullptr || a == b || *a == *b) return a == nullptr ? a : b;
    for (std::size_t i = 0; i < a->lanes.size(); ++i)
        if (a->lanes[i] - a->lanes.front() != b->lanes[i] - b->lanes.front()) return nullptr;
    return held(a->lanes, true);
}

/// "v12" is 12, "v[12:15]" 12 to 15; accumulation and scalar registers follow.
struct Registers {
    std::size_t first = 0, count = 0;
};
constexpr std::size_t registers = 768, scalars = 512;

Registers registers_of(std::string_view operand) {
    if (operand.size() < 2) return {};
    const std::size_t begin = operand[0] == 'v'   ? 0
                              : operand[0] == 'a' ? 256
                              : operand[0] == 's' ? scalars
                                                  : registers;
    const bool range = operand[1] == '[';
    const auto first = leading_number(operand.substr(range ? 2 : 1));
    if (begin == registers || !first) return {};
    const auto last = range ? number_behind(operand, ":") : first;
    if (!last || *last < *first || *last >= 256) return {};
    return {begin + static_cast<std::size_t>(*first), static_cast<std::size_t>(*last - *first + 1)};
}

/// Arithmetic of up to three operands. `sums`: which of them an unknown number may be added to, all lanes then have a sum with it too.
struct Operation {
    std::string_view name;
    unsigned operands = 0, sums = 0;
    std::uint32_t (*of)(std::uint32_t, std::uint32_t, std::uint32_t) = nullptr;
};
using U = std::uint32_t;
/// What multiplications of 24 bits look at.
constexpr U lowest_24(U x) {
    return x & 0xFFFFFFU;
}
constexpr std::array operations{
    Operation{"mov_b32", 1, 1, [](U a, U, U) { return a; }},
    Operation{"accvgpr_read_b32", 1, 1, [](U a, U, U) { return a; }},
    Operation{"accvgpr_write_b32", 1, 1, [](U a, U, U) { return a; }},
    Operation{"accvgpr_mov_b32", 1, 1, [](U a, U, U) { return a; }},
    Operation{"add_u32", 2, 3, [](U a, U b, U) { return a + b; }},
    Operation{"add_nc_u32", 2, 3, [](U a, U b, U) { return a + b; }},
    Operation{"sub_u32", 2, 3, [](U a, U b, U) { return a - b; }},
    Operation{"sub_nc_u32", 2, 3, [](U a, U b, U) { return a - b; }},
    Operation{"subrev_u32", 2, 3, [](U a, U b, U) { return b - a; }},
    Operation{"add3_u32", 3, 7, [](U a, U b, U c) { return a + b + c; }},
    Operation{"and_b32", 2, 0, [](U a, U b, U) { return a & b; }},
    Operation{"or_b32", 2, 0, [](U a, U b, U) { return a | b; }},
    Operation{"xor_b32", 2, 0, [](U a, U b, U) { return a ^ b; }},
    Operation{"or3_b32", 3, 0, [](U a, U b, U c) { return a | b | c; }},
    Operation{"and_or_b32", 3, 0, [](U a, U b, U c) { return (a & b) | c; }},
    Operation{"xad_u32", 3, 4, [](U a, U b, U c) { return (a ^ b) + c; }},
    Operation{"lshlrev_b32", 2, 2, [](U a, U b, U) { return b << (a & 31U); }},
    Operation{"lshrrev_b32", 2, 0, [](U a, U b, U) { return b >> (a & 31U); }},
    Operation{"lshl_or_b32", 3, 0, [](U a, U b, U c) { return (a << (b & 31U)) | c; }},
    Operation{"lshl_add_u32", 3, 5, [](U a, U b, U c) { return (a << (b & 31U)) + c; }},
    Operation{"add_lshl_u32", 3, 3, [](U a, U b, U c) { return (a + b) << (c & 31U); }},
    Operation{"bfe_u32", 3, 0, [](U a, U b, U c) { return (a >> (b & 31U)) & ((1U << (c & 31U)) - 1U); }},
    Operation{"mul_u32_u24", 2, 0, [](U a, U b, U) { return lowest_24(a) * lowest_24(b); }},
    Operation{"mul_lo_u32", 2, 0, [](U a, U b, U) { return a * b; }},
    Operation{"mad_u32_u24", 3, 4, [](U a, U b, U c) { return lowest_24(a) * lowest_24(b) + c; }},
    Operation{"mad_u64_u32", 3, 4, [](U a, U b, U c) { return a * b + c; }},
};

/// "v_lshlrev_b32_e32" is "lshlrev_b32". Other forms of an instruction move lanes or parts of registers.
std::string_view operation_name(std::string_view mnemonic) {
    for (const std::string_view prefix : {"v_dual_", "v_"})
        if (mnemonic.starts_with(prefix)) {
            mnemonic.remove_prefix(prefix.size());
            break;
        }
    for (const std::string_view suffix : {"_e32", "_e64"})
        if (mnemonic.ends_with(suffix)) mnemonic.remove_suffix(suffix.size());
    return mnemonic;
}

/// The contents of the registers at a place.
class WaveState {
  public:
    explicit WaveState(int lanes) : lanes_(static_cast<std::size_t>(lanes)) {
        LaneValues numbers(lanes_);
        for (std::size_t i = 0; i < lanes_; ++i) numbers[i] = static_cast<std::uint32_t>(i);
        held_[0] = held(std::move(numbers), false); // a kernel begins with the thread's number in v0
        const Held any = held(LaneValues(lanes_), true);
        std::fill(held_.begin() + scalars, held_.end(), any);
    }

    /// Takes the contents with which another way leads here. True when that changed anything.
    bool meet(const WaveState& other) {
        bool changed = false;
        for (std::size_t i = 0; i < registers; ++i) {
            if (held_[i] == other.held_[i]) continue;
            Held both = met(held_[i], other.held_[i]);
            const bool same = both == held_[i] || (both != nullptr && *both == *held_[i]);
            changed |= !same;
            if (!same) held_[i] = std::move(both);
        }
        return changed;
    }

    void run(const Instruction& instruction) {
        std::string_view mnemonic = instruction.mnemonic, rest = instruction.operands;
        // A copy, whose first operand is an offset or an address.
        if (rest.ends_with(" lds") || mnemonic.starts_with("global_load_lds_")) return;
        // Two operations of one instruction read before either writes.
        const auto second = rest.find(" :: ");
        if (second == std::string_view::npos) {
            write(operands_of(rest), result(mnemonic, operands_of(rest)), mnemonic);
            return;
        }
        const std::string_view other = rest.substr(second + 4);
        const auto space = other.find(' ');
        const auto a = operands_of(rest.substr(0, second)), b = operands_of(other.substr(space + 1));
        const Held x = result(mnemonic, a), y = result(other.substr(0, space), b);
        write(a, x, mnemonic);
        write(b, y, mnemonic);
    }

    std::optional<LaneValues> lds_address(const Instruction& instruction) const {
        // The address comes first where something is written, and behind the result where something is read.
        const bool writes = stores(instruction.mnemonic);
        const auto operands = operands_of(instruction.operands);
        const std::size_t at = writes ? 0 : 1;
        if (operands.size() <= at) return std::nullopt;
        const Held value = value_of(operands[at]);
        return value == nullptr ? std::nullopt : std::optional(value->lanes);
    }

  private:
    std::size_t lanes_;
    std::array<Held, registers> held_{};

    static bool stores(std::string_view mnemonic) {
        return !mnemonic.starts_with("v_") && (mnemonic.find("write") != std::string_view::npos ||
                                               mnemonic.find("store") != std::string_view::npos);
    }

    Held value_of(std::string_view operand) const {
        if (const auto number = machine_number(operand)) return held(LaneValues(lanes_, *number), false);
        const Registers at = registers_of(operand);
        if (at.count > 0) return held_[at.first];
        return operand.find_first_of("|-.") == std::string_view::npos ? held(LaneValues(lanes_), true)
                                                                      : nullptr;
    }

    Held result(std::string_view mnemonic, const std::vector<std::string_view>& operands) const {
        if (mnemonic == "s_mov_b32" || mnemonic == "s_movk_i32")
            return operands.size() == 2 ? value_of(operands[1]) : nullptr;
        // Scalars are the same for all lanes, also unknown ones.
        if (mnemonic.starts_with("s_") || mnemonic.starts_with("v_readlane") ||
            mnemonic.starts_with("v_readfirstlane") || mnemonic.starts_with("v_cmp"))
            return held(LaneValues(lanes_), true);
        const std::string_view name = operation_name(mnemonic);
        const auto found = std::find_if(operations.begin(), operations.end(),
                                        [&](const Operation& each) { return each.name == name; });
        if (found == operations.end() || operands.size() < 1 + found->operands) return nullptr;
        std::array<Held, 3> in;
        bool shifted = false, followed = true, shared = true;
        for (unsigned i = 0; i < found->operands; ++i) {
            // mad_u64_u32 has a second result, a carry.
            in[i] = value_of(operands[operands.size() - found->operands + i]);
            if (in[i] == nullptr) return nullptr;
            shifted |= in[i]->shifted;
            followed &= !in[i]->shifted || (found->sums >> i & 1U) != 0;
            shared &= std::adjacent_find(in[i]->lanes.begin(), in[i]->lanes.end(), std::not_equal_to<>()) ==
                      in[i]->lanes.end();
        }
        if (shared && shifted) return held(LaneValues(lanes_), true);
        if (!followed) return nullptr;
        LaneValues out(lanes_);
        const auto lane = [&](unsigned i, std::size_t l) { return in[i] == nullptr ? 0U : in[i]->lanes[l]; };
        for (std::size_t l = 0; l < lanes_; ++l) out[l] = found->of(lane(0, l), lane(1, l), lane(2, l));
        return held(std::move(out), shifted);
    }

    void write(const std::vector<std::string_view>& operands, const Held& value, std::string_view mnemonic) {
        if (operands.empty() || stores(mnemonic) || mnemonic.starts_with("s_cmp")) return;
        forget(operands[0]);
        // Lanes trade, and carries come beside.
        const bool both = mnemonic.find("swap") != std::string_view::npos ||
                          mnemonic.find("_co_") != std::string_view::npos ||
                          mnemonic.starts_with("v_mad_u64");
        if (both && operands.size() > 1) forget(operands[1]);
        const Registers to = registers_of(operands[0]);
        if (to.count > 0) held_[to.first] = value;
    }
    void forget(std::string_view operand) {
        const Registers to = registers_of(operand);
        for (std::size_t i = to.first; i < to.first + to.count; ++i)
            held_[i] = to.first >= scalars ? held(LaneValues(lanes_), true) : nullptr;
    }
};

} // namespace

std::vector<std::optional<LaneValues>> lds_addresses(std::span<const Instruction> code,
                                                     std::span<const Block> blocks, int lanes) {
    std::vector<std::optional<LaneValues>> found(code.size());
    // Each block with the contents that all ways lead to it with, until nothing changes: values only ever become less known.
    std::map<std::size_t, WaveState> entry{{0, WaveState(lanes)}};
    std::vector<std::size_t> open{0};
    while (!open.empty()) {
        const std::size_t block = open.back();
        open.pop_back();
        WaveState state = entry.at(block);
        for (std::size_t i = blocks[block].begin; i < blocks[block].end; ++i) {
            if (code[i].mnemonic.starts_with("ds_")) found[i] = state.lds_address(code[i]);
            state.run(code[i]);
        }
        for (const std::size_t next : blocks[block].next) {
            const auto [at, is_new] = entry.try_emplace(next, state);
            if (is_new || at->second.meet(state)) open.push_back(next);
        }
    }
    return found;
}

} // namespace fmha::generator
