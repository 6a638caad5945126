#pragma once

#include "kernels/targets/hip/descriptor.hpp"
#include "kernels/targets/hip/emulated/machine.hpp"
#include "kernels/targets/hip/emulated/team_block.hpp"
#include "kernels/targets/hip/ws_maps.hpp"

#include <deque>
#include <set>

namespace fmha::hip_target {

class GroupModel;

/// One warp group of a block on the host: the feed or a team, or the waves of the feed that transpose. Its threads advance together; other groups go on when it waits.
class EmulatedTeamMachine : public EmulatedMachine {
  public:
    static constexpr int group_threads = 128, wave_threads = 32;

    /// `maps` must outlive the machine.
    EmulatedTeamMachine(TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent);

    int group() const { return transposes(0, 0) ? 0 : agent_; }
    void release_registers() {
        check_together("registers");
        block_.release_registers(agent_);
    }
    void claim_registers() {
        check_together("registers");
        block_.claim_registers(agent_);
    }

    void init_barrier(int address, int arrivals) {
        if (agent_ == 0) block_.init_barrier(address, arrivals);
    }
    void barriers_ready() {
        check_together("the block");
        block_.meet(agent_);
    }
    void wait(int address, int parity) { block_.wait(agent_, address, parity); }
    /// From here on the group is one thread of it, which does the work of several on a device: their copies meet at the same barrier.
    bool leads(int) {
        alone_ = true;
        return true;
    }
    static constexpr int feeder() { return 0; }
    static constexpr int feeders(int) { return 1; }
    bool transposes(int, int) const { return block_.transposes(agent_); }
    static int transposer(int thread, int) { return thread / wave_threads; }
    void expect(int address, int bytes) {
        check_alone("bytes are expected");
        block_.expect(agent_, address, bytes);
    }
    const MapRows& rows_of(int map) const { return maps_.rows.at(static_cast<std::size_t>(map)); }
    void copy_box(int map, const BoxCorner& corner, int address, int barrier) {
        copy_box(maps_.specs.at(static_cast<std::size_t>(map)), corner, address, barrier);
    }
    void arrive_wave(int address, bool arrives) {
        check_together("a barrier");
        if (apart_)
            fail(Hazard::wave_order, "a lane arrives for others, which it has not met since they used LDS");
        if (arrives) block_.arrive(agent_, address, threads() / wave_threads);
    }
    void wave_barrier() { apart_ = false; }
    template <class Address>
    void load_matrix(EmulatedRegisters<std::uint32_t>& out, int r0, Address address, bool transposed) {
        each_wave([&](int first) {
            MatrixLines lines{};
            for (int lane = 0; lane < load_matrix_lanes; ++lane)
                block_.read(agent_, address(first + lane), lines[static_cast<std::size_t>(lane)].data());
            deal_out(lines, out, r0, first, transposed);
        });
    }
    template <class Address>
    void store_matrix(const EmulatedRegisters<std::uint32_t>& in, int r0, Address address) {
        each_wave([&](int first) {
            for (int lane = 0; lane < load_matrix_lanes; ++lane) {
                const MatrixLines::value_type line = line_of(in, r0, first, lane);
                block_.write(agent_, address(first + lane), line.data());
            }
        });
    }
    void publish() {
        apart_ = true;
        block_.publish(agent_);
    }
    void turn(int team) {
        check_together("a turn");
        block_.turn(agent_, team);
    }
    void pass(int team) {
        check_together("a turn");
        block_.pass(agent_, team);
    }

    MatrixDescriptor descriptor(int address, int leading, int stride) const {
        check_descriptor(address);
        return MatrixDescriptor::of(static_cast<std::uint32_t>(address), leading, stride);
    }
    template <class T>
    static void keep(EmulatedRegisters<T>&) {}
    static void hold_behind(const EmulatedRegisters<float>&) {}
    template <class T>
    void fence_products(EmulatedRegisters<T>& x) {
        fenced_.insert(&x);
    }
    void multiply_lds(ElementType type, EmulatedRegisters<float>& d, MatrixDescriptor a, MatrixDescriptor b,
                      bool accumulate);
    void multiply_registers(ElementType type, EmulatedRegisters<float>& d,
                            const EmulatedRegisters<std::uint32_t>& a, int a0, MatrixDescriptor b,
                            bool accumulate);
    void commit_products(EmulatedRegisters<float>& d);
    void wait_products(int under_way, EmulatedRegisters<float>& d);

  protected:
    void copy_box(const TensorMapSpec& map, const BoxCorner& corner, int address, int barrier) {
        check_alone("a tensor copy is started");
        block_.copy_box(agent_, map, corner, address, barrier);
    }
    const TensorMapSpec& map(int number) const { return maps_.specs.at(static_cast<std::size_t>(number)); }

  private:
    /// Where the elements of an operand lie.
    struct Operand {
        MatrixDescriptor at;
        bool lines_are_depth = false; ///< else a line is a row of A, or a column of B
    };
    struct Instruction {
        ElementType type;
        bool accumulate = true;
        bool a_in_registers = false;
        Operand a, b;
        std::vector<std::uint32_t> a_words; ///< 4 of every thread
        std::vector<std::int64_t> units;    ///< of LDS, that it reads
    };
    /// Instructions on the same registers, between two commits.
    struct Product {
        EmulatedRegisters<float>* d = nullptr;
        std::vector<float> values; ///< of d; d itself is poisoned
        const EmulatedRegisters<std::uint32_t>* a = nullptr;
        std::vector<std::uint32_t> a_before;
        std::vector<Instruction> instructions;
        bool done = false;
    };

    template <class OfWave>
    void each_wave(OfWave of_wave) {
        apart_ = true;
        for (int first = 0; first < threads(); first += wave_threads) of_wave(first);
    }
    /// Row lane % 8 of matrix lane / 8: of the registers of four lanes.
    static MatrixLines::value_type line_of(const EmulatedRegisters<std::uint32_t>& in, int r0, int first,
                                           int lane);
    void check_together(const char* at) const;
    void check_alone(const char* what) const;
    void check_descriptor(int address) const;
    void check_fenced(const void* registers, const char* operand) const;
    Product& open_product(EmulatedRegisters<float>& d);
    void begin_reads(Instruction& instruction, int columns);
    static int address_of(const Operand& operand, int line, int depth, ElementType type);
    /// Calls visit(unit, line, depth) for every unit that holds elements of the operand, and with the first of them.
    template <class Visit>
    static void each_unit(const Operand& operand, int lines, ElementType type, Visit visit);
    /// Calls put(line, depth, value) for every element.
    template <class Put>
    void read_operand(const Operand& operand, int lines, ElementType type, Put put) const;
    void read_left(GroupModel& model, const Instruction& instruction) const;
    void compute(Product& product) const;
    void finish(Product& product);
    [[noreturn]] void fail(Hazard hazard, const std::string& sentence) const;

    TeamBlock& block_;   // NOLINT(*-avoid-const-or-ref-data-members)
    const WsMaps& maps_; // NOLINT(*-avoid-const-or-ref-data-members)
    int agent_;
    bool alone_ = false; ///< one thread of the group is at work
    bool apart_ = false; ///< lanes have used LDS since they last met
    std::set<const void*> fenced_;
    std::vector<Product> open_;
    std::deque<std::vector<Product>> groups_;
};

} // namespace fmha::hip_target
