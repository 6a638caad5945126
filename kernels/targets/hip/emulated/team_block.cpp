#include "kernels/targets/hip/emulated/team_block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace fmha::hip_target {
namespace {

constexpr std::byte poison{0xFF}; // NaN in every storage type

std::string name_of(int agent) {
    return agent == 0 ? "the feed" : fmt::format("team {}", agent);
}

} // namespace

TeamBlock::TeamBlock(int lds_bytes, int agents, int group_threads, Schedule schedule, std::uint64_t seed)
    : schedule_(schedule), agents_(agents), group_threads_(group_threads),
      memory_(static_cast<std::size_t>(lds_bytes), poison),
      units_(static_cast<std::size_t>(lds_bytes / unit_bytes)),
      baton_(agents, schedule, seed, {[this] { return !landings_.empty(); }, [this] { land(); }}) {
    for (int agent = 0; agent < agents; ++agent) clock(agent).at(index(agent)) = 1;
}

void TeamBlock::join(Clock& to, const Clock& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to.at(i) = std::max(to.at(i), from.at(i));
}

void TeamBlock::tell(int agent, Clock& to) {
    join(to, clock(agent));
    ++clock(agent).at(index(agent));
}

void TeamBlock::init_barrier(int address, int arrivals) {
    barriers_[address] = {.arrivals = arrivals, .missing = arrivals};
}

void TeamBlock::meet(int agent) {
    tell(agent, meeting_);
    ++met_;
    baton_.wait_until(
        agent, [this] { return met_ == agents_; },
        [] { return std::string("the other parts of the block to begin"); });
    join(clock(agent), meeting_);
}

TeamBlock::Barrier& TeamBlock::barrier_at(int address) {
    const auto found = barriers_.find(address);
    if (found == barriers_.end())
        throw EmulationError(Hazard::unknown_operation,
                             fmt::format("unknown_operation: there is no barrier at LDS byte {}", address));
    return found->second;
}

void TeamBlock::arrive(int agent, int address, int arrivals) {
    Barrier& barrier = barrier_at(address);
    if (arrivals > barrier.missing)
        fail(Hazard::arrivals_differ, agent,
             fmt::format(
                 "{} arrivals come to the barrier at LDS byte {} in phase {}, which waits for {} of {}",
                 arrivals, address, barrier.phase, barrier.missing, barrier.arrivals));
    if (std::exchange(barrier.arrived.at(index(agent)), true))
        fail(Hazard::arrivals_differ, agent,
             fmt::format("arrivals come to the barrier at LDS byte {} for the second time in phase {}",
                         address, barrier.phase));
    tell(agent, barrier.arriving);
    barrier.missing -= arrivals;
    if (barrier.missing > 0) return;
    join(barrier.completed, barrier.arriving);
    barrier.missing = barrier.arrivals;
    barrier.arrived = {};
    ++barrier.phase;
}

void TeamBlock::wait(int agent, int address, int parity) {
    Barrier& barrier = barrier_at(address);
    baton_.wait_until(
        agent, [&barrier, parity] { return static_cast<int>(barrier.phase & 1U) != parity; },
        [&barrier, address, parity] {
            return fmt::format(
                "parity {} of the barrier at LDS byte {}, which is in phase {} and misses {} of "
                "{} arrivals",
                parity, address, barrier.phase, barrier.missing, barrier.arrivals);
        });
    join(clock(agent), barrier.completed);
}

void TeamBlock::turn(int agent, int team) {
    Turn& turn = turns_.at(index(team));
    baton_.wait_until(
        agent, [&turn] { return turn.given > 0; },
        [team] { return fmt::format("the turn of team {}", team); });
    --turn.given;
    join(clock(agent), turn.clock);
}

void TeamBlock::pass(int agent, int team) {
    Turn& turn = turns_.at(index(team));
    if (turn.given > 0)
        fail(Hazard::turn_given_twice, agent, fmt::format("team {} has not used its last turn", team));
    ++turn.given;
    tell(agent, turn.clock);
    yield(agent);
}

std::int64_t TeamBlock::unit_at(int agent, std::int64_t address, std::string_view operation) const {
    if (address % unit_bytes != 0)
        fail(Hazard::misaligned, agent,
             fmt::format("{} at LDS byte {}, which is not a multiple of {}", operation, address, unit_bytes));
    if (address < 0 || address / unit_bytes >= static_cast<std::int64_t>(units_.size()))
        fail(Hazard::out_of_range, agent,
             fmt::format("{} at LDS byte {}, the block has {}", operation, address, memory_.size()));
    return address / unit_bytes;
}

void TeamBlock::check_write(int agent, std::int64_t number, std::string_view operation) {
    const Unit& unit = units_.at(static_cast<std::size_t>(number));
    const auto at = number * unit_bytes;
    if (unit.state == State::in_flight)
        fail(Hazard::copy_overwritten, agent,
             fmt::format("{} meets LDS byte {}, to which a copy is under way", operation, at));
    for (int other = 0; other < agents_; ++other) {
        if (unit.reading.at(index(other)) > 0)
            fail(Hazard::product_in_flight, agent,
                 fmt::format("{} meets LDS byte {}, which a product of {} reads", operation, at,
                             name_of(other)));
        if (other != agent && unit.read.at(index(other)) > clock(agent).at(index(other)))
            fail(Hazard::stage_in_use, agent,
                 fmt::format("{} meets LDS byte {}, which {} read and has not given back", operation, at,
                             name_of(other)));
    }
    if (unit.state == State::written && unit.writer != agent &&
        unit.written > clock(agent).at(index(unit.writer)))
        fail(Hazard::write_after_write, agent,
             fmt::format("{} meets LDS byte {}, which {} wrote", operation, at, name_of(unit.writer)));
}

void TeamBlock::copy_async(int agent, std::int64_t address, const void* from, int valid) {
    const std::int64_t number = unit_at(agent, address, "copy_async");
    if (valid < 0 || valid > unit_bytes)
        fail(Hazard::out_of_range, agent,
             fmt::format("copy_async copies {} bytes; allowed: 0 to {}", valid, unit_bytes));
    if (valid > 0 && reinterpret_cast<std::uintptr_t>(from) % unit_bytes != 0)
        fail(Hazard::misaligned, agent, "copy_async reads global memory that is not aligned to 16 bytes");
    check_write(agent, number, "copy_async");
    Copy copy{number, {}};
    if (valid > 0) std::memcpy(copy.data.data(), from, static_cast<std::size_t>(valid));
    std::memset(memory_.data() + number * unit_bytes, std::to_integer<int>(poison), unit_bytes);
    units_.at(static_cast<std::size_t>(number)).state = State::in_flight;
    open_.push_back(copy);
}

void TeamBlock::arrive_copied(int agent, int address, int arrivals) {
    landings_.push_back({std::move(open_), agent, address, arrivals});
    open_.clear();
    yield(agent);
}

void TeamBlock::await_copies(int agent) {
    baton_.wait_until(
        agent, [this] { return landings_.empty(); }, [] { return std::string("its copies"); });
}

void TeamBlock::land() {
    const Landing landing = std::move(landings_.front());
    landings_.pop_front();
    for (const Copy& copy : landing.copies) {
        std::memcpy(memory_.data() + copy.unit * unit_bytes, copy.data.data(), unit_bytes);
        Unit& unit = units_.at(static_cast<std::size_t>(copy.unit));
        unit.state = State::written;
        unit.writer = static_cast<std::int8_t>(landing.agent);
        unit.written = clock(landing.agent).at(index(landing.agent));
    }
    arrive(landing.agent, landing.barrier, landing.arrivals);
}

void TeamBlock::write(int agent, std::int64_t address, const void* from) {
    const std::int64_t number = unit_at(agent, address, "lds_write");
    check_write(agent, number, "lds_write");
    std::memcpy(memory_.data() + number * unit_bytes, from, unit_bytes);
    Unit& unit = units_.at(static_cast<std::size_t>(number));
    unit.state = State::written;
    unit.writer = static_cast<std::int8_t>(agent);
    unit.written = clock(agent).at(index(agent));
}

void TeamBlock::begin_read(int agent, std::int64_t number) {
    const auto at = number * unit_bytes;
    (void)unit_at(agent, at, "a product");
    Unit& unit = units_.at(static_cast<std::size_t>(number));
    if (unit.state == State::unwritten)
        fail(Hazard::unwritten_read, agent,
             fmt::format("a product reads LDS byte {}, which was never written", at));
    const std::size_t writer = index(unit.writer);
    if (unit.state == State::in_flight || unit.written > clock(agent).at(writer))
        fail(Hazard::stage_not_full, agent,
             fmt::format("a product reads LDS byte {}, and has not waited for it to be filled", at));
    if (unit.written > published_.at(index(agent)).at(writer))
        fail(Hazard::not_published, agent,
             fmt::format("a product reads LDS byte {} without a fence since the wait for it", at));
    ++unit.reading.at(index(agent));
}

void TeamBlock::end_read(int agent, std::int64_t number) {
    Unit& unit = units_.at(static_cast<std::size_t>(number));
    --unit.reading.at(index(agent));
    unit.read.at(index(agent)) = clock(agent).at(index(agent));
}

void TeamBlock::fail(Hazard hazard, int agent, const std::string& sentence) {
    throw EmulationError(hazard, fmt::format("{}: in {}, {}", to_string(hazard), name_of(agent), sentence));
}

} // namespace fmha::hip_target
