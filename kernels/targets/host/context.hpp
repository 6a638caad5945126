#pragma once

#include "kernels/programs/key_loop.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "kernels/targets/host/score_context.hpp"

#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <stdexcept>

namespace fmha::host_target {

/// The streams of warp-specialised attention.
enum class StreamName : std::uint8_t { query, key, value };

/// Tiles that a step has filled in, and the tile that was taken last.
struct TileStream {
    struct At {
        kernels::Matrix matrix;
        std::int64_t row0, col0;
    };
    std::deque<At> filled;
    std::optional<At> taken;

    const At& tile() const {
        if (!taken) throw std::logic_error("a product reads a tile that was not taken");
        return *taken;
    }
};

/// The block context of attention: products of tiles, and the steps between them. There is nothing to wait for.
class HostContext : public ScoreContext {
  public:
    HostContext(const KernelConfig& config, std::vector<TileVisit>* trace);

    void visit(const kernels::FwdItem& item, std::int64_t key_tile);

    FloatTile query() const { return query_; }
    Panels key() const { return key_; }
    Panels value() const { return value_; }
    FloatTile scores() const { return scores_; }
    FloatTile output() const { return output_; }
    FloatTile addend() const { return addend_; }
    /// Makes the context ready for the next block, of which only `rows` query rows exist. The tiles shrink to
    /// them: the rest of a block of the configuration would be computed and thrown away.
    void begin(std::int64_t rows);

    /// Steps of `step` that cover the part of a tile's `capacity` that lies inside `extent`.
    int steps(std::int64_t capacity, std::int64_t extent, std::int64_t step) const {
        return static_cast<int>(((extent < capacity ? extent : capacity) + step - 1) / step);
    }
    void prefetch(const Panels&, const kernels::Matrix&, std::int64_t, std::int64_t) const {}
    void commit() const {}
    void wait(int) const {}
    bool tiles_ahead() const { return false; }
    static std::false_type counts_tiles() { return {}; }

    using ScoreContext::load;
    void load(Panels& operand, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0);
    void load_transposed(Panels& operand, const kernels::Matrix& matrix, std::int64_t row0,
                         std::int64_t col0);
    void product(const FloatTile& acc, const FloatTile& a, int first, const Panels& b,
                 float factor = 1.0F) const;

    FloatTile narrow(const FloatTile& scores, bool carried = false) const;
    float narrowed(float weight) const {
        round_line(&weight, 1, 1.0F, weight_type_);
        return weight;
    }
    float weight_unit() const { return weight_unit_; }
    float weight_shift() const { return -std::log2(weight_unit_); }
    float slack() const { return 0.0F; } // scaling costs it nothing

    // One team, which has all rows, and no feed: a step's fills run when the first of them is taken.
    static StreamName query_stream() { return StreamName::query; }
    static StreamName key_stream() { return StreamName::key; }
    static StreamName value_stream() { return StreamName::value; }
    std::int64_t team_row() const { return 0; }
    int team_rows() const { return cfg().algorithm.tile.m0; }
    void fill_stage(StreamName name, const kernels::Matrix& matrix, const kernels::MatrixPlace&,
                    std::int64_t row0, std::int64_t col0) {
        stream(name).filled.push_back({matrix, row0, col0});
    }
    /// Tiles are read where they lie, in any layout.
    static void transpose_stage(StreamName) {}
    template <class Items, class WorkOf, class Fills, class Transposes, class Team>
    void run(const Items& items, WorkOf work_of, Fills fills, Transposes, Team team) {
        for (std::uint32_t n = 0; items.exists(n); ++n) {
            const auto work = work_of(items[n]);
            if (!work.exists()) continue;
            for (TileStream& stream : streams_) stream = {};
            next_fills_ = [&fills, &work, step = 0]() mutable {
                if (step == work.steps()) throw std::logic_error("a tile was taken that no step fills");
                fills(work, step++);
            };
            team(work);
            next_fills_ = {};
        }
    }
    void take(StreamName name);
    void give(StreamName name, bool last = true) {
        if (last) stream(name).taken.reset();
    }
    void turn() const {}
    void pass() const {}
    /// acc = query · keysᵀ.
    void start(const FloatTile& acc, StreamName left, StreamName right);
    /// acc += left · values, or acc = where not `adds`.
    void start(const FloatTile& acc, const FloatTile& left, StreamName right, bool adds = true);
    void finish(const FloatTile&, int) const {}
    void settle(const FloatTile&) const {}
    void hold_behind(const Rows&) const {}

  protected:
    ElementType weight_type() const { return weight_type_; }

  private:
    TileStream& stream(StreamName name) { return streams_[static_cast<std::size_t>(name)]; }

    std::vector<TileVisit>* trace_;
    ElementType weight_type_;
    float weight_unit_;
    Scratch<float> memory_;
    FloatTile query_, scores_, output_, weights_, addend_;
    Panels key_, value_;
    float* work_ = nullptr;
    std::array<TileStream, 3> streams_; ///< by name
    std::function<void()> next_fills_;
};

} // namespace fmha::host_target
