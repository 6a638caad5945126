#include "kernels/targets/hip/emulated/team_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace fmha::hip_target {
namespace {

constexpr int rows = 64, words_a = 4, eight = 8;
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

/// The sum of D and products of 8 bits: all are aligned to the largest, keep 13 bits behind its first one and lose the
/// others, and so does the result. No public document says so; measurements of H100 do (tolerances B.1, u_a = 2^-13).
class ShortSum {
  public:
    void add(double term) {
        terms_.push_back(term);
        largest_ = std::max(largest_, std::abs(term));
    }
    double result() const {
        if (!(largest_ > 0.0) || !std::isfinite(largest_)) return plain();
        double sum = 0.0;
        for (const double term : terms_) sum += cut(term, largest_);
        return sum == 0.0 || !std::isfinite(sum) ? plain() : cut(sum, sum);
    }

  private:
    static constexpr int bits = 13;
    std::vector<double> terms_;
    double largest_ = 0.0;

    static double cut(double x, double by) {
        const double unit = std::ldexp(1.0, std::ilogb(by) - bits);
        return std::trunc(x / unit) * unit;
    }
    double plain() const {
        double sum = 0.0;
        for (const double term : terms_) sum += term;
        return sum;
    }
};

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

void EmulatedTeamMachine::begin_reads(Instruction& instruction, int columns) {
    std::set<std::int64_t> units;
    const auto reads = [&](const Operand& operand, int lines) {
        if (operand.at.swizzle() != 1)
            fail(Hazard::unknown_operation, "a descriptor does not ask for the swizzle of 128 bytes");
        check_descriptor(operand.at.address());
        for (int line = 0; line < lines; ++line)
            for (int k = 0; k < group_depth(instruction.type); ++k)
                units.insert(address_of(operand, line, k, instruction.type) / TeamBlock::unit_bytes);
    };
    if (!instruction.a_in_registers) reads(instruction.a, rows);
    reads(instruction.b, columns);
    for (const std::int64_t unit : units) block_.begin_read(agent_, unit);
    instruction.units.assign(units.begin(), units.end());
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

float EmulatedTeamMachine::element(const Operand& operand, int line, int k, ElementType type) const {
    const int address = address_of(operand, line, k, type);
    std::uint16_t bits = 0;
    std::memcpy(&bits, block_.unit(address / TeamBlock::unit_bytes) + address % TeamBlock::unit_bytes,
                static_cast<std::size_t>(element_bits(type) / 8));
    return unpack(bits, type);
}

std::vector<float> EmulatedTeamMachine::left_of(const Instruction& instruction) const {
    const ElementType type = instruction.type;
    const int depth = group_depth(type), bits = element_bits(type), of_word = 32 / bits;
    std::vector<float> a(place_in(rows, depth, 0));
    const auto at = [&](int row, int k) -> float& { return a[place_in(row, depth, k)]; };
    if (!instruction.a_in_registers) {
        for (int row = 0; row < rows; ++row)
            for (int k = 0; k < depth; ++k) at(row, k) = element(instruction.a, row, k, type);
        return a;
    }
    for (int thread = 0; thread < group_threads; ++thread)
        for (int w = 0; w < words_a; ++w) {
            const std::uint32_t word = instruction.a_words[place_in(thread, words_a, w)];
            const int k = of_word * (thread % 4 + 4 * (w / 2));
            for (int i = 0; i < of_word; ++i)
                at(row_of(thread, 2 * w), k + i) = unpack(word >> static_cast<unsigned>(i * bits) &
                                                              ((1U << static_cast<unsigned>(bits)) - 1U),
                                                          type);
        }
    return a;
}

std::vector<float> EmulatedTeamMachine::right_of(const Instruction& instruction, int columns) const {
    const int depth = group_depth(instruction.type);
    std::vector<float> b;
    for (int column = 0; column < columns; ++column)
        for (int k = 0; k < depth; ++k) b.push_back(element(instruction.b, column, k, instruction.type));
    return b;
}

void EmulatedTeamMachine::compute(Product& product) const {
    const int count = product.d->count(), columns = 2 * count;
    for (const Instruction& instruction : product.instructions) {
        const int depth = group_depth(instruction.type);
        const bool short_sums = element_bits(instruction.type) == 8;
        const std::vector<float> a = left_of(instruction), b = right_of(instruction, columns);
        for (int thread = 0; thread < group_threads; ++thread)
            for (int r = 0; r < count; ++r) {
                const int place = place_of(r, count, short_sums && !instruction.a_in_registers);
                float& value = product.values[place_in(thread, count, place)];
                const float* left = a.data() + static_cast<std::ptrdiff_t>(row_of(thread, r)) * depth;
                const float* right = b.data() + static_cast<std::ptrdiff_t>(column_of(thread, r)) * depth;
                const double before = instruction.accumulate ? value : 0.0;
                if (short_sums) {
                    ShortSum sum;
                    sum.add(before);
                    for (int k = 0; k < depth; ++k) sum.add(double{left[k]} * double{right[k]});
                    value = static_cast<float>(sum.result());
                } else {
                    double sum = before;
                    for (int k = 0; k < depth; ++k) sum += double{left[k]} * double{right[k]};
                    value = static_cast<float>(sum);
                }
            }
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
    throw EmulationError(hazard,
                         fmt::format("{}: in {}, {}", to_string(hazard), block_.name_of(agent_), sentence));
}

} // namespace fmha::hip_target
