// Mistakes in how a feed and its teams meet: on a device most are silent or a hang. The emulated machine names each.

#include "named_mistakes.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fmha::hip_target::test {
namespace {

enum class Mistake : std::uint8_t {
    none,
    full_parity,       ///< teams wait for the other parity of "full"
    no_wait_for_empty, ///< the feed does not wait
    given_twice,       ///< a stage is given back twice
    not_given,         ///< a stage is not given back
    given_early,       ///< a stage is given back as soon as it is taken
    query_given_early, ///< the same of the query of an item
    turn_kept,         ///< a team does not pass its turn
    turn_passed_twice,
    registers_unfenced, ///< no fence before products
    not_awaited,        ///< products are not waited for
    next_line,          ///< descriptors begin a line further on
    no_leading_offset,  ///< blocks of 64 channels are taken to lie 1024 bytes apart
    nothing_expected,   ///< the feed arrives at "full" without the bytes of its copies
    more_expected,      ///< than copies bring
    half_expected,
    a_box_too_few,   ///< the second block of 64 channels is not copied
    bound_one_short, ///< the map ends before the last row of a sequence
    bound_one_long,  ///< … behind the first row that does not exist
    other_head,      ///< boxes are those of the next head
    row_early,       ///< rows of a sequence are taken to begin a row before it
    stride_of_eight, ///< a stride of the map is no multiple of 16 bytes
    fed_by_all,      ///< all threads of a team start a copy
    fed_with_turns,  ///< the feed's one thread passes a turn
};

class MistakenMachine : public EmulatedTeamMachine {
  public:
    MistakenMachine(TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent, Mistake mistake)
        : EmulatedTeamMachine(block, unit, maps, agent), mistake_(mistake) {}

    void wait(int address, int parity) {
        if (mistake_ == Mistake::full_parity && group() > 0) parity ^= 1;
        if (mistake_ == Mistake::no_wait_for_empty && group() == 0) return;
        EmulatedTeamMachine::wait(address, parity);
        // "full" of the first stage of keys; the barrier of "empty" lies behind those of both stages. Queries have one.
        if (mistake_ == Mistake::given_early && group() > 0 && address == first_key_)
            EmulatedTeamMachine::arrive_wave(address + 16, true);
        if (mistake_ == Mistake::query_given_early && group() > 0 && address == query_)
            EmulatedTeamMachine::arrive_wave(address + 8, true);
    }
    void init_barrier(int address, int arrivals) {
        // Barriers are made in the order of the streams: two for each of the two stages of queries, then those of keys.
        if (++made_ == 1) query_ = address;
        if (made_ == 5) first_key_ = address;
        EmulatedTeamMachine::init_barrier(address, arrivals);
    }
    void arrive_wave(int address, bool arrives) {
        if (mistake_ == Mistake::not_given) return;
        if (mistake_ == Mistake::given_early && address == first_key_ + 16) return;
        if (mistake_ == Mistake::query_given_early && address == query_ + 8) return;
        EmulatedTeamMachine::arrive_wave(address, arrives);
        if (mistake_ == Mistake::given_twice) EmulatedTeamMachine::arrive_wave(address, arrives);
    }
    void pass(int team) {
        if (mistake_ == Mistake::turn_kept) return;
        EmulatedTeamMachine::pass(team);
        if (mistake_ == Mistake::turn_passed_twice) EmulatedTeamMachine::pass(team);
    }
    template <class T>
    void fence_products(EmulatedRegisters<T>& x) {
        if (mistake_ != Mistake::registers_unfenced) EmulatedTeamMachine::fence_products(x);
    }
    void wait_products(int under_way, EmulatedRegisters<float>& d) {
        if (mistake_ != Mistake::not_awaited) EmulatedTeamMachine::wait_products(under_way, d);
    }
    MatrixDescriptor descriptor(int address, int leading, int stride) const {
        if (mistake_ == Mistake::next_line) address += SwizzledTile::line_bytes;
        if (mistake_ == Mistake::no_leading_offset) leading = 1024;
        return EmulatedTeamMachine::descriptor(address, leading, stride);
    }
    void turn(int team) {
        if (mistake_ == Mistake::fed_by_all) EmulatedTeamMachine::copy_box(0, {}, 0, query_);
        EmulatedTeamMachine::turn(team);
    }
    void expect(int address, int bytes) {
        if (mistake_ == Mistake::nothing_expected) bytes = 0;
        if (mistake_ == Mistake::more_expected) bytes += 16;
        if (mistake_ == Mistake::half_expected) bytes /= 2;
        EmulatedTeamMachine::expect(address, bytes);
    }
    void copy_box(int number, BoxCorner corner, int address, int barrier) {
        TensorMapSpec spec = map(number);
        if (mistake_ == Mistake::a_box_too_few && corner.at[0] > 0) return;
        if (mistake_ == Mistake::bound_one_short) --spec.extents[1];
        if (mistake_ == Mistake::bound_one_long) ++spec.extents[1];
        if (mistake_ == Mistake::other_head) corner.at[2] = 1 - corner.at[2];
        if (mistake_ == Mistake::row_early && corner.at[3] > 0) --corner.at[3];
        if (mistake_ == Mistake::stride_of_eight) spec.strides[2] += 8;
        if (mistake_ == Mistake::fed_with_turns) EmulatedTeamMachine::pass(1);
        EmulatedTeamMachine::copy_box(spec, corner, address, barrier);
    }

  private:
    Mistake mistake_;
    int made_ = 0, query_ = -1, first_key_ = -1;
};

Verdict verdict_of(Mistake mistake, Schedule schedule) {
    FwdProblem problem(team_shape(DataType::bf16, 128));
    // Of two stages of queries a team would have to be an item late to see that one was given early: 176 keys leave room for one.
    const KernelConfig kernel =
        team_kernel(problem, 2, mistake == Mistake::query_given_early ? 176 : 64, 128);
    return verdict_on<MistakenMachine>(problem, kernel, mistake, schedule);
}

class EveryMistake : public testing::TestWithParam<int> {};

TEST_P(EveryMistake, IsNamed) {
    using enum Mistake;
    using enum Hazard;
    const std::vector<Named<Mistake>> table{
        {full_parity, {deadlock, unwritten_read, unwritten_read, unwritten_read}},
        {no_wait_for_empty, {phase_lost, arrivals_differ, stage_in_use, stage_in_use}},
        always(given_twice, arrivals_differ),
        always(not_given, deadlock),
        always(given_early, stage_in_use),
        {query_given_early, {stage_in_use, stage_not_full, stage_in_use, stage_in_use}},
        always(turn_kept, deadlock),
        always(turn_passed_twice, turn_given_twice),
        always(registers_unfenced, not_fenced),
        always(not_awaited, product_in_flight),
        always(next_line, descriptor_misaligned),
        always(no_leading_offset),
        {nothing_expected, {bytes_differ, stage_not_full, bytes_differ, bytes_differ}},
        always(more_expected, deadlock),
        always(half_expected, bytes_differ),
        always(a_box_too_few, deadlock),
        always(bound_one_short),
        always(bound_one_long),
        always(other_head),
        always(row_early),
        always(stride_of_eight, map_invalid),
        always(fed_by_all, team_diverged),
        always(fed_with_turns, team_diverged),
    };
    expect_named(table, GetParam(), verdict_of);
}
INSTANTIATE_TEST_SUITE_P(Teams, EveryMistake, testing::Range(0, schedules));

TEST(Deadlock, IsPrintedAgentByAgent) {
    const Verdict verdict = verdict_of(Mistake::not_given, Schedule::in_turn);
    for (const char* part :
         {"the feed waits for parity", "team 1", "team 2", "misses 8 of 8 arrivals and 0 bytes", "block b=0"})
        EXPECT_NE(verdict.message.find(part), std::string::npos) << part << " in " << verdict.message;
}

} // namespace
} // namespace fmha::hip_target::test
