#pragma once

#include "kernels/programs/key_loop.hpp"
#include "kernels/targets/hip/tile_copies.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// The query tile of a block.
template <class Fragments>
struct QueryTile {
    Fragments fragments; ///< QueryPlace::registers
    TileView memory;     ///< QueryPlace::memory
};

/// What `load_transposed` and `load` deliver for the second operand: a place in LDS.
struct KeyStep {
    std::int32_t address = 0; ///< of the stage
    std::int32_t column0 = 0; ///< first element of the step in a line
};
struct ValueStep {
    std::int32_t address = 0;
    std::int32_t key0 = 0; ///< first key of the step in the stage
};

/// When what is copied to LDS, and where to. Keys and values come as whole tiles or step by step; while a step is worked
/// on, the next one is `fetched`: copied asynchronously, or read into registers. `arrive` waits for it.
template <class Machine, class Setup>
class Staging : public TileCopies<Machine, Setup> {
    using Copies = TileCopies<Machine, Setup>;

  public:
    using Copies::cfg;
    using Copies::Copies;
    using Copies::plan;

    FMHA_DEVICE void visit(const kernels::FwdItem&, std::int64_t) {
        stage_ ^= 1;
        started_ = true;
        more_keys_ = false;
    }

    FMHA_DEVICE KeyStep key() const { return {}; }
    FMHA_DEVICE ValueStep value() const { return {}; }

    FMHA_DEVICE void prefetch(const KeyStep&, const kernels::Matrix& matrix, std::int64_t key0,
                              std::int64_t col0) {
        const Tile& tile = cfg().algorithm.tile;
        if (plan().async == AsyncCopies::tiles) {
            this->copy_lines(plan().key, key_stage(stage_ ^ 1), LineView::of(matrix, plan().type_k),
                             {key0, col0, tile.n0, 0, 0, tile.n0, tile.k0max});
            return;
        }
        keys_ = matrix;
        next_key0_ = key0;
        more_keys_ = true;
        if (!started_) fetch_keys(matrix, key0, 0);
    }
    FMHA_DEVICE void prefetch(const ValueStep&, const kernels::Matrix& matrix, std::int64_t key0,
                              std::int64_t channel0) {
        values_ = matrix;
        channel0_ = channel0;
        if (plan().async == AsyncCopies::tiles)
            this->copy_values(matrix, value_stage(stage_), key0, channel0, cfg().algorithm.tile.n0);
    }
    FMHA_DEVICE void commit() {
        if constexpr (Machine::has_tile_copies)
            if (plan().async == AsyncCopies::tiles) machine_.commit_copies();
    }
    FMHA_DEVICE void wait(int groups) {
        if constexpr (Machine::has_tile_copies)
            if (plan().async == AsyncCopies::tiles) {
                machine_.wait_copies(groups);
                machine_.barrier();
            }
    }

    FMHA_DEVICE void load_transposed(KeyStep& key, const kernels::Matrix& matrix, std::int64_t key0,
                                     std::int64_t col0) {
        const Tile& tile = cfg().algorithm.tile;
        const auto column = static_cast<std::int32_t>(col0);
        if (plan().async == AsyncCopies::tiles) {
            key = {key_stage(stage_), column};
            return;
        }
        key = {
            arrive(plan().key_words > 0,
                   [&](int address, Phase phase) { this->copy_keys(matrix, address, key0, column, phase); }),
            0};
        if (column + tile.k0 < tile.k0max)
            fetch_keys(matrix, key0, column + tile.k0);
        else
            fetch_values(values_, key0);
    }
    FMHA_DEVICE void load(ValueStep& value, const kernels::Matrix& matrix, std::int64_t key0,
                          std::int64_t channel0) {
        const Tile& tile = cfg().algorithm.tile;
        const std::int32_t step = this->key_in_tile(key0);
        if (plan().async == AsyncCopies::tiles) {
            value = {value_stage(stage_), step};
            return;
        }
        value = {arrive(plan().value_words > 0,
                        [&](int address, Phase phase) {
                            this->copy_values(matrix, address, key0, channel0, tile.k1, phase);
                        }),
                 0};
        if (step + tile.k1 < tile.n0)
            fetch_values(matrix, key0 + tile.k1);
        else if (more_keys_)
            fetch_keys(keys_, next_key0_, 0);
    }

  protected:
    using Copies::machine_;

  private:
    int stage_ = 1;  ///< of the key tile that is being worked on; `visit` turns to the next
    int buffer_ = 0; ///< of the step that is being worked on
    // Where the steps after a tile's last ones come from.
    kernels::Matrix keys_, values_;
    std::int64_t next_key0_ = 0, channel0_ = 0;
    bool started_ = false, more_keys_ = false;

    FMHA_DEVICE int key_stage(int stage) const { return plan().key.offset + stage * plan().key_stage; }
    FMHA_DEVICE int value_stage(int stage) const { return plan().value.offset + stage * plan().value_stage; }

    /// The next step after the one that is being worked on, into the other buffer: every wave has left it, since all of
    /// them have come to the present step.
    FMHA_DEVICE void fetch_keys(const kernels::Matrix& matrix, std::int64_t key0, std::int32_t column) {
        if (plan().key_words > 0) {
            this->copy_keys(matrix, key_stage(buffer_ ^ 1), key0, column, Phase::direct);
            commit_step();
        } else if (plan().read_ahead) {
            this->copy_keys(matrix, 0, key0, column, Phase::read);
        }
    }
    FMHA_DEVICE void fetch_values(const kernels::Matrix& matrix, std::int64_t key0) {
        const int keys = cfg().algorithm.tile.k1;
        if (plan().value_words > 0) {
            this->copy_values(matrix, value_stage(buffer_ ^ 1), key0, channel0_, keys, Phase::direct);
            commit_step();
        } else if (plan().read_ahead) {
            this->copy_values(matrix, 0, key0, channel0_, keys, Phase::read);
        }
    }
    FMHA_DEVICE void commit_step() {
        if constexpr (Machine::has_step_copies) machine_.commit_copies();
    }

    /// The address of the step that the program asks for, when it is there for all: by the copy that was started
    /// before, or by copy(address, phase) now.
    template <class Copy>
    FMHA_DEVICE int arrive(bool fetched, Copy copy) {
        if constexpr (Machine::has_step_copies)
            if (fetched) {
                machine_.wait_copies(0);
                machine_.barrier();
                return key_stage(buffer_ ^= 1);
            }
        const int address = key_stage(next_buffer());
        copy(address, plan().read_ahead ? Phase::write : Phase::whole);
        machine_.barrier();
        return address;
    }

    /// The buffer for the next step. With two, the barrier after the copy into the other one has already seen
    /// every wave leave this one; with one, that takes a barrier of its own.
    FMHA_DEVICE int next_buffer() {
        if (plan().key_stage == 0) {
            machine_.barrier();
            return 0;
        }
        return buffer_ ^= 1;
    }
};

} // namespace fmha::hip_target
