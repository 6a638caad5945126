#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/problem.hpp"
#include "dispatcher/upstream/ck/shared_types.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

/// One description of how upstream's call and ours correspond, executed in either direction. Where one side can say a thing
/// that the other cannot, the call is refused by name: UnsupportedInvocation, one sentence.
namespace fmha::ck {

/// Our side of a call.
template <class Args>
struct Call {
    Problem problem;
    Args args;
};

/// Facts that upstream's structures leave to the surroundings.
struct Surroundings {
    ArchName arch; ///< decides the 8-bit flavour (T-1)
    /// Pages of the pool (paged-KV, split-KV, append-KV); no page number reaches or exceeds it.
    std::int64_t page_count = 0;
    /// Keys that a slot of the cache holds (append-KV; in pages, those of one row of the block table).
    std::int64_t capacity = 0;
    /// Reads a number of `drop_seed_offset` behind a device pointer. Without it such pointers are refused, because our
    /// arguments hold the numbers themselves (D-6).
    std::function<std::uint64_t(const void*)> read_number;
};

enum class Way { to_ours, to_theirs };

/// Copies members one way. A member that only some calls read comes with that condition: where it does not hold, ours
/// is left at its default and theirs is cleared.
template <Way way>
class Link {
  public:
    static constexpr bool to_ours = way == Way::to_ours;

    template <class Theirs, class Ours>
    void copy(std::string_view name, Theirs& theirs, Ours& ours, bool read = true) const {
        if (!read) {
            if constexpr (!to_ours) theirs = Theirs{};
        } else if constexpr (std::is_pointer_v<Theirs>) {
            if constexpr (to_ours)
                ours = static_cast<Ours>(const_cast<void*>(static_cast<const void*>(theirs)));
            else
                theirs = const_cast<void*>(static_cast<const void*>(ours));
        } else if constexpr (std::is_enum_v<Ours>) {
            if constexpr (to_ours)
                ours = known<Ours>(name, static_cast<std::int64_t>(theirs));
            else
                theirs = static_cast<Theirs>(static_cast<int>(ours));
        } else if constexpr (to_ours) {
            ours = static_cast<Ours>(theirs);
        } else {
            if constexpr (std::is_integral_v<Theirs> && !std::is_same_v<Theirs, bool>)
                refuse(ours < std::numeric_limits<Theirs>::min() || ours > std::numeric_limits<Theirs>::max(),
                       name, std::to_string(ours), "upstream counts in 32 bits");
            theirs = static_cast<Theirs>(ours);
        }
    }

    /// A member that repeats another. `copy` of the other comes first.
    template <class Theirs, class Ours>
    void again(std::string_view name, Theirs& theirs, Ours& ours) const {
        if constexpr (to_ours) {
            std::remove_const_t<Ours> said = ours;
            copy(name, theirs, said);
            refuse(said != ours, name, "another value", "it contradicts the member that says the same");
        } else {
            copy(name, theirs, ours);
        }
    }

    /// A member of ours that upstream's structure lacks must have the value that upstream takes for granted.
    template <class T>
    void granted(std::string_view name, const T& ours, const T& expected, std::string_view why) const {
        if constexpr (!to_ours) refuse(ours != expected, name, "another value", why);
    }

    void refuse(bool wrong, std::string_view name, const std::string& value, std::string_view why) const {
        if (wrong) throw UnsupportedInvocation(std::string(name) + " is " + value + ": " + std::string(why));
    }

    /// Rows of channels (batch, head, row, column), of one type. In group mode entries have no batch stride; pages and
    /// cache slots have one in every mode.
    template <class Pointer, class Stride>
    void rows(std::string_view name, Pointer& pointer, Stride& stride, Stride& nhead_stride,
              Stride& batch_stride, TensorView& view, ElementType type, bool has_batches,
              bool column_major = false) const {
        copy(name, pointer, view.data);
        if constexpr (to_ours) view.type = type;
        if (!present(pointer, view)) return clear(stride, nhead_stride, batch_stride);
        typed(name, view, type);
        copy(name, stride, column_major ? view.col_stride : view.row_stride);
        dense(name, column_major ? view.row_stride : view.col_stride);
        copy(name, nhead_stride, view.head_stride);
        batches(name, batch_stride, view, has_batches);
    }

    /// One number a row, rows one element apart: LSE, D and descales of blocks.
    template <class Pointer, class Stride>
    void numbers(std::string_view name, Pointer& pointer, Stride& nhead_stride, Stride& batch_stride,
                 TensorView& view, ElementType type, bool has_batches) const {
        copy(name, pointer, view.data);
        if constexpr (to_ours) view.type = type;
        if (!present(pointer, view)) return clear(nhead_stride, batch_stride);
        typed(name, view, type);
        dense(name, view.row_stride);
        granted(name, view.col_stride, std::int64_t{1}, "a row has one number");
        copy(name, nhead_stride, view.head_stride);
        batches(name, batch_stride, view, has_batches);
    }

    /// A single number (descales of 15.2).
    template <class Pointer>
    void number(std::string_view name, Pointer& pointer, TensorView& view) const {
        copy(name, pointer, view.data);
        if constexpr (to_ours) {
            view.type = ElementType::fp32;
            if (view.present()) view.col_stride = 0;
        } else if (view.present()) {
            typed(name, view, ElementType::fp32);
            const bool single = view.batch_stride == 0 && view.head_stride == 0 && view.row_stride == 0 &&
                                view.col_stride == 0;
            refuse(!single, name, "a tensor with strides", "a descale of the whole tensor is one number");
        }
    }

    /// Our enumeration, if the number is one of its members.
    template <class E>
    E known(std::string_view name, std::int64_t number) const {
        if (const auto value = enum_of_code<E>(number)) return *value;
        throw UnsupportedInvocation(std::string(name) + " is " + std::to_string(number) +
                                    ": allowed are the numbers of " + allowed_names<E>());
    }

    template <class... Members>
    static void clear(Members&... members) {
        if constexpr (!to_ours) ((members = Members{}), ...);
    }

  private:
    template <class Pointer>
    static bool present(const Pointer& pointer, const TensorView& view) {
        if constexpr (to_ours)
            return pointer != nullptr;
        else
            return view.present();
    }
    void typed(std::string_view name, const TensorView& view, ElementType type) const {
        granted(name, view.type, type,
                "its elements have another type than the data type of the problem says");
    }
    void dense(std::string_view name, std::int64_t& stride) const {
        if constexpr (to_ours)
            stride = 1;
        else
            refuse(stride != 1, name, "a view with gaps",
                   "upstream takes its innermost elements to be adjacent");
    }
    template <class Stride>
    void batches(std::string_view name, Stride& batch_stride, TensorView& view, bool has_batches) const {
        copy(name, batch_stride, view.batch_stride, has_batches);
        if (!has_batches)
            granted(name, view.batch_stride, std::int64_t{0}, "entries of a group lie one after another");
    }
};

} // namespace fmha::ck
