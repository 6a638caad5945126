#include "kernels/targets/hip/emulated/team_machine.hpp"

#include "kernels/targets/hip/emulated/code_values.hpp"
#include "kernels/targets/hip/emulated/group_model.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace fmha::hip_target {
namespace {

constexpr int rows = GroupModel::rows, words_a = 4, eight = 8;
/// A NaN that no arithmetic makes.
constexpr std::uint32_t poison = 0x7FC0DEADU;

/// Where the instruction's register r of a thread lies in D.
int row_of(int thread, int r) {
    return 16 * (thread / 32) + thread % 32 / 4 + eight * (r / 2 % 2);
}
int column_of(int thread, int r) {
    return eight * (r / 4) + 2 * (thread % 4) + r % 2;
}

/// Which of a thread's registers that is, for a right operand of this kind.
int place_of(int r, int count, bool interleaved) {
    return interleaved ? interleaved_register(r, count) : r;
}

/// Where element `at` of a line lies, of lines one behind the other.
std::size_t place_in(int line, int length, int at) {
    return static_cast<std::size_t>(line) * static_cast<std::size_t>(length) + static_cast<std::size_t>(at);
}

} // namespace

EmulatedTeamMachine::EmulatedTeamMachine(TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent)
    : EmulatedMachine({unit, block.threads_of(agent), wave_threads, 16, false}), block_(block), maps_(maps),
      agent_(agent) {}

EmulatedMachine::MatrixLines::value_type
EmulatedTeamMachine::line_of(const EmulatedRegisters<std::uint32_t>& in, int r0, int first, int lane) {
    constexpr int lanes_of_line = 4;
    MatrixLines::value_type line{};
    for (int from = 0; from < lanes_of_line; ++from) {
        const std::uint32_t word =
            in.at(first + lane % matrix_side * lanes_of_line + from, r0 + lane / matrix_side);
        line[2 * static_cast<std::size_t>(from)] = static_cast<std::uint16_t>(word);
        line[2 * static_cast<std::size_t>(from) + 1] = static_cast<std::uint16_t>(word >> 16U);
    }
    return line;
}

void EmulatedTeamMachine::check_together(const char* at) const {
    if (alone_)
        fail(Hazard::team_diverged,
             fmt::format("one thread comes to {}, where all {} of its group meet", at, threads()));
}

void EmulatedTeamMachine::check_alone(const char* what) const {
    if (!alone_) fail(Hazard::team_diverged, fmt::format("{} by each of {} threads", what, threads()));
}

void EmulatedTeamMachine::check_descriptor(int address) const {
    if (address % TeamBlock::unit_bytes != 0 || address % SwizzledTile::alignment >= SwizzledTile::line_bytes)
        fail(Hazard::descriptor_misaligned,
             fmt::format("an operand begins at LDS byte {}, which is in no first line of {} bytes", address,
                         SwizzledTile::alignment));
}

void EmulatedTeamMachine::check_fenced(const void* registers, const char* operand) const {
    if (!fenced_.contains(registers))
        fail(Hazard::not_fenced,
             fmt::format("a product takes the registers of {} without a fence since the last product",
                         operand));
}

EmulatedTeamMachine::Product& EmulatedTeamMachine::open_product(EmulatedRegisters<float>& d) {
    check_fenced(&d, "D");
    for (Product& product : open_)
        if (product.d == &d) return product;
    for (const auto& group : groups_)
        for (const Product& product : group)
            if (product.d == &d)
                fail(Hazard::product_in_flight, "a product takes registers that another one still has");
    Product& product = open_.emplace_back();
    product.d = &d;
    product.values.reserve(place_in(group_threads, d.count(), 0));
    for (int thread = 0; thread < group_threads; ++thread)
        for (int r = 0; r < d.count(); ++r) {
            product.values.push_back(d.at(thread, r));
            d.at(thread, r) = std::bit_cast<float>(poison);
        }
    return product;
}

int EmulatedTeamMachine::address_of(const Operand& operand, int line, int k, ElementType type) {
    const MatrixDescriptor at = operand.at;
    const int bytes = element_bits(type) / 8, block = SwizzledTile::block_elements(type);
    const int plain =
        operand.lines_are_depth
            ? at.address() + line / block * at.leading() + k / eight * at.stride() +
                  k % eight * SwizzledTile::line_bytes + line % block * bytes
            : at.address() + line / eight * at.stride() + line % eight * SwizzledTile::line_bytes + k * bytes;
    return SwizzledTile::swizzled(plain);
}

template <class Visit>
void EmulatedTeamMachine::each_unit(const Operand& operand, int lines, ElementType type, Visit visit) {
    // A unit begins at a multiple of its bytes, and the swizzle moves it as a whole.
    const int of_unit = TeamBlock::unit_bytes * 8 / element_bits(type);
    const int along_lines = operand.lines_are_depth ? of_unit : 1,
              along_depth = operand.lines_are_depth ? 1 : of_unit;
    for (int line = 0; line < lines; line += along_lines)
        for (int k = 0; k < group_depth(type); k += along_depth)
            visit(address_of(operand, line, k, type) / TeamBlock::unit_bytes, line, k);
}

void EmulatedTeamMachine::begin_reads(Instruction& instruction, int columns) {
    std::vector<bool> read;
    const auto reads = [&](const Operand& operand, int lines) {
        if (operand.at.swizzle() != 1)
            fail(Hazard::unknown_operation, "a descriptor does not ask for the swizzle of 128 bytes");
        check_descriptor(operand.at.address());
        each_unit(operand, lines, instruction.type, [&](int unit, int, int) {
            const auto at = static_cast<std::size_t>(unit);
            if (at >= read.size()) read.resize(at + 1);
            read[at] = true;
        });
    };
    if (!instruction.a_in_registers) reads(instruction.a, rows);
    reads(instruction.b, columns);
    for (std::size_t unit = 0; unit < read.size(); ++unit) {
        if (!read[unit]) continue;
        instruction.units.push_back(static_cast<std::int64_t>(unit));
        block_.begin_read(agent_, instruction.units.back());
    }
}

void EmulatedTeamMachine::multiply_lds(ElementType type, EmulatedRegisters<float>& d, MatrixDescriptor a,
                                       MatrixDescriptor b, bool accumulate) {
    Product& product = open_product(d);
    Instruction instruction{
        .type = type, .accumulate = accumulate, .a = {a}, .b = {b}, .a_words = {}, .units = {}};
    begin_reads(instruction, 2 * d.count());
    product.instructions.push_back(std::move(instruction));
}

void EmulatedTeamMachine::multiply_registers(ElementType type, EmulatedRegisters<float>& d,
                                             const EmulatedRegisters<std::uint32_t>& a, int a0,
                                             MatrixDescriptor b, bool accumulate) {
    check_fenced(&a, "A");
    Product& product = open_product(d);
    if (product.a == nullptr) {
        product.a = &a;
        product.a_before.reserve(place_in(group_threads, a.count(), 0));
        for (int thread = 0; thread < group_threads; ++thread)
            for (int r = 0; r < a.count(); ++r) product.a_before.push_back(a.at(thread, r));
    }
    const bool lines_are_depth = element_bits(type) == 16; // those of 8 bits take lines of depth alone
    Instruction instruction{.type = type,
                            .accumulate = accumulate,
                            .a_in_registers = true,
                            .a = {},
                            .b = {b, lines_are_depth},
                            .a_words = {},
                            .units = {}};
    instruction.a_words.reserve(place_in(group_threads, words_a, 0));
    for (int thread = 0; thread < group_threads; ++thread)
        for (int w = 0; w < words_a; ++w) instruction.a_words.push_back(a.at(thread, a0 + w));
    begin_reads(instruction, 2 * d.count());
    product.instructions.push_back(std::move(instruction));
}

void EmulatedTeamMachine::commit_products(EmulatedRegisters<float>&) {
    check_together("a product");
    if (block_.products_at_start())
        for (Product& product : open_) compute(product);
    groups_.push_back(std::move(open_));
    open_.clear();
    fenced_.clear();
    block_.yield(agent_);
}

void EmulatedTeamMachine::wait_products(int under_way, EmulatedRegisters<float>& d) {
    block_.yield(agent_);
    while (static_cast<int>(groups_.size()) > under_way) {
        for (Product& product : groups_.front()) finish(product);
        groups_.pop_front();
    }
    for (const auto& group : groups_)
        for (const Product& product : group)
            if (product.d == &d)
                fail(Hazard::product_in_flight, "a product that is waited for is still under way");
}

template <class Put>
void EmulatedTeamMachine::read_operand(const Operand& operand, int lines, ElementType type, Put put) const {
    const std::vector<float>& values = code_values(type);
    const int bytes = element_bits(type) / 8;
    each_unit(operand, lines, type, [&](int unit, int line, int k) {
        for (int at = 0; at < TeamBlock::unit_bytes; at += bytes) {
            std::uint16_t code = 0;
            std::memcpy(&code, block_.unit(unit) + at, static_cast<std::size_t>(bytes));
            put(line, k, static_cast<double>(values[code]));
            ++(operand.lines_are_depth ? line : k);
        }
    });
}

void EmulatedTeamMachine::read_left(GroupModel& model, const Instruction& instruction) const {
    const ElementType type = instruction.type;
    if (!instruction.a_in_registers) {
        read_operand(instruction.a, rows, type, [&](int row, int k, double x) { model.a(row, k) = x; });
        return;
    }
    const std::vector<float>& values = code_values(type);
    const int bits = element_bits(type), of_word = 32 / bits;
    const std::uint32_t mask = (1U << static_cast<unsigned>(bits)) - 1U;
    for (int thread = 0; thread < group_threads; ++thread)
        for (int w = 0; w < words_a; ++w) {
            const std::uint32_t word = instruction.a_words[place_in(thread, words_a, w)];
            const int k = of_word * (thread % 4 + 4 * (w / 2));
            for (int i = 0; i < of_word; ++i)
                model.a(row_of(thread, 2 * w), k + i) =
                    static_cast<double>(values[word >> static_cast<unsigned>(i * bits) & mask]);
        }
}

void EmulatedTeamMachine::compute(Product& product) const {
    const int count = product.d->count(), columns = 2 * count;
    std::vector<float> d(place_in(rows, columns, 0));
    for (const Instruction& instruction : product.instructions) {
        const bool interleaved = element_bits(instruction.type) == 8 && !instruction.a_in_registers;
        const auto each_element = [&](auto visit) {
            for (int thread = 0; thread < group_threads; ++thread)
                for (int r = 0; r < count; ++r)
                    visit(d[place_in(row_of(thread, r), columns, column_of(thread, r))],
                          product.values[place_in(thread, count, place_of(r, count, interleaved))]);
        };
        GroupModel model(instruction.type, columns);
        read_left(model, instruction);
        read_operand(instruction.b, columns, instruction.type,
                     [&](int column, int k, double x) { model.b(k, column) = x; });
        each_element([](float& element, float value) { element = value; });
        model.multiply(d, instruction.accumulate);
        each_element([](float element, float& value) { value = element; });
    }
    product.done = true;
}

void EmulatedTeamMachine::finish(Product& product) {
    if (!product.done) compute(product);
    const int count = product.d->count();
    for (int thread = 0; thread < group_threads; ++thread)
        for (int r = 0; r < count; ++r) {
            if (std::bit_cast<std::uint32_t>(product.d->at(thread, r)) != poison)
                fail(Hazard::product_in_flight,
                     "registers of D were written before the product was finished");
            product.d->at(thread, r) = product.values[place_in(thread, count, r)];
        }
    if (product.a != nullptr)
        for (int thread = 0; thread < group_threads; ++thread)
            for (int r = 0; r < product.a->count(); ++r)
                if (product.a->at(thread, r) != product.a_before[place_in(thread, product.a->count(), r)])
                    fail(Hazard::product_in_flight,
                         "registers of A were written before the product was finished");
    for (const Instruction& instruction : product.instructions)
        for (const std::int64_t unit : instruction.units) block_.end_read(agent_, unit);
}

void EmulatedTeamMachine::fail(Hazard hazard, const std::string& sentence) const {
    throw EmulationError(hazard, fmt::format("in {}, {}", block_.name_of(agent_), sentence));
}

} // namespace fmha::hip_target
