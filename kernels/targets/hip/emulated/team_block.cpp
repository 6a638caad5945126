#include "kernels/targets/hip/emulated/team_block.hpp"

#include "kernels/targets/hip/descriptor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace fmha::hip_target {
namespace {

constexpr std::byte poison{0xFF}; // NaN in every storage type

} // namespace

TeamBlock::TeamBlock(int lds_bytes, int agents, int group_threads, Schedule schedule, std::uint64_t seed,
                     int transposing_threads)
    : schedule_(schedule), agents_(agents), group_threads_(group_threads),
      transposing_threads_(transposing_threads), memory_(static_cast<std::size_t>(lds_bytes), poison),
      units_(static_cast<std::size_t>(lds_bytes / unit_bytes)),
      baton_(agents, schedule, seed, {[this] { return !landings_.empty(); }, [this] { land(); }},
             [this](int agent) { return name_of(agent); }) {
    for (int agent = 0; agent < agents; ++agent) clock(agent).at(index(agent)) = 1;
}

std::string TeamBlock::name_of(int agent) const {
    if (transposes(agent)) return "the waves that transpose";
    return agent == 0 ? "the feed" : fmt::format("team {}", agent);
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
    tell(agent, meeting_.arriving);
    const std::uint32_t number = meeting_.number;
    if (++meeting_.present == agents_) {
        meeting_.present = 0;
        meeting_.completed = meeting_.arriving;
        ++meeting_.number;
    }
    baton_.wait_until(
        agent, [this, number] { return meeting_.number != number; },
        [] { return std::string("the other parts of the block to meet"); });
    join(clock(agent), meeting_.completed);
}

void TeamBlock::split_registers(int feed, int team) {
    constexpr int of_multiprocessor = 65536, unit = 8;
    const int groups = transposing_threads_ > 0 ? agents_ - 1 : agents_;
    const int at_entry = of_multiprocessor / (groups * group_threads_) / unit * unit;
    registers_ = {.groups = groups, .at_entry = at_entry, .feed = feed, .team = team};
}

void TeamBlock::release_registers(int agent) {
    if (registers_.feed == 0 || transposes(agent)) return; // it is the feed that has them
    if (registers_.feed > registers_.at_entry)
        fail(Hazard::registers_exceeded, agent,
             fmt::format("{} registers a thread are kept of {}", registers_.feed, registers_.at_entry));
    registers_.free += registers_.at_entry - registers_.feed;
    yield(agent);
}

void TeamBlock::claim_registers(int agent) {
    if (registers_.feed == 0) return;
    const int groups = registers_.groups, all = registers_.feed + (groups - 1) * registers_.team;
    if (all > groups * registers_.at_entry)
        fail(Hazard::registers_exceeded, agent,
             fmt::format("{} registers are claimed, and a block of {} threads has {}", all * group_threads_,
                         groups * group_threads_, groups * group_threads_ * registers_.at_entry));
    const int more = registers_.team - registers_.at_entry;
    baton_.wait_until(
        agent, [this, more] { return registers_.free >= more; },
        [more] { return fmt::format("{} more registers a thread", more); });
    registers_.free -= more;
}

TeamBlock::Barrier& TeamBlock::barrier_at(int address) {
    const auto found = barriers_.find(address);
    if (found == barriers_.end())
        throw EmulationError(Hazard::unknown_operation,
                             fmt::format("there is no barrier at LDS byte {}", address));
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
    end_phase(barrier);
}

void TeamBlock::expect(int agent, int address, int bytes) {
    barrier_at(address).missing_bytes += bytes;
    arrive(agent, address, 1);
}

void TeamBlock::end_phase(Barrier& barrier) {
    if (barrier.missing > 0 || barrier.missing_bytes > 0) return;
    join(barrier.completed, barrier.arriving);
    barrier.missing = barrier.arrivals;
    barrier.arrived = {};
    ++barrier.phase;
}

void TeamBlock::wait(int agent, int address, int parity) {
    Barrier& barrier = barrier_at(address);
    // A parity tells the last phase from the one before, and from no other.
    const std::uint32_t seen = barrier.seen.at(index(agent));
    if (barrier.phase > seen + 1)
        fail(Hazard::phase_lost, agent,
             fmt::format("the barrier at LDS byte {} is in phase {} and was last seen in phase {}", address,
                         barrier.phase, seen));
    baton_.wait_until(
        agent, [&barrier, parity] { return static_cast<int>(barrier.phase & 1U) != parity; },
        [&barrier, address, parity] {
            return fmt::format(
                "parity {} of the barrier at LDS byte {}, which is in phase {} and misses {} of "
                "{} arrivals and {} bytes",
                parity, address, barrier.phase, barrier.missing, barrier.arrivals, barrier.missing_bytes);
        });
    barrier.seen.at(index(agent)) = barrier.phase;
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

void TeamBlock::copy_box(int agent, const TensorMapSpec& map, const BoxCorner& corner, int address,
                         int barrier) {
    constexpr std::string_view operation = "a tensor copy";
    if (address % SwizzledTile::alignment != 0)
        fail(Hazard::misaligned, agent,
             fmt::format("{} goes to LDS byte {}, which is not a multiple of {}", operation, address,
                         SwizzledTile::alignment));
    if (!map.any()) fail(Hazard::map_invalid, agent, "a tensor copy has no map");
    if (const auto problem = cannot_map("the tensor", map))
        fail(Hazard::map_invalid, agent, to_sentence(*problem));
    const std::int64_t element_bytes = element_bits(map.type) / 8;
    std::int64_t lines = 1;
    for (std::size_t i = 1; i < map_rank; ++i) lines *= map.copied(i);
    Landing landing{{}, agent, barrier};
    for (std::int64_t line = 0; line < lines; ++line) {
        // Offsets wrap around, as those of the device do.
        std::uint64_t from = 0;
        bool exists = true;
        std::int64_t rest = line;
        for (std::size_t i = 1; i < map_rank; ++i) {
            const std::int64_t at = corner.at[i] + rest % map.copied(i) * map.steps[i];
            rest /= map.copied(i);
            exists = exists && at >= 0 && at < map.extents[i];
            from += static_cast<std::uint64_t>(at) * static_cast<std::uint64_t>(map.strides[i]);
        }
        for (int unit = 0; unit < SwizzledTile::line_bytes / unit_bytes; ++unit) {
            const int to = SwizzledTile::swizzled(
                address + static_cast<int>(line) * SwizzledTile::line_bytes + unit * unit_bytes);
            const std::int64_t number = unit_at(agent, to, operation);
            check_write(agent, number, operation);
            Copy copy{number, {}};
            for (std::int64_t byte = 0; byte < unit_bytes; byte += element_bytes) {
                const std::int64_t channel = corner.at[0] + (unit * unit_bytes + byte) / element_bytes;
                if (!exists || channel < 0 || channel >= map.extents[0]) continue;
                const auto place = reinterpret_cast<std::uintptr_t>(map.base) + from +
                                   static_cast<std::uint64_t>(channel * element_bytes);
                // NOLINTNEXTLINE(performance-no-int-to-ptr): the sum wraps around, which a pointer's may not
                std::memcpy(copy.data.data() + byte, reinterpret_cast<const void*>(place),
                            static_cast<std::size_t>(element_bytes));
            }
            landing.copies.push_back(copy);
            std::memset(memory_.data() + number * unit_bytes, std::to_integer<int>(poison), unit_bytes);
            units_.at(static_cast<std::size_t>(number)).state = State::in_flight;
        }
    }
    landings_.push_back(std::move(landing));
    yield(agent);
}

void TeamBlock::land() {
    const Landing landing = std::move(landings_.front());
    landings_.pop_front();
    Barrier& barrier = barrier_at(landing.barrier);
    const auto bytes = static_cast<std::int64_t>(landing.copies.size()) * unit_bytes;
    if (bytes > barrier.missing_bytes)
        fail(Hazard::bytes_differ, landing.agent,
             fmt::format("a copy brings {} bytes to the barrier at LDS byte {}, which expects {}", bytes,
                         landing.barrier, barrier.missing_bytes));
    for (const Copy& copy : landing.copies) {
        std::memcpy(memory_.data() + copy.unit * unit_bytes, copy.data.data(), unit_bytes);
        Unit& unit = units_.at(static_cast<std::size_t>(copy.unit));
        unit.state = State::written;
        unit.writer = static_cast<std::int8_t>(landing.agent);
        unit.written = unit.published = clock(landing.agent).at(index(landing.agent));
    }
    tell(landing.agent, barrier.arriving);
    barrier.missing_bytes -= bytes;
    end_phase(barrier);
}

void TeamBlock::check_known(int agent, const Unit& unit, std::int64_t address,
                            std::string_view reader) const {
    if (unit.state == State::unwritten)
        fail(Hazard::unwritten_read, agent,
             fmt::format("{} reads LDS byte {}, which was never written", reader, address));
    if (unit.state == State::in_flight || unit.written > clocks_.at(index(agent)).at(index(unit.writer)))
        fail(Hazard::stage_not_full, agent,
             fmt::format("{} reads LDS byte {}, and has not waited for it to be filled", reader, address));
}

void TeamBlock::read(int agent, std::int64_t address, void* to) {
    constexpr std::string_view reader = "a thread";
    const std::int64_t number = unit_at(agent, address, reader);
    Unit& unit = units_.at(static_cast<std::size_t>(number));
    check_known(agent, unit, address, reader);
    unit.read.at(index(agent)) = clock(agent).at(index(agent));
    std::memcpy(to, memory_.data() + number * unit_bytes, unit_bytes);
}

void TeamBlock::write(int agent, std::int64_t address, const void* from) {
    constexpr std::string_view writer = "a write";
    const std::int64_t number = unit_at(agent, address, writer);
    check_write(agent, number, writer);
    Unit& unit = units_.at(static_cast<std::size_t>(number));
    unit.state = State::written;
    unit.writer = static_cast<std::int8_t>(agent);
    unit.written = clock(agent).at(index(agent));
    unit.published = 0;
    unpublished_.at(index(agent)).push_back(number);
    std::memcpy(memory_.data() + number * unit_bytes, from, unit_bytes);
}

void TeamBlock::publish(int agent) {
    for (const std::int64_t number : unpublished_.at(index(agent)))
        units_.at(static_cast<std::size_t>(number)).published = clock(agent).at(index(agent));
    unpublished_.at(index(agent)).clear();
}

void TeamBlock::begin_read(int agent, std::int64_t number) {
    constexpr std::string_view reader = "a product";
    const auto at = number * unit_bytes;
    (void)unit_at(agent, at, reader);
    Unit& unit = units_.at(static_cast<std::size_t>(number));
    check_known(agent, unit, at, reader);
    if (unit.published == 0 || unit.published > clock(agent).at(index(unit.writer)))
        fail(Hazard::not_published, agent,
             fmt::format("{} reads LDS byte {}, which {} wrote and did not publish before they arrived",
                         reader, at, name_of(unit.writer)));
    ++unit.reading.at(index(agent));
}

void TeamBlock::end_read(int agent, std::int64_t number) {
    Unit& unit = units_.at(static_cast<std::size_t>(number));
    --unit.reading.at(index(agent));
    unit.read.at(index(agent)) = clock(agent).at(index(agent));
}

void TeamBlock::fail(Hazard hazard, int agent, const std::string& sentence) const {
    throw EmulationError(hazard, fmt::format("in {}, {}", name_of(agent), sentence));
}

} // namespace fmha::hip_target
