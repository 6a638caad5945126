#pragma once

#include "kernels/programs/key_loop.hpp"
#include "kernels/targets/hip/tile_copies.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// What `load_transposed` and `load` deliver of a right operand: a place in LDS. `Piece` of the plan is its OperandPlan.
template <auto Piece>
struct OperandStep {
    std::int32_t address = 0; ///< of the stage
    std::int32_t depth0 = 0;  ///< of the step in the stage
};

/// When two right operands come to LDS, and where to: keys, then the values of the same tile. They come as whole tiles or
/// step by step; while a step is worked on, the next one is `fetched`: copied asynchronously, or read into registers.
/// `arrive` waits for it. `Keys` and `Values` of the plan are their OperandPlans, `Piece` is the StagingPlan.
template <class Block, auto Keys, auto Values, auto Piece>
class Staging {
    using Machine = typename Block::Machine;
    using KeyStep = OperandStep<Keys>;
    using ValueStep = OperandStep<Values>;

  public:
    FMHA_DEVICE explicit Staging(const Block& block) : block_(block), copies_(block) {}

    FMHA_DEVICE void visit(const kernels::FwdItem&, std::int64_t) {
        stage_ ^= 1;
        started_ = true;
        more_keys_ = false;
    }

    FMHA_DEVICE KeyStep key() const { return {}; }
    FMHA_DEVICE ValueStep value() const { return {}; }

    FMHA_DEVICE void prefetch(const KeyStep&, const kernels::Matrix& matrix, std::int64_t key0,
                              std::int64_t col0) {
        if (async() == AsyncCopies::tiles) {
            copies_.template copy_step<Keys>(key_stage(stage_ ^ 1), matrix, key0, col0, 0, keys().depth,
                                             Phase::whole);
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
        if (async() == AsyncCopies::tiles)
            copy_values(matrix, value_stage(stage_), key0, channel0, values().depth, Phase::whole);
    }
    FMHA_DEVICE void commit() {
        if constexpr (Machine::has_tile_copies)
            if (async() == AsyncCopies::tiles) block_.machine.commit_copies();
    }
    FMHA_DEVICE void wait(int groups) {
        if constexpr (Machine::has_tile_copies)
            if (async() == AsyncCopies::tiles) {
                block_.machine.wait_copies(groups);
                block_.machine.barrier();
            }
    }

    FMHA_DEVICE void load_transposed(KeyStep& key, const kernels::Matrix& matrix, std::int64_t key0,
                                     std::int64_t col0) {
        const auto column = static_cast<std::int32_t>(col0);
        if (async() == AsyncCopies::tiles) {
            key = {key_stage(stage_), column};
            return;
        }
        key = {arrive(keys().copy_words > 0,
                      [&](int address, Phase phase) { copy_keys(matrix, address, key0, column, phase); }),
               0};
        if (column + keys().step < keys().depth)
            fetch_keys(matrix, key0, column + keys().step);
        else
            fetch_values(values_, key0);
    }
    FMHA_DEVICE void load(ValueStep& value, const kernels::Matrix& matrix, std::int64_t key0,
                          std::int64_t channel0) {
        const std::int32_t step = key_in_tile(key0);
        if (async() == AsyncCopies::tiles) {
            value = {value_stage(stage_), step};
            return;
        }
        const int extent = values().step;
        value = {arrive(values().copy_words > 0,
                        [&](int address, Phase phase) {
                            copy_values(matrix, address, key0, channel0, extent, phase);
                        }),
                 0};
        if (step + values().step < values().depth)
            fetch_values(matrix, key0 + values().step);
        else if (more_keys_)
            fetch_keys(keys_, next_key0_, 0);
    }

  private:
    Block block_;
    int stage_ = 1;  ///< of the key tile that is being worked on; `visit` turns to the next
    int buffer_ = 0; ///< of the step that is being worked on
    // Where the steps after a tile's last ones come from.
    kernels::Matrix keys_, values_;
    std::int64_t next_key0_ = 0, channel0_ = 0;
    bool started_ = false, more_keys_ = false;
    TileCopies<Block, Piece> copies_;

    FMHA_DEVICE const OperandPlan& keys() const { return block_.template piece<Keys>(); }
    FMHA_DEVICE const OperandPlan& values() const { return block_.template piece<Values>(); }
    FMHA_DEVICE const StagingPlan& plan() const { return block_.template piece<Piece>(); }
    FMHA_DEVICE AsyncCopies async() const { return plan().async; }

    FMHA_DEVICE int key_stage(int stage) const { return keys().image.offset + stage * keys().stage; }
    FMHA_DEVICE int value_stage(int stage) const { return values().image.offset + stage * values().stage; }

    FMHA_DEVICE std::int32_t key_in_tile(std::int64_t key) const {
        return static_cast<std::int32_t>(static_cast<std::uint64_t>(key) %
                                         static_cast<std::uint64_t>(values().depth));
    }

    FMHA_DEVICE void copy_keys(const kernels::Matrix& matrix, int address, std::int64_t key0,
                               std::int32_t column, Phase phase) {
        copies_.template copy_step<Keys>(address, matrix, key0, 0, column, keys().step, phase);
    }
    FMHA_DEVICE void copy_values(const kernels::Matrix& matrix, int address, std::int64_t key0,
                                 std::int64_t channel0, int extent, Phase phase) {
        const std::int32_t step = key_in_tile(key0);
        copies_.template copy_step<Values>(address, matrix, channel0, key0 - step, step, extent, phase);
    }

    /// The next step after the one that is being worked on, into the other buffer: every wave has left it, since all of
    /// them have come to the present step.
    FMHA_DEVICE void fetch_keys(const kernels::Matrix& matrix, std::int64_t key0, std::int32_t column) {
        if (keys().copy_words > 0) {
            copy_keys(matrix, key_stage(buffer_ ^ 1), key0, column, Phase::direct);
            commit_step();
        } else if (plan().read_ahead) {
            copy_keys(matrix, 0, key0, column, Phase::read);
        }
    }
    FMHA_DEVICE void fetch_values(const kernels::Matrix& matrix, std::int64_t key0) {
        if (values().copy_words > 0) {
            copy_values(matrix, value_stage(buffer_ ^ 1), key0, channel0_, values().step, Phase::direct);
            commit_step();
        } else if (plan().read_ahead) {
            copy_values(matrix, 0, key0, channel0_, values().step, Phase::read);
        }
    }
    FMHA_DEVICE void commit_step() {
        if constexpr (Machine::has_step_copies) block_.machine.commit_copies();
    }

    /// The address of the step that the program asks for, when it is there for all: by the copy that was started
    /// before, or by copy(address, phase) now.
    template <class Copy>
    FMHA_DEVICE int arrive(bool fetched, Copy copy) {
        if constexpr (Machine::has_step_copies)
            if (fetched) {
                block_.machine.wait_copies(0);
                block_.machine.barrier();
                return key_stage(buffer_ ^= 1);
            }
        const int address = key_stage(next_buffer());
        copy(address, plan().read_ahead ? Phase::write : Phase::whole);
        block_.machine.barrier();
        return address;
    }

    /// The buffer for the next step. With two, the barrier after the copy into the other one has already seen
    /// every wave leave this one; with one, that takes a barrier of its own.
    FMHA_DEVICE int next_buffer() {
        if (keys().stage == 0) {
            block_.machine.barrier();
            return 0;
        }
        return buffer_ ^= 1;
    }
};

} // namespace fmha::hip_target
