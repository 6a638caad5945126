#pragma once

#include "kernels/targets/hip/emulated/emulation_error.hpp"
#include "kernels/targets/hip/emulated/lds.hpp"
#include "kernels/targets/hip/emulated/matrix_model.hpp"
#include "kernels/targets/hip/emulated/registers.hpp"
#include "kernels/targets/hip/transposing_read.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace fmha::hip_target {

/// The parts of a block of an emulated machine.
struct MachineShape {
    MatrixUnit unit = MatrixUnit::none;
    int threads = 0, wave_size = 0;
    int lds_bytes = 0;
    /// Between two collective operations threads run in the order of their numbers, or from the last to the first. Nothing
    /// may depend on it: a result that does is a race in global memory.
    bool last_thread_first = false;
};

/// A whole block of threads on the host, which advance together from one collective operation to the next. The
/// contracts are those of kernels/targets/hip/README.md; a breach throws EmulationError.
class EmulatedMachine {
  public:
    static constexpr bool has_tile_copies = true, has_step_copies = true;
    static constexpr bool has_load_matrix = true, has_transposing_read = true;
    static constexpr bool adds_pairs = true, adds_products = true, begins_products = true,
                          ends_buffers = true, reads_rows_by_offset = true, packs_quotients = true,
                          pairs_columns = true;

    template <class T, int = 0>
    using Registers = EmulatedRegisters<T>;

    /// Throws EmulationError when the threads are not whole waves.
    explicit EmulatedMachine(const MachineShape& shape);

    int threads() const { return shape_.threads; }
    int wave_size() const { return shape_.wave_size; }
    const Lds& lds() const { return lds_; }

    /// Makes the machine ready for the next block.
    void begin() {
        lds_.begin();
        for (auto& copies : copies_) copies.clear();
    }

    template <class F>
    void each(F&& f) const {
        if (shape_.last_thread_first)
            for (int thread = shape_.threads - 1; thread >= 0; --thread) f(thread);
        else
            for (int thread = 0; thread < shape_.threads; ++thread) f(thread);
    }

    void mma(MatrixInstruction instruction, EmulatedRegisters<float>& c, int c0,
             const EmulatedRegisters<std::uint32_t>& a, int a0, const EmulatedRegisters<std::uint32_t>& b,
             int b0, bool begins = false) {
        if (begins) check_zeros(instruction, c, c0);
        multiply(model(instruction), c, c0, a, a0, b, b0);
    }

    /// `out` and `in` may be the same registers.
    template <class T>
    void exchange(EmulatedRegisters<T>& out, const EmulatedRegisters<T>& in, int lane_mask) const {
        check_exchange(lane_mask, out.count(), in.count());
        // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): writing `out` may change `in`
        const EmulatedRegisters<T> before = in;
        for (int thread = 0; thread < shape_.threads; ++thread)
            for (int r = 0; r < in.count(); ++r) out.at(thread, r) = before.at(thread ^ lane_mask, r);
    }

    template <class T, class F>
    void fold(EmulatedRegisters<T>& x, int lane_mask, F f) const {
        check_exchange(lane_mask, x.count(), x.count());
        const EmulatedRegisters<T> before = x;
        for (int thread = 0; thread < shape_.threads; ++thread)
            for (int r = 0; r < x.count(); ++r)
                x.at(thread, r) = f(before.at(thread, r), before.at(thread ^ lane_mask, r));
    }

    void trade(EmulatedRegisters<std::uint32_t>& x, int low, int high, int lane_mask) const {
        check_exchange(lane_mask, x.count(), x.count());
        for (int thread = 0; thread < shape_.threads; ++thread)
            if ((thread & lane_mask) == 0) std::swap(x.at(thread, high), x.at(thread ^ lane_mask, low));
    }

    template <int N>
    void lds_write(int thread, std::int64_t address, const std::uint32_t* words) {
        static_assert(N == 1 || N == 2 || N == 4);
        lds_.write(thread, address, words, 4 * N, "lds_write");
    }
    template <int N>
    void lds_read(int thread, std::int64_t address, std::uint32_t* words) {
        static_assert(N == 1 || N == 2 || N == 4);
        lds_.read(thread, address, words, 4 * N, "lds_read");
    }
    std::uint32_t lds_read_byte(int thread, std::int64_t address) {
        std::uint8_t byte = 0;
        lds_.read(thread, address, &byte, 1, "lds_read_byte");
        return byte;
    }

    static std::uint32_t select_bytes(std::uint32_t high, std::uint32_t low, std::uint32_t selector) {
        const std::uint64_t bytes = std::uint64_t{high} << 32U | low;
        std::uint32_t word = 0;
        for (unsigned i = 0; i < 32; i += 8)
            word |= static_cast<std::uint32_t>(bytes >> (selector >> i & 7U) * 8U & 0xFFU) << i;
        return word;
    }
    static int local(int value) { return value; }
    static int local_thread(int thread) { return thread; }
    static float local(float value) { return value; }
    static int scalar(int value) { return value; }
    static const char* scalar(const char* place) { return place; }
    static std::int64_t kept(std::int64_t value) { return value; }
    static void together() {}
    static float apart(float value) { return value; }
    static float behind(float, float value) { return value; }
    static float settled(float value) { return value; }
    static std::uint32_t arrived(std::uint32_t word) { return word; }
    static void landed(std::uint32_t) {}
    static std::uint32_t parked(std::uint32_t word) { return word; }
    template <class Args>
    static const Args& reread(const Args& args) {
        return args;
    }

    /// Of the whole block, because its control flow is uniform here.
    template <class F>
    bool any(F f) const {
        bool holds = false;
        for (int thread = 0; thread < shape_.threads; ++thread) holds = f(thread) || holds;
        return holds;
    }

    template <int N>
    static void global_read(int thread, const char* from, int offset, bool exists, std::uint32_t* words,
                            int existing = std::numeric_limits<int>::max()) {
        static_assert(N == 1 || N == 2 || N == 4);
        std::fill_n(words, N, 0U);
        if (!exists || offset >= existing) return;
        check_global(global_reads, thread, from, offset, 4 * N);
        // Units look at every word by itself.
        const std::int64_t words_left = (std::int64_t{existing} - offset + 3) / 4;
        std::memcpy(words, from + offset,
                    4 * static_cast<std::size_t>(std::min<std::int64_t>(N, words_left)));
    }

    template <int N>
    static void global_read_at(int thread, const char* from, bool exists, std::uint32_t* words) {
        global_read<N>(thread, from, 0, exists, words);
    }

    static std::uint32_t global_read_byte(int thread, const char* from, int offset, bool exists) {
        if (!exists) return 0;
        check_global(global_reads, thread, from, offset, 1);
        return static_cast<std::uint8_t>(from[offset]);
    }

    template <class Address>
    void load_matrix(EmulatedRegisters<std::uint32_t>& out, int r0, Address address, bool transposed) {
        check_load_matrix();
        std::array<std::int64_t, load_matrix_lanes> rows{};
        for (int first = 0; first < shape_.threads; first += shape_.wave_size) {
            for (int lane = 0; lane < load_matrix_lanes; ++lane)
                rows[static_cast<std::size_t>(lane)] = address(first + lane);
            load_matrices(out, r0, first, rows, transposed);
        }
    }

    template <class Address>
    void read_transposed(EmulatedRegisters<std::uint32_t>& out, int r0, ElementType type, Address address) {
        read_by(checked_transposing_read(type), out, r0, type, address);
    }

    static constexpr int sums_at_once = 4;
    static void atomic_add(float* to, float value) {
        std::atomic_ref(*to).fetch_add(value, std::memory_order_relaxed);
    }
    static void add_to_buffer(int thread, char* from, int offset, bool exists, float value, int existing) {
        if (!exists || offset >= existing) return;
        check_global("add_to_buffer", thread, from, offset, sizeof value);
        atomic_add(reinterpret_cast<float*>(from + offset), value);
    }
    static void write_to_buffer(int thread, char* to, int offset, bool exists, std::uint32_t word,
                                int existing) {
        if (!exists || offset >= existing) return;
        check_global("write_to_buffer", thread, to, offset, sizeof word);
        std::memcpy(to + offset, &word, sizeof word);
    }
    static void atomic_add_pair(float* to, float first, float second) {
        if (reinterpret_cast<std::uintptr_t>(to) % (2 * sizeof(float)) != 0)
            throw EmulationError(Hazard::misaligned, "a pair of atomic sums is not aligned to eight bytes");
        atomic_add(to, first);
        atomic_add(to + 1, second);
    }

    static void atomic_add_quad(float* to, const float* x) {
        if (reinterpret_cast<std::uintptr_t>(to) % (4 * sizeof(float)) != 0)
            throw EmulationError(Hazard::misaligned, "four atomic sums are not aligned to sixteen bytes");
        for (int i = 0; i < 4; ++i) atomic_add(to + i, x[i]);
    }

    bool in_first_half() const { return !shape_.last_thread_first; }
    void barrier() { lds_.barrier(); }
    void wave_barrier() { lds_.wave_barrier(); }
    static void in_order() {}
    static void arithmetic_in_order() {}
    static void products_in_order() {}
    static void reads_first() {}

    template <int N>
    void copy_async(int thread, std::int64_t address, const char* from, int offset, int bytes,
                    int existing = std::numeric_limits<int>::max()) {
        if (offset >= existing) bytes = 0;
        check_copy({address, from, N}, thread, offset, bytes);
        lds_.copy_async(thread, address, bytes > 0 ? from + offset : from, bytes, 4 * N);
    }
    template <int N>
    static std::int64_t copy_place(std::int64_t address) {
        return address;
    }
    template <int N>
    void copy_below(int thread, std::int64_t place, int further, const char* from, int offset, int below,
                    bool exists) {
        copy_async<N>(thread, place + further + std::int64_t{4} * N * thread, from + below, offset,
                      exists ? 4 * N : 0);
    }
    template <int N>
    void copy_from(int thread, std::int64_t place, int further, const char* from) {
        const std::int64_t address = place + further + std::int64_t{4} * N * thread;
        check_lane_copy(thread, address, from, N);
        lds_.copy_async(thread, address, from, 4 * N, 4 * N);
    }
    void copy_once(int thread, std::int64_t address, const char* from) {
        copy_async<4>(thread, address, from, 0, 16);
    }
    static void let_next_come() {}
    void commit_copies() {
        check_consecutive_copies();
        lds_.commit_copies();
    }
    void wait_copies(int n) { lds_.wait_copies(n); }
    void wait_single_copies(int n) { lds_.wait_single_copies(n); }

    /// Subnormal results are 0, as they are on hardware that flushes them.
    static float exp2(float x);
    static float log(float x);
    static float larger(float a, float b) { return __builtin_fmaxf(a, b); }
    static float quotient(float a, float b) { return a / b; }
    static float reciprocal(float x) { return 1.0F / x; }
    static float unpack(std::uint32_t bits, ElementType type);
    static std::uint32_t pack(const float* x, ElementType type);
    static std::uint32_t pack_results(const float* x, ElementType type) { return pack(x, type); }
    static std::uint32_t pack_quotients(const float* x, ElementType type, float divisor);
    static float product(float a, float b) {
        volatile float rounded = a * b; // no operand of a fused operation
        return rounded;
    }
    static void add_pair(float* x, float y0, float y1) {
        x[0] += y0;
        x[1] += y1;
    }
    static void multiply_pair(float* x, float y0, float y1) {
        x[0] *= y0;
        x[1] *= y1;
    }
    static void add_products(float* sum, float factor, const float* y) {
        sum[0] = __builtin_fmaf(factor, y[0], sum[0]);
        sum[1] = __builtin_fmaf(factor, y[1], sum[1]);
    }
    /// To TF32, nearest with ties away from zero, on NVIDIA; unchanged elsewhere.
    std::uint32_t round_operand(std::uint32_t word) const;

  protected:
    /// read_transposed by the map `read`.
    template <class Address>
    void read_by(const TransposingRead& read, EmulatedRegisters<std::uint32_t>& out, int r0, ElementType type,
                 Address address) {
        std::array<std::int64_t, transposing_lanes> places{};
        for (int first = 0; first < shape_.threads; first += transposing_lanes) {
            for (int lane = 0; lane < transposing_lanes; ++lane)
                places[static_cast<std::size_t>(lane)] = address(first + lane);
            read_block_transposed(out, r0, element_bits(type) / 8, read, first, places);
        }
    }
    static constexpr int load_matrix_lanes = 32, matrix_side = 8;
    /// The lines of four matrices, one of each lane.
    using MatrixLines = std::array<std::array<std::uint16_t, matrix_side>, load_matrix_lanes>;
    /// What load_matrix makes of them for the lanes from thread `first` on.
    static void deal_out(const MatrixLines& lines, EmulatedRegisters<std::uint32_t>& out, int r0, int first,
                         bool transposed);
    TransposingRead checked_transposing_read(ElementType type) const;
    const MachineShape& shape() const { return shape_; }
    Lds& memory() { return lds_; }
    void multiply(const MatrixModel& model, EmulatedRegisters<float>& c, int c0,
                  const EmulatedRegisters<std::uint32_t>& a, int a0,
                  const EmulatedRegisters<std::uint32_t>& b, int b0) const;

  private:
    /// A unit that a thread has started to copy.
    struct StartedCopy {
        std::int64_t address;
        const char* from;
        int words;
    };

    const MatrixModel& model(MatrixInstruction instruction);
    static constexpr std::string_view global_reads = "global_read";
    /// Of `bytes` bytes of global memory at `place` + `offset`; `operation` is for messages.
    static void check_global(std::string_view operation, int thread, const char* place, int offset,
                             int bytes);
    /// The demands of AMD's units on a single copy, and of those of a wave since the last commit: one instruction fills
    /// consecutive units, from one address that all lanes share.
    void check_copy(const StartedCopy& copy, int thread, int offset, int bytes);
    /// The same of a copy whose lanes have addresses of their own.
    void check_lane_copy(int thread, std::int64_t address, const char* from, int words);
    void check_consecutive_copies();
    /// For the sixteen lanes from `first` on, whose 64 bits each lie at `places`.
    void read_block_transposed(EmulatedRegisters<std::uint32_t>& out, int r0, int size,
                               const TransposingRead& read, int first,
                               const std::array<std::int64_t, transposing_lanes>& places);
    void check_exchange(int lane_mask, int out_count, int in_count) const;
    /// Accumulators of a product that begins.
    void check_zeros(MatrixInstruction instruction, const EmulatedRegisters<float>& c, int c0);
    void check_load_matrix() const;
    void load_matrices(EmulatedRegisters<std::uint32_t>& out, int r0, int first,
                       const std::array<std::int64_t, load_matrix_lanes>& rows, bool transposed);

    MachineShape shape_;
    Lds lds_;
    std::vector<std::vector<StartedCopy>> copies_; ///< by thread, since the last commit
    std::array<std::unique_ptr<const MatrixModel>, matrix_instructions> models_;
};

} // namespace fmha::hip_target
