#pragma once

#include "kernels/programs/formats.hpp"
#include "kernels/targets/hip/instruction.hpp"

#include <bit>
#include <cstdint>

/// The device machine of NVIDIA GPUs from sm_80 on, 8-bit types from sm_89 on; kernels/targets/hip/README.md is its contract.
namespace fmha::hip_target::nvidia {

extern __shared__ __align__(16) char lds[]; // NOLINT: dynamic shared memory has no other spelling

template <class T, int count>
struct RegisterArray {
    T value[count];
    FMHA_DEVICE T& at(int, int r) { return value[r]; }
    FMHA_DEVICE const T& at(int, int r) const { return value[r]; }
};

/// Waits until the kernel before this one has ended: launches may overlap (LaunchShape::overlaps), work does not.
FMHA_DEVICE void follow() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the next kernel of the stream come to the multiprocessors once all blocks of this one have called this or ended.
FMHA_DEVICE void let_next_come() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Four matrices of 8 × 8 elements of 16 bits, of which the lane says where one row lies in LDS.
FMHA_DEVICE void load_matrix(std::uint32_t* to, std::uint32_t from, bool transposed) {
    if (transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
}

template <int block_threads>
class Machine {
  public:
    template <class T, int count>
    using Registers = RegisterArray<T, count>;
    static constexpr bool has_tile_copies = true, has_step_copies = false;
    static constexpr bool has_load_matrix = true, has_transposing_read = false;
    static constexpr bool ends_buffers = false;
    static constexpr bool reads_rows_by_offset =
        true; ///< of a window; an address of 64 bits a row takes more instructions
    static constexpr bool adds_products = false, begins_products = false;
    static constexpr bool packs_quotients = false;
    static constexpr bool pairs_columns = false; ///< its kernels were measured with the other way
    static constexpr bool adds_pairs = false;    ///< two running sums a row are registers that it has not

    FMHA_DEVICE static constexpr int threads() { return block_threads; }
    FMHA_DEVICE static constexpr int wave_size() { return 32; }

    template <class F>
    FMHA_DEVICE void each(F f) const {
        f(static_cast<int>(threadIdx.x));
    }

    template <class F>
    FMHA_DEVICE bool any(F f) const {
        return __any_sync(0xFFFFFFFFU, f(static_cast<int>(threadIdx.x))) != 0;
    }

    template <class Acc, class A, class B>
    FMHA_DEVICE void mma(MatrixInstruction name, Acc& c, int c0, const A& a, int a0, const B& b,
                         int b0) const {
        float &d0 = c.value[c0], &d1 = c.value[c0 + 1], &d2 = c.value[c0 + 2], &d3 = c.value[c0 + 3];
        const std::uint32_t* const x = a.value + a0;
        const std::uint32_t* const y = b.value + b0;
        switch (name) {
        case MatrixInstruction::mma_16x8x16_f16:
            asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                "{%0,%1,%2,%3};"
                : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
            break;
        case MatrixInstruction::mma_16x8x16_bf16:
            asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                "{%0,%1,%2,%3};"
                : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
            break;
        case MatrixInstruction::mma_16x8x8_f16:
            asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
                "{%0,%1,%2,%3};"
                : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                : "r"(x[0]), "r"(x[1]), "r"(y[0]));
            break;
        case MatrixInstruction::mma_16x8x8_bf16:
            asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
                "{%0,%1,%2,%3};"
                : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                : "r"(x[0]), "r"(x[1]), "r"(y[0]));
            break;
        case MatrixInstruction::mma_16x8x8_tf32:
            asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                "{%0,%1,%2,%3};"
                : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
            break;
        case MatrixInstruction::mma_16x8x32_fp8:
            asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                "{%0,%1,%2,%3};"
                : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
            break;
        case MatrixInstruction::mma_16x8x32_bf8:
            asm("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                "{%0,%1,%2,%3};"
                : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
            break;
        default:
            __trap(); // the plan gives this unit its own instructions only
        }
    }

    template <class T, int count>
    FMHA_DEVICE void exchange(RegisterArray<T, count>& out, const RegisterArray<T, count>& in,
                              int lane_mask) const {
        FMHA_UNROLL
        for (int r = 0; r < count; ++r) out.value[r] = __shfl_xor_sync(0xFFFFFFFFU, in.value[r], lane_mask);
    }
    template <class T, int count, class F>
    FMHA_DEVICE void fold(RegisterArray<T, count>& x, int lane_mask, F f) const {
        RegisterArray<T, count> other;
        exchange(other, x, lane_mask);
        FMHA_UNROLL
        for (int r = 0; r < count; ++r) x.value[r] = f(x.value[r], other.value[r]);
    }

    template <int count>
    FMHA_DEVICE void lds_write(int, int address, const std::uint32_t* words) const {
        if constexpr (count == 4)
            *reinterpret_cast<uint4*>(lds + address) = make_uint4(words[0], words[1], words[2], words[3]);
        else if constexpr (count == 2)
            *reinterpret_cast<uint2*>(lds + address) = make_uint2(words[0], words[1]);
        else
            *reinterpret_cast<std::uint32_t*>(lds + address) = words[0];
    }
    template <int count>
    FMHA_DEVICE void lds_read(int, int address, std::uint32_t* words) const {
        if constexpr (count == 4) {
            const uint4 read = *reinterpret_cast<const uint4*>(lds + address);
            words[0] = read.x;
            words[1] = read.y;
            words[2] = read.z;
            words[3] = read.w;
        } else if constexpr (count == 2) {
            const uint2 read = *reinterpret_cast<const uint2*>(lds + address);
            words[0] = read.x;
            words[1] = read.y;
        } else {
            words[0] = *reinterpret_cast<const std::uint32_t*>(lds + address);
        }
    }
    FMHA_DEVICE std::uint32_t lds_read_byte(int, int address) const {
        return *reinterpret_cast<const std::uint8_t*>(lds + address);
    }

    FMHA_DEVICE static std::uint32_t select_bytes(std::uint32_t high, std::uint32_t low,
                                                  std::uint32_t selector) {
        return __byte_perm(low, high,
                           (selector & 7U) | (selector >> 4U & 0x70U) | (selector >> 8U & 0x700U) |
                               (selector >> 12U & 0x7000U));
    }
    /// Opaque, so that a loop keeps no register of values that follow from it.
    FMHA_DEVICE static int local(int value) {
        asm volatile("" : "+r"(value));
        return value;
    }
    FMHA_DEVICE static int local_thread(int thread) { return local(thread); }
    FMHA_DEVICE static float local(float value) {
        asm volatile("" : "+f"(value));
        return value;
    }
    FMHA_DEVICE static int scalar(int value) { return value; }
    FMHA_DEVICE static float apart(float value) { return value; }
    FMHA_DEVICE static float settled(float value) {
        asm volatile("" : "+f"(value));
        return value;
    }
    FMHA_DEVICE static std::uint32_t arrived(std::uint32_t word) { return word; }
    FMHA_DEVICE static std::uint32_t parked(std::uint32_t word) { return word; }
    FMHA_DEVICE static std::int64_t kept(std::int64_t value) { return value; }
    /// Instructions take numbers of the constant bank as operands.
    template <class Args>
    FMHA_DEVICE static const Args& reread(const Args& args) {
        return args;
    }

    template <int count>
    FMHA_DEVICE void global_read(int, const char* from, int offset, bool exists, std::uint32_t* words) const {
        struct alignas(4 * count) Unit {
            std::uint32_t word[static_cast<unsigned>(count)];
        };
        Unit unit{};
        if (exists) unit = *reinterpret_cast<const Unit*>(from + offset);
        FMHA_UNROLL
        for (int w = 0; w < count; ++w) words[w] = unit.word[w];
    }

    template <int count>
    FMHA_DEVICE void global_read_at(int thread, const char* from, bool exists, std::uint32_t* words) const {
        global_read<count>(thread, from, 0, exists, words);
    }

    FMHA_DEVICE std::uint32_t global_read_byte(int, const char* from, int offset, bool exists) const {
        return exists ? *reinterpret_cast<const std::uint8_t*>(from + offset) : 0U;
    }

    template <int count, class Address>
    FMHA_DEVICE void load_matrix(RegisterArray<std::uint32_t, count>& out, int r0, Address address,
                                 bool transposed) const {
        nvidia::load_matrix(out.value + r0, shared(address(static_cast<int>(threadIdx.x))), transposed);
    }

    static constexpr int sums_at_once = 4;
    FMHA_DEVICE static void atomic_add(float* to, float value) { atomicAdd(to, value); }
    FMHA_DEVICE static void atomic_add_pair(float* to, float first, float second) {
        asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "f"(first),
                     "f"(second)
                     : "memory");
    }

    FMHA_DEVICE static void atomic_add_quad(float* to, const float* x) {
        asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                     "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
                     : "memory");
    }

    FMHA_DEVICE static void let_next_come() { nvidia::let_next_come(); }
    /// Asked of the warp each time: compilers copy a loop for either half when the number stays the same, and registers spill.
    FMHA_DEVICE static bool in_first_half() {
        return __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x), 0) < block_threads / 2;
    }
    FMHA_DEVICE void barrier() const { __syncthreads(); }
    FMHA_DEVICE void wave_barrier() const { __syncwarp(); }
    /// The assembler reads ahead past anything else.
    FMHA_DEVICE void in_order() const { __syncwarp(); }
    FMHA_DEVICE static void arithmetic_in_order() {}
    FMHA_DEVICE static void products_in_order() {}
    FMHA_DEVICE static void reads_first() {}

    template <int words>
    FMHA_DEVICE void copy_async(int, int address, const char* from, int offset, int bytes) const {
        static_assert(words == 1 || words == 4);
        if constexpr (words == 4)
            asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared(address)),
                         "l"(from + offset), "r"(bytes)
                         : "memory");
        else
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared(address)),
                         "l"(from + offset), "r"(bytes)
                         : "memory");
    }
    FMHA_DEVICE void copy_once(int, int address, const char* from) const {
        std::uint64_t first_to_go;
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first_to_go));
        asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, 16, %2;" ::"r"(
                         shared(address)),
                     "l"(from), "l"(first_to_go)
                     : "memory");
    }
    FMHA_DEVICE void commit_copies() const { asm volatile("cp.async.commit_group;" ::: "memory"); }
    FMHA_DEVICE void wait_copies(int groups) const {
        if (groups == 0)
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        else
            asm volatile("cp.async.wait_group 1;" ::: "memory");
    }

    FMHA_DEVICE static void add_pair(float* x, float y0, float y1) {
        x[0] += y0;
        x[1] += y1;
    }
    /// By the intrinsic: of a product and a sum behind it the compiler makes one operation with one rounding.
    FMHA_DEVICE static float product(float a, float b) { return __fmul_rn(a, b); }
    FMHA_DEVICE float exp2(float x) const {
        float y;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
        return y;
    }
    FMHA_DEVICE float log(float x) const { return __log2f(x) * 0.693147180559945309F; }
    FMHA_DEVICE static float larger(float a, float b) { return __builtin_fmaxf(a, b); }
    /// One step of Newton's method. The compiler's division asks first whether a number is very large or small, and branches.
    FMHA_DEVICE float quotient(float a, float b) const {
        const float inverse = reciprocal(b), about = a * inverse;
        return __builtin_fmaf(__builtin_fmaf(-about, b, a), inverse, about);
    }
    FMHA_DEVICE float reciprocal(float x) const {
        float y;
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
        return y;
    }

    FMHA_DEVICE float unpack(std::uint32_t bits, ElementType type) const {
        if (type == ElementType::fp32) return std::bit_cast<float>(bits);
        if (type == ElementType::bf16) return std::bit_cast<float>(bits << 16U);
        if (type != ElementType::fp16) return kernels::decode(bits, kernels::format_of(type));
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<std::uint16_t>(bits)));
        return value;
    }
    FMHA_DEVICE std::uint32_t pack(const float* x, ElementType type) const {
        std::uint32_t word;
        if (type == ElementType::fp16)
            asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(x[1]), "f"(x[0]));
        else if (type == ElementType::bf16)
            asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(x[1]), "f"(x[0]));
        else if (type == ElementType::fp32)
            word = std::bit_cast<std::uint32_t>(x[0]);
        else
            word = eight_bits(x[0], x[1], type) | eight_bits(x[2], x[3], type) << 16U;
        return word;
    }
    FMHA_DEVICE std::uint32_t pack_results(const float* x, ElementType type) const { return pack(x, type); }
    FMHA_DEVICE std::uint32_t round_operand(std::uint32_t word) const {
        std::uint32_t out;
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(std::bit_cast<float>(word)));
        return out;
    }

  private:
    /// Two 8-bit codes; values that overflow saturate (T-5).
    FMHA_DEVICE static std::uint32_t eight_bits(float low, float high, ElementType type) {
        std::uint16_t pair;
        if (type == ElementType::fp8_ocp)
            asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
        else
            asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
        return pair;
    }
    FMHA_DEVICE static std::uint32_t shared(int address) {
        return static_cast<std::uint32_t>(__cvta_generic_to_shared(lds)) +
               static_cast<std::uint32_t>(address);
    }
};

} // namespace fmha::hip_target::nvidia
