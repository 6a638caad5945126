#pragma once

#include "kernels/targets/hip/amd/arithmetic.hpp"
#include "kernels/targets/hip/amd/buffer.hpp"
#include "kernels/targets/hip/amd/exchange.hpp"
#include "kernels/targets/hip/amd/matrix.hpp"

#include <cstdint>

namespace fmha::hip_target::amd {

/// One thread of a block of `block_threads`, whose LDS image has `lds_bytes`: the machine of gfx90a, gfx942, gfx950,
/// gfx11 and gfx12 (see the README of the HIP target for the members' contracts). No HIP header is needed.
template <int block_threads, int lds_bytes>
class Machine : public Arithmetic {
  public:
#if defined(__GFX9__)
    static constexpr bool has_step_copies = true;
#else
    static constexpr bool has_step_copies = false;
#endif
#if defined(__gfx942__) || defined(__gfx950__)
    static constexpr bool has_lane_copies = true;
#else
    static constexpr bool has_lane_copies = false;
#endif
#if defined(__gfx950__)
    static constexpr bool has_transposing_read = true;
#else
    static constexpr bool has_transposing_read = false;
#endif
    static constexpr bool has_tile_copies = false, has_load_matrix = false;
#if defined(__GFX9__)
    static constexpr bool adds_products = true;
#else
    static constexpr bool adds_products = false; ///< two instructions a pair, with absolute values or without
#endif
#if defined(__GFX11__)
    static constexpr bool begins_products = true;
#else
    static constexpr bool begins_products = false; ///< compilers give such a product the constant 0
#endif
    static constexpr bool adds_pairs = true, ends_buffers = true, packs_quotients = true;
    static constexpr bool pairs_columns = true; ///< bytes of two columns at once where patches are transposed
    static constexpr bool reads_rows_by_offset =
        false; ///< the base is two registers more, which gfx1100 has not

    __attribute__((device, always_inline)) Machine()
        : wave_(__builtin_amdgcn_readfirstlane(static_cast<int>(__builtin_amdgcn_workitem_id_x()) / lanes)) {}

    template <class T, int n>
    struct Registers {
        T values[n > 0 ? n : 1];

        __attribute__((device, always_inline)) T& at(int, int r) { return values[r]; }
        __attribute__((device, always_inline)) const T& at(int, int r) const { return values[r]; }
    };

    static constexpr int threads() {
        return block_threads;
    }
    static constexpr int wave_size() {
        return lanes;
    }

    template <class F>
    __attribute__((device, always_inline)) void each(F f) const {
        f(static_cast<int>(__builtin_amdgcn_workitem_id_x()));
    }

    template <int nc, int na, int nb>
    __attribute__((device, always_inline)) void
    mma(MatrixInstruction instruction, Registers<float, nc>& c, int c0, const Registers<std::uint32_t, na>& a,
        int a0, const Registers<std::uint32_t, nb>& b, int b0, bool begins = false) const {
        multiply(instruction, c, c0, a, a0, b, b0, begins);
    }

    template <class T, int n>
    __attribute__((device, always_inline)) void exchange(Registers<T, n>& out, const Registers<T, n>& in,
                                                         int lane_mask) const {
#pragma unroll
        for (int r = 0; r < n; ++r)
            out.values[r] =
                __builtin_bit_cast(T, exchanged(__builtin_bit_cast(std::uint32_t, in.values[r]), lane_mask));
    }
    template <class T, int n, class F>
    __attribute__((device, always_inline)) void fold(Registers<T, n>& x, int lane_mask, F f) const {
#pragma unroll
        for (int r = 0; r < n; ++r) {
            const Both both = both_of(__builtin_bit_cast(std::uint32_t, x.values[r]), lane_mask);
            x.values[r] = f(__builtin_bit_cast(T, both.first), __builtin_bit_cast(T, both.second));
        }
    }

#if defined(__gfx950__)
    template <int n>
    __attribute__((device, always_inline)) void trade(Registers<std::uint32_t, n>& x, int low, int high,
                                                      int lane_mask) const {
        amd::trade(x.values[low], x.values[high], lane_mask);
    }
#endif

    __attribute__((device, always_inline)) static std::uint32_t
    select_bytes(std::uint32_t high, std::uint32_t low, std::uint32_t selector) {
        return __builtin_amdgcn_perm(high, low, selector);
    }

    template <int n>
    __attribute__((device, always_inline)) void lds_write(int, int address,
                                                          const std::uint32_t* words) const {
        Vector<std::uint32_t, n> value;
#pragma unroll
        for (int i = 0; i < n; ++i) value[i] = words[i];
        *reinterpret_cast<Lds<Vector<std::uint32_t, n>>>(image() + address) = value;
    }

    template <int n>
    __attribute__((device, always_inline)) void lds_read(int, int address, std::uint32_t* words) const {
        const auto value = *reinterpret_cast<Lds<const Vector<std::uint32_t, n>>>(image() + address);
#pragma unroll
        for (int i = 0; i < n; ++i) words[i] = value[i];
    }

    __attribute__((device, always_inline)) std::uint32_t lds_read_byte(int, int address) const {
        return image()[address];
    }

    template <class F>
    __attribute__((device, always_inline)) bool any(F f) const {
        const bool mine = f(static_cast<int>(__builtin_amdgcn_workitem_id_x()));
#if defined(__GFX9__)
        return __builtin_amdgcn_ballot_w64(mine) != 0;
#else
        return __builtin_amdgcn_ballot_w32(mine) != 0;
#endif
    }

    /// In a vector register: an accumulator that is not a matrix instruction's own would be moved to and fro, and spilled,
    /// if the compiler gave it the other half of the file.
    __attribute__((device, always_inline)) static float settled(float value) {
        asm volatile("" : "+v"(value));
        return value;
    }

    /// Opaque, so that compilers make no pairs of values before this. Where branches meet, they keep both the pairs and the values.
    __attribute__((device, always_inline)) static float apart(float value) {
        asm("" : "+v"(value));
        return value;
    }

    /// Opaque, so that a loop that seldom needs the value keeps no register of numbers computed from it.
    __attribute__((device, always_inline)) static int local(int value) {
        asm volatile("" : "+v"(value));
        __builtin_assume(value >= 0);
        return value;
    }
    /// The same of a thread's number, whose products with distances have 24 bits.
    __attribute__((device, always_inline)) static int local_thread(int thread) {
        const int here = local(thread);
        __builtin_assume(here < block_threads);
        return here;
    }
    __attribute__((device, always_inline)) static float local(float value) {
        asm volatile("" : "+v"(value));
        return value;
    }

    /// The same of a value that the block shares, in a scalar register. An opaque text alone does not move it there: compilers must prove
    /// that it is shared, and that no vector instruction computed it.
    __attribute__((device, always_inline)) static int scalar(int value) {
        value = uniform(value);
        asm volatile("" : "+s"(value));
        return value;
    }

    __attribute__((device, always_inline)) static const char* scalar(const char* place) {
        std::uint64_t shared = uniform(place);
        asm volatile("" : "+s"(shared));
        return reinterpret_cast<const char*>(shared);
    }

    /// Opaque, so that it is no longer a part of the eight words that were read with it. Where scalar registers run out, compilers read those
    /// again, but set aside a place in memory for all eight before they do.
    __attribute__((device, always_inline)) static std::int64_t kept(std::int64_t value) {
        asm volatile("" : "+s"(value));
        return value;
    }

    /// Here lanes that took ways of their own are together again: what they share is a scalar behind other branches, too. Without any
    /// text of its own the place would be one with the end of those.
    __attribute__((device, always_inline)) static void together() {
        asm volatile("");
    }

    /// At an opaque offset, so that no number is read ahead of a loop and kept throughout it.
    template <class Args>
    __attribute__((device, always_inline)) static const Args& reread(const Args& args) {
        int offset = 0;
        asm volatile("" : "+s"(offset));
        return *reinterpret_cast<const Args*>(reinterpret_cast<const char*>(&args) + offset);
    }

    /// Used here, so that the next loop does not wait for it, and with it for all loads of its own.
    __attribute__((device, always_inline)) static std::uint32_t arrived(std::uint32_t word) {
        asm volatile("" : "+v"(word));
        return word;
    }
    /// The same where branches meet: compilers would keep a copy of an operand that changes.
    __attribute__((device, always_inline)) static void landed(std::uint32_t word) {
        asm volatile("" ::"v"(word));
    }

    /// Arrived, and from then on in an accumulation register, where products read it. Compilers by themselves copy it before each product.
    __attribute__((device, always_inline)) static std::uint32_t parked(std::uint32_t word) {
#if defined(__GFX9__)
        asm volatile("" : "+a"(word));
#endif
        return word;
    }

    /// Through a buffer descriptor: one 32-bit address a lane, and bytes that do not exist lie beyond the buffer's end.
    template <int n>
    __attribute__((device, always_inline)) static void global_read(int, const char* from, int offset,
                                                                   bool exists, std::uint32_t* words,
                                                                   int existing = buffer_bytes) {
        const auto memory = buffer(from, uniform(existing));
        const int at = exists ? offset : nowhere;
        Vector<std::uint32_t, n> value;
        if constexpr (n == 4)
            value = __builtin_amdgcn_raw_buffer_load_b128(memory, at, 0, 0);
        else if constexpr (n == 2)
            value = __builtin_amdgcn_raw_buffer_load_b64(memory, at, 0, 0);
        else
            value[0] = __builtin_amdgcn_raw_buffer_load_b32(memory, at, 0, 0);
#pragma unroll
        for (int i = 0; i < n; ++i) words[i] = value[i];
    }
    template <int n>
    __attribute__((device, always_inline)) static void global_read_at(int, const char* from, bool exists,
                                                                      std::uint32_t* words) {
        using Global = const __attribute__((address_space(1))) Vector<std::uint32_t, n>*;
        Vector<std::uint32_t, n> value{};
        if (exists) value = *(Global)from;
#pragma unroll
        for (int i = 0; i < n; ++i) words[i] = value[i];
    }
    __attribute__((device, always_inline)) static std::uint32_t global_read_byte(int, const char* from,
                                                                                 int offset, bool exists) {
        return __builtin_amdgcn_raw_buffer_load_b8(buffer(from), exists ? offset : nowhere, 0, 0);
    }

    /// Bytes from `from` + `existing` on are 0, by the size in the descriptor: scalars say so for all lanes.
    template <int n>
    __attribute__((device, always_inline)) void copy_async(int thread, int address, const char* from,
                                                           int offset, int bytes,
                                                           int existing = buffer_bytes) const {
        const int block = (int)(std::uintptr_t)image() + address - 4 * n * thread;
        const int first = __builtin_amdgcn_readfirstlane(block) + wave_ * (4 * n * lanes);
        start_copy<n>(descriptor(from, uniform(existing)), bytes > 0 ? offset : nowhere, 0, first);
    }
    /// In a scalar register by itself, or one is kept for the place of every copy behind it.
    template <int n>
    __attribute__((device, always_inline)) int copy_place(int address) const {
        return scalar((int)(std::uintptr_t)image() + address + wave_ * (4 * n * lanes));
    }
    /// One descriptor serves all lines, and the scalar offset tells them apart. Whether the hardware counts that offset in its test for the
    /// end of a buffer, AMD's manuals and LLVM tell in different ways: this buffer has no end.
    template <int n>
    __attribute__((device, always_inline)) static void
    copy_below(int, int place, int further, const char* from, int offset, int below, bool exists) {
        start_copy<n>(descriptor(from, buffer_bytes), exists ? offset : nowhere, below, place + further);
    }
    /// From an address of the lane's own.
    template <int n>
    __attribute__((device, always_inline)) static void copy_from(int, int place, int further,
                                                                 const char* from) {
        const auto at = reinterpret_cast<std::uint64_t>(from);
        if constexpr (!has_lane_copies)
            __builtin_trap(); // the plan gives this unit no such copies
        else if constexpr (n == 1)
            asm volatile("s_nop 0\n\tglobal_load_lds_dword %0, off"
                         :
                         : "v"(at), "{m0}"(place + further)
                         : "memory");
        else
#if defined(__gfx950__)
            asm volatile("s_nop 0\n\tglobal_load_lds_dwordx4 %0, off"
                         :
                         : "v"(at), "{m0}"(place + further)
                         : "memory");
#else
            __builtin_trap(); // single words only
#endif
    }
    __attribute__((device, always_inline)) static void commit_copies() {}
    /// Loads return in order. `n` is a constant once the steps of a tile stand one after another.
    __attribute__((device, always_inline)) static void wait_single_copies(int n) {
        asm volatile("s_waitcnt vmcnt(%0)" ::"i"(n) : "memory");
    }

#if defined(__gfx950__)
    template <int n, class Address>
    __attribute__((device, always_inline)) void read_transposed(Registers<std::uint32_t, n>& out, int r0,
                                                                ElementType type, Address address) const {
        const auto from = image() + address(static_cast<int>(__builtin_amdgcn_workitem_id_x()));
        Vector<std::uint32_t, 2> words;
        if (element_bits(type) == 16)
            words = __builtin_bit_cast(decltype(words), __builtin_amdgcn_ds_read_tr16_b64_v4i16(
                                                            reinterpret_cast<Lds<Vector<short, 4>>>(from)));
        else
            words = __builtin_bit_cast(decltype(words), __builtin_amdgcn_ds_read_tr8_b64_v2i32(
                                                            reinterpret_cast<Lds<Vector<int, 2>>>(from)));
        out.values[r0] = words[0];
        out.values[r0 + 1] = words[1];
    }
#endif

    static constexpr int sums_at_once = 1;
    /// By the device's own instruction, which rounds as ordinary addition does; memory is a device's.
    __attribute__((device, always_inline)) static void atomic_add(float* to, float value) {
        using Global = __attribute__((address_space(1))) float*;
        (void)__builtin_amdgcn_global_atomic_fadd_f32((Global)to, value);
    }
    /// Sums behind the end go nowhere.
    __attribute__((device, always_inline)) static void add_to_buffer(int, char* from, int offset, bool exists,
                                                                     float value, int existing) {
#if __has_builtin(__builtin_amdgcn_raw_ptr_buffer_atomic_fadd_f32)
        const int at = exists ? offset : nowhere;
        (void)__builtin_amdgcn_raw_ptr_buffer_atomic_fadd_f32(value, buffer(from, uniform(existing)), at, 0,
                                                              0);
#else
        if (exists && offset < existing) atomic_add(reinterpret_cast<float*>(from + offset), value);
#endif
    }

    /// The same of a store.
    __attribute__((device, always_inline)) static void write_to_buffer(int, char* to, int offset, bool exists,
                                                                       std::uint32_t word, int existing) {
        const int at = exists ? offset : nowhere;
        __builtin_amdgcn_raw_buffer_store_b32(word, buffer(to, uniform(existing)), at, 0, 0);
    }

    __attribute__((device, always_inline)) bool in_first_half() const {
        return 2 * lanes * wave_ < block_threads;
    }
    __attribute__((device, always_inline)) static void let_next_come() {}

    /// Orders LDS alone: global memory carries nothing from one thread to another, and its loads stay under way.
    __attribute__((device, always_inline)) void barrier() const {
        // In a block of one wave a barrier has this use alone: copies after it may overwrite the bytes of reads before it.
        if constexpr (has_step_copies && block_threads == lanes)
            asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
        __builtin_amdgcn_s_barrier();
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
    }

    /// A wave's LDS accesses execute in order; only the compiler has to keep them.
    __attribute__((device, always_inline)) void wave_barrier() const {
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront", "local");
        __builtin_amdgcn_wave_barrier();
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront", "local");
    }

    __attribute__((device, always_inline)) static void in_order() {
        __builtin_amdgcn_sched_barrier(0);
    }

    /// Compilers compare all elements of a tile first, and masks of lanes take every scalar register of RDNA.
    __attribute__((device, always_inline)) static void arithmetic_in_order() {
#if !defined(__GFX9__)
        __builtin_amdgcn_sched_barrier(0);
#endif
    }
    /// Reads of LDS and products; all else may pass.
    __attribute__((device, always_inline)) static void products_in_order() {
        constexpr int arithmetic = 2, scalars = 4, memory = 16;
        __builtin_amdgcn_sched_barrier(arithmetic | scalars | memory);
    }
    /// Loads from memory arrive during the products behind them.
    __attribute__((device, always_inline)) static void reads_first() {
        constexpr int arithmetic = 2, scalars = 4, lds = 128;
        __builtin_amdgcn_sched_barrier(arithmetic | scalars | lds);
    }

  private:
    int wave_;

    template <class T>
    using Lds = __attribute__((address_space(3))) T*;

    __attribute__((device, always_inline)) static Lds<unsigned char> image() {
        alignas(16) static __attribute__((shared)) unsigned char bytes[lds_bytes > 0 ? lds_bytes : 16];
        return (Lds<unsigned char>)bytes;
    }
};

} // namespace fmha::hip_target::amd
