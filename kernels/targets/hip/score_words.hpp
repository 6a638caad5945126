#pragma once

#include "kernels/targets/hip/backward_plan.hpp"
#include "kernels/targets/hip/tile_memory.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// Whether backward moves elements of `type` beside its scores by words: neighbouring lanes have neighbouring keys, which lie side by
/// side in memory.
constexpr bool moves_words(const BackwardPlan& plan, ElementType type) {
    return plan.gradient_lines == GradientLines::queries_paired && element_bits(type) <= 16;
}
/// The same of dBias. A wave of RDNA 4 with 128 channels has no registers for its words.
constexpr bool stores_words(const BackwardPlan& plan, ElementType type) {
    const bool full = plan.unit == MatrixUnit::rdna4 && planning::kept_registers(plan) > 128;
    return moves_words(plan, type) && !full;
}

/// A matrix of queries × keys in the registers that scores have, `per_word` elements of 32 / per_word bits in a word. In memory a word is
/// one query's, with the keys of `per_word` neighbouring lanes, each of which moves that of another query; turned, it is a lane's own
/// key with so many of its queries. `Count` of the plan is the number of words of a thread.
template <class Block, auto Count, int per_word>
class ScoreWords {
    using Machine = typename Block::Machine;
    static constexpr auto scores = &BackwardPlan::scores;
    static constexpr int size = 4 / per_word;
    static_assert(per_word == 2 || per_word == 4);

  public:
    FMHA_DEVICE explicit ScoreWords(const Block& block)
        : block_(block), words_(block.template registers<std::uint32_t, Count>()) {}

    /// Whether `read` and `write` may move words of any tile.
    FMHA_DEVICE bool moves(const LineView& lines) const {
        return lines.lines_near(acc().column_tiles * acc().cols) && lines.in_words();
    }
    /// Starts to read the words of a tile: 0 behind the last line, anything behind the end of others.
    FMHA_DEVICE void read(const TileView& from) {
        each_word(from, [&](int thread, int w, int offset, int, int existing) {
            std::uint32_t word[1];
            block_.machine.template global_read<1>(thread, from.data, offset, true, word, existing);
            words_.at(thread, w) = word[0];
        });
    }
    /// The same, of no line unless `reads`: without a branch, which would stand between the arithmetic around it.
    FMHA_DEVICE void read_if(bool reads, TileView from) {
        if (!reads) from.lines = 0;
        read(from);
    }
    FMHA_DEVICE void write(const TileView& to) {
        char* const data = const_cast<char*>(to.data); // NOLINT(*-const-cast): a view of an output
        each_word(to, [&](int thread, int w, int offset, int key, int existing) {
            const bool writes = key < to.elements && acc().copy_of_wave(block_.wave(thread)) == 0;
            block_.machine.write_to_buffer(thread, data, offset, writes, words_.at(thread, w), existing);
        });
    }
    /// From words as they are in memory to those of a lane's own key, or back.
    FMHA_DEVICE void turn() {
        constexpr std::uint32_t halves[2] = {0x05040100U, 0x03020706U};
        constexpr std::uint32_t bytes[2] = {0x06020400U, 0x03070105U};
        if constexpr (per_word == 4) trade(1, bytes);
        trade(per_word / 2, halves);
    }
    /// Element by element: rare, and small. The words are shifted along, so that the loop stays a loop.
    FMHA_DEVICE void gather(const TileView& from) {
        each_slowly([&](int thread, int first) {
            std::uint32_t word = 0;
            FMHA_UNROLL
            for (int i = 0; i < per_word; ++i) {
                const Place at = place_of(thread, first + i);
                if (at.query < from.lines && at.key < from.elements)
                    word |= element_bits_at(from.at(at.query, at.key), type)
                            << static_cast<unsigned>(i * bits);
            }
            return word;
        });
    }
    FMHA_DEVICE void scatter(const TileView& to) {
        each_slowly([&](int thread, int first) {
            const std::uint32_t word = words_.at(thread, 0);
            FMHA_UNROLL
            for (int i = 0; i < per_word; ++i) {
                const Place at = place_of(thread, first + i);
                const bool exists = at.query < to.lines && at.key < to.elements;
                if (exists && acc().copy_of_wave(block_.wave(thread)) == 0)
                    store_element(
                        const_cast<char*>(to.at(at.query, at.key)), // NOLINT(*-const-cast): an output
                        word >> static_cast<unsigned>(i * bits), type);
            }
            return word;
        });
    }
    /// The bits of the element beside register `at` of the scores, of turned words.
    FMHA_DEVICE std::uint32_t element(int thread, int at) const {
        return words_.at(thread, at / per_word) >> static_cast<unsigned>(at % per_word * bits) &
               0xFFFFFFFFU >> (32 - bits);
    }
    FMHA_DEVICE void copy(const ScoreWords& other) {
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int w = 0; w < count(); ++w) words_.at(thread, w) = other.words_.at(thread, w);
        });
    }
    FMHA_DEVICE void set(int thread, int word, std::uint32_t value) { words_.at(thread, word) = value; }

  private:
    struct Place {
        int query, key;
    };
    static constexpr int bits = 32 / per_word;
    static constexpr ElementType type = per_word == 2 ? ElementType::fp16 : ElementType::uint8;

    Block block_;
    typename Block::template Registers<std::uint32_t, Count> words_;

    FMHA_DEVICE const AccumulatorPlan& acc() const { return layout_of<scores>(block_); }
    FMHA_DEVICE int count() const { return acc().registers / per_word; }

    /// f(thread, word, bytes from the corner, first key, bytes that exist) for every word as it is in memory.
    template <class F>
    FMHA_DEVICE void each_word(const TileView& view, F f) {
        const int line_bytes = static_cast<int>(view.line_bytes);
        const int existing = bytes_of_lines(view.lines, line_bytes, view.elements * size);
        block_.machine.each([&](int thread) {
            const int lane = block_.lane(thread);
            const int key0 =
                acc().row_of_wave(block_.wave(thread)) + acc().row.of_lane(lane & ~(per_word - 1));
            int query0 = acc().col.of_lane(lane) + (lane & 1) * acc().col_of_register[1];
            if (per_word == 4) query0 += (lane >> 1 & 1) * acc().col_of_register[2];
            each_place<scores>(
                block_,
                [&](int at, int, int row, int col) {
                    const int offset = query0 * line_bytes + key0 * size + (col * line_bytes + row * size);
                    f(thread, at / per_word, offset, key0 + row, existing);
                },
                per_word);
        });
    }
    /// next(thread, first register) becomes the last word, in the order of words.
    template <class F>
    FMHA_DEVICE void each_slowly(F next) {
        block_.machine.each([&](int thread) {
            FMHA_NO_UNROLL
            for (int w = 0; w < count(); ++w) {
                const std::uint32_t word = next(thread, w * per_word);
                FMHA_UNROLL
                for (int i = 0; i + 1 < count(); ++i) words_.at(thread, i) = words_.at(thread, i + 1);
                words_.at(thread, count() - 1) = word;
            }
        });
    }
    /// The query and the key of register `at`, whose number is no constant.
    FMHA_DEVICE Place place_of(int thread, int at) const {
        const int lane = block_.lane(thread), tile = at / acc().fragment, r = at % acc().fragment;
        return {acc().col.at(lane, r) + tile % acc().column_tiles * acc().cols,
                acc().row_of_wave(block_.wave(thread)) + acc().row.at(lane, r) +
                    tile / acc().column_tiles * acc().rows};
    }
    /// Of two lanes whose numbers differ by `mask` each gets the bytes of both words that its selector names.
    FMHA_DEVICE void trade(int mask, const std::uint32_t (&selectors)[2]) {
        auto other = block_.template registers<std::uint32_t, Count>();
        block_.machine.exchange(other, words_, mask);
        block_.machine.each([&](int thread) {
            const std::uint32_t selector = (block_.lane(thread) & mask) != 0 ? selectors[1] : selectors[0];
            FMHA_UNROLL
            for (int w = 0; w < count(); ++w)
                words_.at(thread, w) =
                    block_.machine.select_bytes(other.at(thread, w), words_.at(thread, w), selector);
        });
    }
};

} // namespace fmha::hip_target
