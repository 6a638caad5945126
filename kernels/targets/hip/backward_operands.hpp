#pragma once

#include "kernels/targets/hip/backward_plan.hpp"
#include "kernels/targets/hip/products.hpp"
#include "kernels/targets/hip/query_copies.hpp"
#include "kernels/targets/hip/shared_gradients.hpp"
#include "kernels/targets/hip/streamed_rows.hpp"
#include "kernels/targets/hip/weights.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// Q and dO of a query tile: places in LDS, of which the plan knows.
struct QueryTile {};
struct OutputGradientTile {};

/// K of a key tile: the left operand of scores, and the right one of dQ.
template <class Left, class Words>
struct KeyOperand {
    Left left;
    Words depth; ///< BackwardPlan::key_depth_in_registers
};

/// The operands of backward's five products, and the tiles that come to LDS for them. Everything that waves share is loaded between
/// two barriers: the first when all have left the tile there, the second before the next product.
template <class Block>
class BackwardOperands {
    using Machine = typename Block::Machine;
    using Plan = BackwardPlan;

  public:
    FMHA_DEVICE explicit BackwardOperands(const Block& block)
        : block_(block), products_(block), queries_(block), copies_(block), keys_(block), values_(block),
          weights_(block), streams_(block), gradients_(block) {}

    FMHA_DEVICE auto key() const {
        auto left = left_operand<&Plan::key>(block_);
        auto depth = block_.template registers<std::uint32_t, &Plan::key_depth_words>();
        return KeyOperand<decltype(left), decltype(depth)>{left, depth};
    }
    FMHA_DEVICE auto value() const { return left_operand<&Plan::value>(block_); }
    FMHA_DEVICE QueryTile query() const { return {}; }
    FMHA_DEVICE OutputGradientTile output_gradient() const { return {}; }
    FMHA_DEVICE auto normalisers() const { return streams_.template rows<&Plan::normalisers>(); }
    FMHA_DEVICE auto deltas() const { return streams_.template rows<&Plan::deltas>(); }
    FMHA_DEVICE auto scores() const { return accumulator<&Plan::scores>(block_); }
    FMHA_DEVICE auto score_gradients() const { return accumulator<&Plan::score_gradients>(block_); }
    FMHA_DEVICE auto query_gradients() const { return accumulator<&Plan::query_gradients>(block_); }
    FMHA_DEVICE auto key_gradients() const { return accumulator<&Plan::key_gradients>(block_); }
    FMHA_DEVICE auto value_gradients() const { return accumulator<&Plan::value_gradients>(block_); }

    /// Asynchronously, into the stage that the last tile has left, or to registers, from where `load` brings them there. dO follows Q.
    FMHA_DEVICE void prefetch(QueryTile&, const kernels::Matrix& matrix, std::int64_t row0,
                              std::int64_t col0) {
        if (prefetches()) queries_.copy_query(stage_ ^ 1, matrix, row0, col0, ahead());
    }
    FMHA_DEVICE void prefetch(OutputGradientTile&, const kernels::Matrix& matrix, std::int64_t row0,
                              std::int64_t col0) {
        if (!prefetches()) return;
        queries_.copy_gradient(stage_ ^ 1, matrix, row0, col0, ahead());
        if constexpr (Machine::has_tile_copies)
            if (!plan().staging.read_ahead) block_.machine.commit_copies();
        fetched_ = true;
    }
    FMHA_DEVICE void load(QueryTile&, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0) {
        if (plan().staging.read_ahead || fetched_) {
            take_stage();
            if (fetched_) return;
        } else {
            begin_loading();
        }
        queries_.copy_query(stage_, matrix, row0, col0, Phase::whole);
    }
    FMHA_DEVICE void load(OutputGradientTile&, const kernels::Matrix& matrix, std::int64_t row0,
                          std::int64_t col0) {
        if (!fetched_) {
            if (!plan().staging.read_ahead) begin_loading();
            queries_.copy_gradient(stage_, matrix, row0, col0, Phase::whole);
        }
        fetched_ = false;
        if (adds_dq_later()) finish_loading(); // waves have different work from here on
    }
    /// From the registers that they were read to.
    FMHA_DEVICE void take_queries() {
        take_stage();
        queries_.copy_query(stage_, {}, 0, 0, Phase::write);
        streams_.template copy<&Plan::normalisers>(stage_, {}, 0, Phase::write);
        streams_.template copy<&Plan::deltas>(stage_, {}, 0, Phase::write);
        queries_.copy_gradient(stage_, {}, 0, 0, Phase::write);
        if (adds_dq_later()) finish_loading();
    }
    /// Between Q and dO.
    template <auto Piece, class Registers>
    FMHA_DEVICE void prefetch(StreamedRows<Piece, Registers>&, const kernels::Matrix& matrix,
                              std::int64_t row0) {
        if (streams_.template in_lds<Piece>())
            streams_.template copy<Piece>(stage_ ^ 1, matrix, row0, ahead());
    }
    template <auto Piece, class Registers>
    FMHA_DEVICE void load(StreamedRows<Piece, Registers>& values, const kernels::Matrix& matrix,
                          std::int64_t row0) {
        if (!streams_.template in_lds<Piece>())
            streams_.load(values, matrix, row0);
        else if (!fetched_)
            streams_.template copy<Piece>(stage_, matrix, row0, Phase::whole);
    }
    template <auto Piece, class Registers>
    FMHA_DEVICE void arrive(StreamedRows<Piece, Registers>& values) {
        if (!streams_.template in_lds<Piece>() || (plan().staging.read_ahead && adds_dq_later())) return;
        finish_loading();
        streams_.read(stage_, values);
    }
    template <auto Piece, class Registers>
    FMHA_DEVICE void arrive_early(StreamedRows<Piece, Registers>& values) {
        if (plan().staging.read_ahead && adds_dq_later()) streams_.read(stage_, values);
    }
    template <auto Piece, class Held>
    FMHA_DEVICE void load(LeftOperand<Piece, Held>& value, const kernels::Matrix& matrix, std::int64_t row0,
                          std::int64_t col0) {
        begin_loading();
        values_.load(value, matrix, row0, col0);
    }
    template <class Left, class Words>
    FMHA_DEVICE void load(KeyOperand<Left, Words>& key, const kernels::Matrix& matrix, std::int64_t row0,
                          std::int64_t col0) {
        finish_loading(); // keys that no query sees have not been waited for
        begin_loading();
        keys_.load(key.left, matrix, row0, col0);
        const bool shared =
            plan().key.place == OperandPlace::lds && plan().key_depth.image.offset == plan().key.image.offset;
        if (plan().key_depth_in_registers)
            load_depth(key.depth, matrix, row0, col0);
        else if (!shared)
            copies_.template copy_step<&Plan::key_depth>(plan().key_depth.image.offset, matrix, col0, row0, 0,
                                                         plan().key_depth.depth, Phase::whole);
    }

    template <class Acc, class Left, class Words>
    FMHA_DEVICE void product_abt(Acc& acc, QueryTile&, KeyOperand<Left, Words>& key) {
        finish_loading();
        products_.product(acc, key.left, 0, query_tile<&Plan::query>());
    }
    template <class Acc, auto Piece, class Held>
    FMHA_DEVICE void product_abt(Acc& acc, OutputGradientTile&, LeftOperand<Piece, Held>& value) {
        finish_loading();
        products_.product(acc, value, 0, query_tile<&Plan::d_o>());
    }
    template <class Acc, class Weight>
    FMHA_DEVICE void product_atb(Acc& acc, Weight& weights, QueryTile&) {
        finish_loading();
        products_.product(acc, weights, 0, query_tile<&Plan::query_depth>());
    }
    template <class Acc, class Weight>
    FMHA_DEVICE void product_atb(Acc& acc, Weight& weights, OutputGradientTile&) {
        finish_loading();
        products_.product(acc, weights, 0, query_tile<&Plan::d_o_depth>());
    }
    FMHA_DEVICE bool adds_dq_later() const { return plan().gradient_stage != 0; }
    FMHA_DEVICE bool adds_dq_behind() const { return adds_dq_later() && !plan().halves_differ; }
    template <class Queries, class Place>
    FMHA_DEVICE void look_at_head(const Queries& head, Place place) {
        queries_.look_at_rows(head.q, head.d_o, streams_.rows_near(head.lse) && streams_.rows_near(head.d));
        if (plan().keeps_place) place_of_dq_ = place();
    }
    FMHA_DEVICE kernels::Matrix kept_place(const kernels::Matrix& place) const {
        if constexpr (may_prefetch_first)
            if (plan().keeps_place) return place_of_dq_;
        return place;
    }
    static constexpr bool may_prefetch_first = Block::template may<&Plan::staging>(&StagingPlan::read_ahead);
    /// Else the head's rows are read element by element, when they are needed.
    FMHA_DEVICE bool reads_ahead() const { return plan().staging.read_ahead && queries_.are_ahead(); }
    FMHA_DEVICE bool prefetches() const { return plan().staging.read_ahead ? reads_ahead() : two_stages(); }
    FMHA_DEVICE bool adds_dq_first() const { return !plan().halves_differ || block_.machine.in_first_half(); }
    /// `narrow_gradients` has brought the left operand to LDS.
    template <auto Product, class Registers, class Weight, class Left, class Words>
    FMHA_DEVICE void product_ab(Accumulator<Product, Registers>& acc, Weight&, KeyOperand<Left, Words>& key) {
        const bool met = adds_dq_later() ? !sharing_ : loading_;
        finish_loading();
        if (!met) barrier(); // dS of all waves is in LDS
        const ProductPlan& p = block_.template piece<Product>();
        auto left = block_.template registers<std::uint32_t, Product, &ProductPlan::left_registers>();
        auto right = block_.template registers<std::uint32_t, Product, &ProductPlan::right_registers>();
        const int pair = p.load_matrix ? 32 / p.depth : 1;
        // Fragments are read ahead where the registers of the left operand have room for more than one of each row tile.
        const int own = p.acc.row_tiles * p.left_fragment, ahead = p.left_registers / own - 1;
        FMHA_UNROLL
        for (int step = 0; step < p.depth_fragments + ahead; ++step) {
            if (step < p.depth_fragments) {
                FMHA_UNROLL
                for (int row = 0; row < p.acc.row_tiles; ++row)
                    gradients_.template read<Product>(row, step, left, step % (ahead + 1) * own);
            }
            const int fragment = step - ahead, l0 = fragment % (ahead + 1) * own;
            if (fragment < 0) continue;
            if (ahead > 0) block_.machine.products_in_order();
            FMHA_UNROLL
            for (int col = 0; col < p.acc.column_tiles; col += pair) {
                const int kept = (fragment * p.acc.column_tiles + col) * p.right_fragment;
                const bool in_registers = plan().key_depth_in_registers;
                if (!in_registers)
                    products_.template read_right<Product>(whole_tile<&Plan::key_depth>(), col, fragment,
                                                           right);
                FMHA_UNROLL
                for (int half = 0; half < pair; ++half) {
                    FMHA_UNROLL
                    for (int row = 0; row < p.acc.row_tiles; ++row) {
                        const int to = (row * p.acc.column_tiles + col + half) * p.acc.fragment;
                        if (in_registers)
                            products_.multiply(p, acc.x, to, left, l0 + row * p.left_fragment, key.depth,
                                               kept);
                        else
                            products_.multiply(p, acc.x, to, left, l0 + row * p.left_fragment, right,
                                               half * p.right_fragment);
                    }
                }
            }
            if (ahead > 0) block_.machine.products_in_order();
        }
    }

    template <class Tile>
    FMHA_DEVICE auto narrow_weights(Tile& weights) {
        return weights_.narrow(weights);
    }
    /// Into LDS too, where nobody reads dS any more: all waves have come to the present tile of queries.
    template <class Tile>
    FMHA_DEVICE auto narrow_gradients(Tile& ds) {
        if (adds_dq_later()) sharing_ = true;
        gradients_.write(ds);
        return weights_.narrow(ds);
    }

  private:
    Block block_;
    Products<Block> products_;
    QueryCopies<Block> queries_;
    TileCopies<Block, &Plan::staging> copies_;
    KeptOperand<Block, &Plan::key, &Plan::scores, &Plan::staging> keys_;
    KeptOperand<Block, &Plan::value, &Plan::score_gradients, &Plan::staging> values_;
    Weights<Block, &Plan::weights, &Plan::value_gradients> weights_;
    RowStreams<Block> streams_;
    int stage_ = 0;        ///< where Q and dO of the present tile are
    bool fetched_ = false; ///< those of the next one are on their way to the other stage
    SharedGradients<Block> gradients_;
    kernels::Matrix place_of_dq_; ///< of the head
    bool loading_ = false;
    bool copying_ = false; ///< copies have been started that no group has yet
    bool sharing_ = false; ///< dS goes to LDS, and waves have not met since

    FMHA_DEVICE decltype(auto) plan() const { return block_.plan(); }

    FMHA_DEVICE void barrier() {
        block_.machine.barrier();
        if (adds_dq_later()) sharing_ = false;
    }
    FMHA_DEVICE void begin_loading() {
        copying_ = true;
        if (loading_) return;
        barrier();
        loading_ = true;
    }
    FMHA_DEVICE void finish_loading() {
        if (!loading_) return;
        if constexpr (Machine::has_tile_copies)
            if (plan().staging.async == AsyncCopies::tiles) {
                // A group waits for its turn behind the atomic sums of the last tile, even one without copies.
                if (copying_) block_.machine.commit_copies();
                block_.machine.wait_copies(0);
            }
        barrier();
        loading_ = copying_ = false;
    }

    template <auto Operand>
    FMHA_DEVICE OperandStep<Operand> whole_tile() const {
        return {block_.template piece<Operand>().image.offset, 0};
    }
    template <auto Operand>
    FMHA_DEVICE OperandStep<Operand> query_tile() const {
        const OperandPlan& operand = block_.template piece<Operand>();
        return {operand.image.offset + stage_ * operand.stage, 0};
    }
    FMHA_DEVICE bool two_stages() const { return plan().query.stage != 0; }
    /// To where `prefetch` brings what comes next.
    FMHA_DEVICE Phase ahead() const { return plan().staging.read_ahead ? Phase::read : Phase::whole; }
    /// The tile of queries is in, or goes to, the other stage.
    FMHA_DEVICE void take_stage() {
        if (!two_stages()) return begin_loading();
        stage_ ^= 1;
        loading_ = true;
    }
    /// The keys of dQ to registers, some fragments of depth at a time, by way of LDS that queries need later.
    template <class Words>
    FMHA_DEVICE void load_depth(Words& words, const kernels::Matrix& matrix, std::int64_t row0,
                                std::int64_t col0) {
        constexpr auto product = &Plan::query_gradients;
        const ProductPlan& p = plan().query_gradients;
        const OperandPlan& keys = plan().key_depth;
        const int passing = keys.step / p.depth;
        auto right = block_.template registers<std::uint32_t, product, &ProductPlan::right_registers>();
        FMHA_UNROLL
        for (int first = 0; first < p.depth_fragments; first += passing) {
            copies_.template copy_step<&Plan::key_depth>(keys.image.offset, matrix, col0, row0,
                                                         first * p.depth, keys.step, Phase::whole);
            block_.machine.barrier();
            FMHA_UNROLL
            for (int fragment = 0; fragment < passing; ++fragment) {
                FMHA_UNROLL
                for (int col = 0; col < p.acc.column_tiles; ++col) {
                    const int to = ((first + fragment) * p.acc.column_tiles + col) * p.right_fragment;
                    products_.template read_right<product>(whole_tile<&Plan::key_depth>(), col, fragment,
                                                           right);
                    block_.machine.each([&](int thread) {
                        FMHA_UNROLL
                        for (int w = 0; w < p.right_fragment; ++w)
                            words.at(thread, to + w) = plan().key.parked
                                                           ? block_.machine.parked(right.at(thread, w))
                                                           : right.at(thread, w);
                    });
                }
            }
            block_.machine.barrier();
        }
    }
};

} // namespace fmha::hip_target
