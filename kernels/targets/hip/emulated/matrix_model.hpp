#pragma once

#include "kernels/targets/hip/instruction_names.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fmha::hip_target {

/// Where the registers of one wave lie: register r of lane l at base[l · stride + r].
template <class T>
struct WaveRegisters {
    T* base = nullptr;
    std::ptrdiff_t stride = 0;

    T& at(int lane, int r) const { return base[lane * stride + r]; }
};

/// One matrix instruction, from its row of the table and nothing else: operands are gathered from the lanes by
/// the lane maps and decoded, C is gathered, and every element of the product is rounded once.
class MatrixModel {
  public:
    /// `unit` decides the flavour of 8-bit codes (FNUZ on CDNA 3) and whether fp32 operands are TF32.
    MatrixModel(const InstructionInfo& row, MatrixUnit unit);

    const InstructionInfo& row() const { return row_; }

    /// C += A·B for one wave. Products are exact, their sum and C are added in binary64 and rounded to fp32. A scaled
    /// instruction finds the scales of an operand in the register behind its words.
    /// Throws EmulationError when lanes that hold copies of an operand element disagree.
    void multiply(WaveRegisters<float> c, WaveRegisters<const std::uint32_t> a,
                  WaveRegisters<const std::uint32_t> b) const;

  private:
    /// No matrix of an instruction has more elements.
    static constexpr std::size_t most_elements = 2048;
    using Matrix = std::array<double, most_elements>;
    using Codes = std::array<std::uint32_t, most_elements>;
    /// For every (lane, element number): which element of the matrix it holds and, of operands with copies, which one is the
    /// first to hold the same element.
    struct Places {
        std::vector<std::int32_t> held, first_holder;
    };

    /// Which register holds the scales of an operand of `elements` elements.
    int scale_register(int elements) const { return elements * element_bits(operand_) / 32; }
    /// 2^scale of every (row or column, block), in `blocks` values a row.
    std::vector<double> scales(WaveRegisters<const std::uint32_t> registers, const ScaleMap& map,
                               int elements, int outer) const;
    Places places(const Axis& major, const Axis& minor, int elements, int majors, int minors) const;
    /// matrix[place] = decoded element, for every element of every lane.
    void gather(Matrix& matrix, WaveRegisters<const std::uint32_t> registers, const Places& places,
                int elements, char operand) const;
    template <unsigned bits>
    void unpack(Codes& codes, WaveRegisters<const std::uint32_t> registers, int elements) const;
    void check_copies(const Codes& codes, const Places& places, int elements, char operand) const;
    template <std::size_t columns>
    void add_products_of(Matrix& sum, const Matrix& left, const Matrix& right) const;

    InstructionInfo row_;
    MatrixUnit unit_;
    ElementType operand_;
    Places a_, b_, c_;
    const std::vector<float>* values_ = nullptr; ///< of every code of an operand of at most 16 bits
};

} // namespace fmha::hip_target
