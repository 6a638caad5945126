#pragma once

#include "kernels/targets/hip/block.hpp"
#include "kernels/targets/hip/copied_part.hpp"

#include <bit>
#include <cstdint>

namespace fmha::hip_target {

/// The ways from global memory to LDS that lead through registers, and the registers for reading ahead. `Piece` of
/// the plan is a StagingPlan.
template <class Block, auto Piece>
class RegisterCopies {
  public:
    FMHA_DEVICE explicit RegisterCopies(const Block& block)
        : block_(block), ahead_(block.template registers<std::uint32_t, Piece, &StagingPlan::ahead_words>()),
          ahead_scales_(block.template registers<std::uint32_t, Piece, &StagingPlan::ahead_scales>()) {}

    /// Behind the writes of a step that was read ahead, for every thread, even without anything to write: if a compiler takes a read to be under
    /// way still, it waits for it later, together with the copies that have been started since. Where branches have met again: compilers see
    /// ways past all of them.
    FMHA_DEVICE void land() const {
        if constexpr (may_read_ahead)
            if (plan().read_ahead && plan().async == AsyncCopies::steps)
                block_.machine.each([&](int thread) {
                    FMHA_UNROLL
                    for (int w = 0; w < plan().ahead_words; ++w) block_.machine.landed(ahead_.at(thread, w));
                });
    }

    /// Copies the scales of a step for scaled instructions: a word of them goes behind the elements of each line. The few
    /// bytes of a line lie anywhere, and are read one by one.
    template <auto Operand>
    FMHA_DEVICE void copy_scales(int address, const kernels::Matrix& matrix, bool by_column,
                                 const Part& part) {
        if (block_.template piece<Operand>().scale_blocks == 0) return;
        const Image& image = block_.template piece<Operand>().image;
        TileView tile = LineView::of(matrix.block_scales(), ElementType::e8m0, by_column)
                            .window(part.line0, part.element0, part.tile_lines);
        block_.machine.each([&](int thread) {
            const int here = block_.machine.local_thread(thread);
            tile.elements = block_.machine.local(
                tile.elements); // or a mask for every block is kept through the loop over keys
            FMHA_UNROLL
            for (int i = 0; i < plan().ahead_scales; ++i) {
                const int line = here + i * block_.plan().threads;
                if (part.phase != Phase::write) {
                    std::uint32_t scales = 0;
                    FMHA_UNROLL
                    for (int block = 0; block < part.elements; ++block)
                        scales |=
                            tile.read_byte(block_.machine, thread, part.line + line, part.element + block)
                            << static_cast<unsigned>(8 * block);
                    ahead_scales_.at(thread, i) = scales;
                }
                if (part.phase == Phase::read || line >= part.lines) continue;
                const std::uint32_t scales = ahead_scales_.at(thread, i);
                block_.machine.template lds_write<1>(
                    thread, address + line * image.line_bytes + image.scales(), &scales);
            }
        });
    }

    /// Line by line, in units of 16 bytes.
    template <class Lines>
    FMHA_DEVICE void move_lines(const Image& image, int address, const Lines& from, const Part& part) {
        const int unit = 16 / from.element_size, per_line = part.elements / unit;
        const TileView tile = window(from, part);
        copy_units<4>(tile, part.phase, part.units, part.lines * per_line,
                      unit_of_line(tile, part, per_line, unit),
                      [&](int thread, int index, const Words<4>& words) {
                          const int to = address + image.at(index / per_line, index % per_line * 16);
                          block_.machine.template lds_write<4>(thread, to, words.word);
                      });
    }

    /// Unaligned lines, element by element and `words` words at a time: rare, and small, because the code stands in the
    /// loop over keys beside the copies that are. `by_place`: to the places that elements of `Operand` have.
    template <int words, auto... Operand>
    FMHA_DEVICE void gather_lines(const Image& image, int address, const TileView& tile, const Part& part,
                                  bool by_place) {
        const int unit = 4 * words / tile.element_size, per_line = part.elements / unit;
        block_.machine.each([&](int thread) {
            FMHA_NO_UNROLL
            for (int index = block_.machine.local_thread(thread); index < part.lines * per_line;
                 index += from_round_to_round()) {
                const int line = index / per_line, element = index % per_line * unit;
                Words<words> bits{};
                gather(tile, thread, part.line + line, part.element + element, bits);
                int place = element;
                if constexpr (sizeof...(Operand) > 0)
                    if (by_place) place = block_.template piece<Operand...>().order.place_of(element);
                block_.machine.template lds_write<words>(
                    thread, address + image.at(line, place * tile.element_size), bits.word);
            }
        });
    }

    /// Stored by column: a unit of consecutive depths goes to several places in its line; but with 4 bits it is a block
    /// of them, which stay together.
    template <auto Operand, class Lines>
    FMHA_DEVICE void scatter_lines(int address, const Lines& from, const Part& part) {
        const int unit = 16 / from.element_size, per_line = part.elements / unit;
        const TileView tile = window(from, part);
        copy_units<4>(
            tile, part.phase, part.units, part.lines * per_line, unit_of_line(tile, part, per_line, unit),
            [&](int thread, int index, const Words<4>& words) {
                const OperandPlan& operand = block_.template piece<Operand>();
                const DepthOrder& order = operand.order;
                const int first = index % per_line * unit;
                if (element_bits(operand.type) == 4) {
                    const Words<4> placed = in_places(order, words);
                    const int to =
                        address + operand.image.at(index / per_line, order.place_of(2 * first) / 2);
                    block_.machine.template lds_write<4>(thread, to, placed.word);
                    return;
                }
                if (element_bits(operand.type) == 8) {
                    const int run = order.run() < 4 ? order.run() : 4;
                    FMHA_UNROLL
                    for (int w = 0; w < 4; ++w) {
                        const std::uint32_t word = place_neighbours(order, words, w * run);
                        write_patch<Operand>(thread, address, index / per_line,
                                             order.place_of(first + w * run), &word);
                    }
                    return;
                }
                FMHA_UNROLL
                for (int w = 0; w < 4; w += patch_words<Operand>())
                    write_patch<Operand>(thread, address, index / per_line,
                                         order.place_of(first + w * 4 / from.element_size), words.word + w);
            });
    }

    /// Stored by depth: patches of four depths, whose places follow one another, times a few words of columns are transposed
    /// in registers. Neighbouring threads have neighbouring places, so that their writes fall on different banks.
    template <auto Operand, class Lines>
    FMHA_DEVICE void transpose_lines(int address, const Lines& from, const Part& part) {
        const int words = block_.template piece<Operand>().patch_line;
        if constexpr (Block::template may<Operand>(&OperandPlan::patch_line, 4))
            if (words == 4) transpose_patches<4, Operand>(address, from, part);
        if constexpr (Block::template may<Operand>(&OperandPlan::patch_line, 2))
            if (words == 2) transpose_patches<2, Operand>(address, from, part);
        if constexpr (Block::template may<Operand>(&OperandPlan::patch_line, 1))
            if (words == 1) transpose_patches<1, Operand>(address, from, part);
    }

    /// Words of four elements.
    template <auto Operand>
    FMHA_DEVICE int patch_words() const {
        return element_bits(block_.template piece<Operand>().type) / 8;
    }

    /// The lines of a matrix that a part takes. Their number was compared in 64 bits, which takes vector instructions: nobody looks again.
    FMHA_DEVICE TileView window(const LineView& from, const Part& part) const {
        // Beside pages that are looked up even a question that folds away costs a kernel of CDNA 3 its registers.
        if constexpr (!may_look_up)
            if (part.units == Units::aligned) return part.aligned_window(from);
        constexpr bool by_halves = Block::Machine::has_step_copies && !may_gather;
        TileView tile = part.template window<by_halves>(from);
        tile.lines = block_.machine.scalar(tile.lines);
        // Units exist only where all lines of a tile lie less than 2^30 bytes apart.
        constexpr int many = 64;
        tile.short_lines = Block::Machine::has_step_copies && part.tile_lines >= many;
        return tile;
    }
    /// The same where they are known already.
    FMHA_DEVICE TileView window(TileView tile, const Part& part) const {
        part.end_by_phase(tile);
        return tile;
    }

  private:
    Block block_;
    // Reading ahead: the units of the next step, and its scales.
    typename Block::template Registers<std::uint32_t, Piece, &StagingPlan::ahead_words> ahead_;
    typename Block::template Registers<std::uint32_t, Piece, &StagingPlan::ahead_scales> ahead_scales_;

    static constexpr bool may_gather = Block::template may<Piece>(&StagingPlan::gathers);
    static constexpr bool may_gather_steps = Block::template may<Piece>(&StagingPlan::gathers_steps);
    static constexpr bool may_look_up = Block::template may<Piece>(&StagingPlan::pages_ahead);
    static constexpr bool may_read_ahead = Block::template may<Piece>(&StagingPlan::read_ahead);

    FMHA_DEVICE const StagingPlan& plan() const { return block_.template piece<Piece>(); }

    /// Of a loop over units that is one also where it has a single round: so the loop model knows that this is no way of every tile.
    FMHA_DEVICE int from_round_to_round() const {
        if constexpr (may_gather_steps)
            return block_.machine.scalar(block_.plan().threads);
        else
            return block_.plan().threads;
    }

    /// Patches with lines of `count` words.
    template <int count, auto Operand, class Lines>
    FMHA_DEVICE void transpose_patches(int address, const Lines& from, const Part& part) {
        struct Patch {
            Words<count> line[4];
        };
        const int size = from.element_size, unit = 4 * count / size, patches = part.lines / 4;
        const TileView tile = window(from, part);
        copy_units<1>(
            tile, part.phase, part.units, patches * (part.elements / unit),
            [&](int thread, int index, int more) {
                // Places are permuted bit by bit, so that the patch's line adds to its first one's.
                const DepthOrder& order = block_.template piece<Operand>().order;
                const bool shared = more % patches == 0;
                if (!shared) index += more;
                Patch patch;
                FMHA_UNROLL
                for (int k = 0; k < 4; ++k) {
                    // One buffer for all lines where a lane has its SIMD's registers for their places.
                    const int line = plan().lanes_find_lines ? order.at_place(k) : 0;
                    patch.line[k] = read_unit<count>(tile, thread, order.at_place(index % patches * 4) + line,
                                                     index / patches * unit,
                                                     {part.line + order.at_place(k) - line,
                                                      part.element + (shared ? more / patches * unit : 0)});
                }
                return patch;
            },
            [&](int thread, int index, const Patch& patch) {
                FMHA_UNROLL
                for (int c = 0; c < unit; ++c) {
                    const int word = c * size / 4;
                    const int byte = c * size % 4;
                    constexpr std::uint32_t low_halves = 0x05040100U, high_halves = 0x07060302U;
                    const std::uint32_t halves =
                        (size == 1 ? byte % 2 : byte) == 0 ? low_halves : high_halves;
                    // Of two lines' words, those of the lower one first: bytes of two columns or of one, or a half.
                    const auto pair = [&](int k) {
                        const std::uint32_t low = patch.line[k].word[word],
                                            high = patch.line[k + 1].word[word];
                        const std::uint32_t bytes = !Block::Machine::pairs_columns
                                                        ? 0x0400U + static_cast<unsigned>(byte) * 0x0101U
                                                    : byte < 2 ? 0x05010400U
                                                               : 0x07030602U;
                        return block_.machine.select_bytes(high, low, size == 1 ? bytes : halves);
                    };
                    std::uint32_t words[2] = {pair(0), pair(2)};
                    if (size == 1)
                        words[0] = block_.machine.select_bytes(
                            words[1], words[0], Block::Machine::pairs_columns ? halves : low_halves);
                    write_patch<Operand>(thread, address, index / patches * unit + c, index % patches * 4,
                                         words);
                }
            });
    }

    /// How to read unit index + more of a part, line by line; the block shares `more`.
    FMHA_DEVICE auto unit_of_line(const TileView& tile, const Part& part, int per_line, int unit) const {
        return [this, &tile, &part, per_line, unit](int thread, int index, int more) {
            const bool shared = more % per_line == 0;
            if (!shared) index += more;
            return read_unit<4>(tile, thread, index / per_line, index % per_line * unit,
                                {part.line + (shared ? more / per_line : 0), part.element});
        };
    }

    template <int count>
    FMHA_DEVICE void gather(const TileView& tile, int thread, int line, int element,
                            Words<count>& bits) const {
        if constexpr (may_gather)
            if (plan().gathers) {
                if constexpr (Block::Machine::has_step_copies)
                    if (tile.granule >= 4 * count) {
                        bits = tile.read_in_places<count>(block_.machine, thread, line, element);
                        return;
                    }
                tile.gather_in_places(line, element, bits);
                return;
            }
        if constexpr (Block::template may<Piece>(&StagingPlan::takes_heads))
            if (tile.heads.any()) {
                tile.gather_of_heads(line, element, bits);
                return;
            }
        tile.gather(line, element, bits);
    }

    /// `count` words. Asks the plan, a constant: a branch by the view costs registers in kernels that gather nothing.
    template <int count>
    FMHA_DEVICE Words<count> read_unit(const TileView& tile, int thread, int line, int element,
                                       const Corner& corner) const {
        if constexpr (may_look_up)
            if (plan().pages_ahead && tile.whole)
                return tile.read_looked_up<count>(block_.machine, thread, corner, line, element);
        if constexpr (may_gather_steps)
            if (plan().gathers_steps && tile.whole)
                return tile.read_in_page<count>(block_.machine, thread, corner, line, element);
        if constexpr (may_gather)
            if (plan().gathers)
                return tile.read_in_places<count>(block_.machine, thread, corner.line + line,
                                                  corner.element + element);
        return tile.read_from<count>(block_.machine, thread, corner, line, element);
    }

    /// write(thread, index + more, read(thread, index, more)) for `total` indices, dealt out to the threads. `together` reads of a
    /// thread are under way at a time, or all of them from one phase to the other; but reads element by element
    /// come in the second.
    template <int together, class Read, class Write>
    FMHA_DEVICE void copy_units(const TileView& tile, Phase phase, Units known, int total, Read read,
                                Write write) {
        using Unit = decltype(read(0, 0, 0));
        constexpr int words = sizeof(Unit) / sizeof(std::uint32_t);
        const int threads = block_.plan().threads, rounds = (total + threads - 1) / threads;
        block_.machine.each([&](int thread) {
            const bool kept = plan().keeps_places;
            const int here = kept ? thread : block_.machine.local_thread(thread);
            const bool missing = may_gather_steps && plan().gathers_steps && !tile.whole;
            if (missing && phase == Phase::read) return;
            if (missing || (known != Units::aligned && tile.granule < 16)) {
                const int step = from_round_to_round();
                FMHA_NO_UNROLL
                for (int index = block_.machine.local_thread(thread); index < total; index += step)
                    write(thread, index, read(thread, index, 0));
                return;
            }
            if constexpr (may_read_ahead) {
                // As many as the registers have room for, which a compiler knows before it knows `rounds`: registers whose numbers it does not
                // know in time get places in memory. With pages looked up it is the other way round, as the audit of batch prefill says.
                const int room = may_look_up ? rounds : plan().ahead_words / words;
                if (phase == Phase::read) {
                    FMHA_UNROLL
                    for (int i = 0; i < room; ++i)
                        if (i < rounds) keep(thread, i * words, read(thread, here, i * threads));
                    return;
                }
                if (phase == Phase::write) {
                    FMHA_UNROLL
                    for (int i = 0; i < room; ++i)
                        if (i < rounds && (total % threads == 0 || here + i * threads < total))
                            write(thread, here + i * threads, ahead<Unit>(thread, i * words));
                    return;
                }
            }
            FMHA_UNROLL
            for (int first = 0; first < rounds; first += together) {
                Unit units[static_cast<unsigned>(together)];
                FMHA_UNROLL
                for (int i = 0; i < together; ++i)
                    if (first + i < rounds) units[i] = read(thread, here, (first + i) * threads);
                FMHA_UNROLL
                for (int i = 0; i < together; ++i) {
                    const int index = here + (first + i) * threads;
                    if (first + i < rounds && (total % threads == 0 || index < total))
                        write(thread, index, units[i]);
                }
            }
        });
    }
    template <class Unit>
    FMHA_DEVICE void keep(int thread, int r0, const Unit& unit) {
        const auto raw = std::bit_cast<Words<sizeof(Unit) / 4, 4>>(unit);
        FMHA_UNROLL
        for (int w = 0; w < static_cast<int>(sizeof(Unit) / 4); ++w) ahead_.at(thread, r0 + w) = raw.word[w];
    }
    template <class Unit>
    FMHA_DEVICE Unit ahead(int thread, int r0) const {
        Words<sizeof(Unit) / 4, 4> raw;
        FMHA_UNROLL
        for (int w = 0; w < static_cast<int>(sizeof(Unit) / 4); ++w) raw.word[w] = ahead_.at(thread, r0 + w);
        return std::bit_cast<Unit>(raw);
    }

    /// 32 elements of 4 bits in the order of their places: four neighbours are half a word.
    FMHA_DEVICE static Words<4> in_places(const DepthOrder& order, const Words<4>& elements) {
        Words<4> out{};
        FMHA_UNROLL
        for (int half = 0; half < 8; ++half) {
            const std::uint32_t four =
                elements.word[half / 2] >> static_cast<unsigned>(half % 2 * 16) & 0xFFFFU;
            const int place = order.place_of(4 * half) / 4;
            out.word[place / 2] |= four << static_cast<unsigned>(place % 2 * 16);
        }
        return out;
    }

    /// Of 16 elements of 8 bits the four whose places follow that of element `first`.
    FMHA_DEVICE static std::uint32_t place_neighbours(const DepthOrder& order, const Words<4>& elements,
                                                      int first) {
        std::uint32_t word = 0;
        FMHA_UNROLL
        for (int i = 0; i < 4; ++i) {
            const int at = order.at_place(order.place_of(first) + i);
            const std::uint32_t code = elements.word[at / 4] >> static_cast<unsigned>(at % 4 * 8) & 0xFFU;
            word |= code << static_cast<unsigned>(8 * i);
        }
        return word;
    }

    /// Writes four elements of a column, those with places from `place` on.
    template <auto Operand>
    FMHA_DEVICE void write_patch(int thread, int address, int column, int place, const std::uint32_t* words) {
        const OperandPlan& operand = block_.template piece<Operand>();
        const int byte = place * element_bits(operand.type) / 8;
        const int to = address + operand.image.at(column, byte);
        if (patch_words<Operand>() == 1)
            block_.machine.template lds_write<1>(thread, to, words);
        else if (patch_words<Operand>() == 2)
            block_.machine.template lds_write<2>(thread, to, words);
        else
            block_.machine.template lds_write<4>(thread, to, words);
    }
};

} // namespace fmha::hip_target
