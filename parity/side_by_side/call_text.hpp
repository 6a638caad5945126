#pragma once

#include "dispatcher/types/args_fields.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/problem.hpp"

#include <bit>
#include <charconv>
#include <functional>
#include <istream>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// A call as lines of text, by which this program hands it to a program compiled against the headers of a checkout. Both
/// have the same field lists. A pointer is the name of a block of memory and an offset into it, a float its bits.
namespace fmha::parity {

/// Memory that goes along, in the file NAME.bin.
struct CallBlock {
    std::string name;
    std::uint64_t bytes = 0;
};

/// "NAME+OFFSET" of a pointer, "none" of one into memory that does not go along.
using PlaceOfPointer = std::function<std::string(const void*)>;
/// Its inverse: the address of OFFSET in block NAME.
using PointerOfPlace = std::function<void*(std::string_view block, std::uint64_t offset)>;

namespace detail {

template <class T>
T number_of(std::string_view text, const std::string& path) {
    T value{};
    const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || rest != text.data() + text.size())
        throw InputError("call: " + path + " is " + std::string(text) + ", which is no number of its kind");
    return value;
}

template <class Leaf>
std::string leaf_text(const Leaf& leaf, const PlaceOfPointer& place) {
    if constexpr (std::is_pointer_v<Leaf>)
        return leaf == nullptr ? "none" : place(leaf);
    else if constexpr (std::is_same_v<Leaf, float>)
        return std::to_string(std::bit_cast<std::uint32_t>(leaf));
    else if constexpr (std::is_enum_v<Leaf>)
        return std::to_string(static_cast<std::int64_t>(leaf));
    else
        return std::to_string(leaf);
}

template <class Leaf>
void read_leaf(Leaf& leaf, std::string_view text, const std::string& path, const PointerOfPlace& pointer) {
    if constexpr (std::is_pointer_v<Leaf>) {
        const auto plus = text.rfind('+');
        leaf = plus == std::string_view::npos
                   ? nullptr
                   : static_cast<Leaf>(pointer(text.substr(0, plus),
                                               number_of<std::uint64_t>(text.substr(plus + 1), path)));
    } else if constexpr (std::is_same_v<Leaf, float>) {
        leaf = std::bit_cast<float>(number_of<std::uint32_t>(text, path));
    } else if constexpr (std::is_enum_v<Leaf>) {
        leaf = static_cast<Leaf>(number_of<std::int64_t>(text, path));
    } else if constexpr (std::is_same_v<Leaf, bool>) {
        leaf = number_of<int>(text, path) != 0;
    } else {
        leaf = number_of<Leaf>(text, path);
    }
}

} // namespace detail

template <class Args>
std::string call_text(const Problem& problem, const Args& args, const std::vector<CallBlock>& blocks,
                      const PlaceOfPointer& place) {
    std::string text = "problem " + identifier(problem) + '\n';
    for (const CallBlock& block : blocks)
        text += "block " + block.name + ' ' + std::to_string(block.bytes) + '\n';
    each_leaf(args, [&](const std::string& path, const auto& leaf) {
        text += path + ' ' + detail::leaf_text(leaf, place) + '\n';
    });
    return text;
}

/// The other side of `call_text`.
class CallText {
  public:
    /// Throws InputError for a text that `call_text` of the same field lists has not written.
    explicit CallText(std::istream& stream) {
        for (std::string line; std::getline(stream, line);) {
            const auto blank = line.find(' ');
            if (blank == std::string::npos) throw InputError("call: a line without a value: " + line);
            const std::string name = line.substr(0, blank), value = line.substr(blank + 1);
            if (name == "block") {
                const auto size = value.rfind(' ');
                blocks_.push_back(
                    {value.substr(0, size),
                     detail::number_of<std::uint64_t>(std::string_view(value).substr(size + 1), "block")});
            } else if (name == "problem") {
                const auto read = parse_identifier<Problem>(value);
                if (!read)
                    throw InputError("call: the problem has fields that this program does not know; build it "
                                     "again from the tree of the command that calls it");
                problem_ = *read;
            } else {
                values_[name] = value;
            }
        }
    }

    const Problem& problem() const { return problem_; }
    const std::vector<CallBlock>& blocks() const { return blocks_; }

    template <class Args>
    Args args(const PointerOfPlace& pointer) const {
        Args read;
        std::size_t found = 0;
        each_leaf(read, [&](const std::string& path, auto& leaf) {
            const auto value = values_.find(path);
            if (value == values_.end()) throw InputError("call: there is no line " + path);
            detail::read_leaf(leaf, value->second, path, pointer);
            ++found;
        });
        if (found != values_.size())
            throw InputError("call: it has values that this program does not know; build it again from the "
                             "tree of the command that calls it");
        return read;
    }

  private:
    Problem problem_;
    std::vector<CallBlock> blocks_;
    std::map<std::string, std::string> values_;
};

/// Exit codes of a program that makes such a call.
enum class CallEnd : int {
    ran = 0,
    no_kernel = 10,   ///< the checkout has none for it
    cannot_say = 11,  ///< its structures have no member for something in the call; standard error says which
    broken_call = 12, ///< folder, files or device; the sentence is on standard error
};

} // namespace fmha::parity
