#pragma once

#include "kernels/targets/hip/descriptor.hpp"
#include "kernels/targets/hip/nvidia/group_product.hpp"
#include "kernels/targets/hip/nvidia/machine.hpp"
#include "kernels/targets/hip/ws_launch.hpp"

#include <cstdint>

/// The device machine of a warp group on sm_90a; kernels/targets/hip/README.md is its contract.
namespace fmha::hip_target::nvidia {

extern __shared__ __align__(1024) char team_lds[]; // NOLINT: dynamic shared memory has no other spelling

template <int feed_registers, int team_registers>
class TeamMachine : public Machine<128> {
  public:
    /// `launch` is a part of the kernel's parameter, where the copy engine finds the maps.
    FMHA_DEVICE explicit TeamMachine(const WsLaunch& launch)
        : launch_(&launch), lds_(static_cast<std::uint32_t>(__cvta_generic_to_shared(team_lds))) {
        // Kept in a register: computed again, it costs every wait for a barrier a read of a special register.
        asm volatile("" : "+r"(lds_));
    }

    FMHA_DEVICE static int thread() { return static_cast<int>(threadIdx.x & 127U); }
    /// The same for all threads of a warp, and the compiler has to know. Asked each time: a register for it makes large tiles spill.
    FMHA_DEVICE static int group() {
        return __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x / 128U), 0);
    }

    template <class F>
    FMHA_DEVICE void each(F f) const {
        f(thread());
    }
    template <class F>
    FMHA_DEVICE bool any(F f) const {
        return __any_sync(0xFFFFFFFFU, f(thread())) != 0;
    }

    FMHA_DEVICE void release_registers() const {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(feed_registers));
    }
    FMHA_DEVICE void claim_registers() const {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(team_registers));
    }

    FMHA_DEVICE void init_barrier(int address, int arrivals) const {
        if (threadIdx.x == 0)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared(address)), "r"(arrivals)
                         : "memory");
    }
    FMHA_DEVICE void barriers_ready() const {
        if (threadIdx.x == 0) asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        __syncthreads();
    }
    FMHA_DEVICE void wait(int address, int parity) const {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "again:\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                     "@p bra.uni done;\n"
                     "bra.uni again;\n"
                     "done:\n"
                     "}" ::"r"(shared(address)),
                     "r"(parity)
                     : "memory");
    }
    /// Of the feed: the first thread of each of its first `count` warps.
    FMHA_DEVICE static bool leads(int count) {
        return static_cast<int>(threadIdx.x) < 32 * count && threadIdx.x % 32U == 0;
    }
    FMHA_DEVICE static int feeder() { return static_cast<int>(threadIdx.x / 32U); }
    FMHA_DEVICE static constexpr int feeders(int count) { return count; }
    /// Of the feed: the `count` warps behind those that copy.
    FMHA_DEVICE static bool transposes(int feeders, int count) {
        const int warp = __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x / 32U), 0);
        return warp >= feeders && warp < feeders + count;
    }
    FMHA_DEVICE static int transposer(int thread, int feeders) { return thread / 32 - feeders; }
    FMHA_DEVICE void expect(int address, int bytes) const {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(address)),
                     "r"(bytes)
                     : "memory");
    }
    FMHA_DEVICE const MapRows& rows_of(int map) const { return launch_->rows[map]; }
    FMHA_DEVICE void copy_box(int map, const BoxCorner& corner, int address, int barrier) const {
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(shared(address)),
                     "l"(launch_->maps + map), "r"(corner.at[0]), "r"(corner.at[1]), "r"(corner.at[2]),
                     "r"(corner.at[3]), "r"(corner.at[4]), "r"(shared(barrier))
                     : "memory");
    }
    FMHA_DEVICE void arrive_wave(int address, bool arrives) const {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "setp.ne.b32 p, %1, 0;\n"
                     "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n"
                     "}" ::"r"(shared(address)),
                     "r"(arrives && threadIdx.x % 32U == 0 ? 1 : 0)
                     : "memory");
    }

    template <int count, class Address>
    FMHA_DEVICE void load_matrix(RegisterArray<std::uint32_t, count>& out, int r0, Address address,
                                 bool transposed) const {
        nvidia::load_matrix(out.value + r0, shared(address(thread())), transposed);
    }
    template <int count, class Address>
    FMHA_DEVICE void store_matrix(const RegisterArray<std::uint32_t, count>& in, int r0,
                                  Address address) const {
        const std::uint32_t* const from = in.value + r0;
        asm volatile(
            "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(shared(address(thread()))),
            "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
            : "memory");
    }
    FMHA_DEVICE static void publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

    // Barrier 0 is the block's.
    FMHA_DEVICE void turn(int group) const { asm volatile("bar.sync %0, 256;" ::"r"(group) : "memory"); }
    FMHA_DEVICE void pass(int group) const { asm volatile("bar.arrive %0, 256;" ::"r"(group) : "memory"); }

    FMHA_DEVICE MatrixDescriptor descriptor(int address, int leading, int stride) const {
        return MatrixDescriptor::of(shared(address), leading, stride);
    }
    /// The numbers in these registers are computed before this and used after it.
    template <class T, int count>
    FMHA_DEVICE static void keep(RegisterArray<T, count>& x) {
        FMHA_UNROLL
        for (int i = 0; i < count; ++i) {
            if constexpr (sizeof(T) == 4 && std::is_floating_point_v<T>)
                asm volatile("" : "+f"(x.value[i])::"memory");
            else
                asm volatile("" : "+r"(x.value[i])::"memory");
        }
    }
    /// The value, which is not NaN, behind the computation of `other`. That binds the assembler too: it does not know that the smaller of a number
    /// and −∞ is −∞.
    FMHA_DEVICE static float behind(float other, float value) {
        float least;
        asm("min.f32 %0, %1, 0fFF800000;" : "=f"(least) : "f"(other));
        asm("max.f32 %0, %1, %2;" : "=f"(value) : "f"(value), "f"(least));
        return value;
    }
    /// Code after this stays behind the code that computes the registers, which are not below 0. That binds the assembler too, which does not see an
    /// empty statement. The load is never executed.
    template <int count>
    FMHA_DEVICE void hold_behind(const RegisterArray<float, count>& x) const {
        int bits = 0;
        FMHA_UNROLL
        for (int i = 0; i < count; ++i) bits |= __float_as_int(x.value[i]);
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     ".reg .b32 t;\n"
                     "setp.lt.s32 p, %0, 0;\n"
                     "@p ld.volatile.shared.b32 t, [%1];\n"
                     "}" ::"r"(bits),
                     "r"(lds_)
                     : "memory");
    }
    template <class T, int count>
    FMHA_DEVICE void fence_products(RegisterArray<T, count>& x) const {
        keep(x);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    }
    template <int count>
    FMHA_DEVICE void multiply_lds(ElementType type, RegisterArray<float, count>& d, MatrixDescriptor a,
                                  MatrixDescriptor b, bool accumulate) const {
        if (element_bits(type) == 8)
            GroupProduct8<2 * count>::from_lds(Interleaved<count>{d.value}, a.bits, b.bits,
                                               accumulate ? 1 : 0);
        else
            GroupProduct<2 * count>::from_lds(type, d.value, a.bits, b.bits, accumulate ? 1 : 0);
    }
    template <int count, int words>
    FMHA_DEVICE void multiply_registers(ElementType type, RegisterArray<float, count>& d,
                                        const RegisterArray<std::uint32_t, words>& a, int a0,
                                        MatrixDescriptor b, bool accumulate) const {
        if (element_bits(type) == 8)
            GroupProduct8<2 * count>::from_registers(d.value, a.value + a0, b.bits, accumulate ? 1 : 0);
        else
            GroupProduct<2 * count>::from_registers(type, d.value, a.value + a0, b.bits); // always adds
    }
    template <int count>
    FMHA_DEVICE void commit_products(RegisterArray<float, count>&) const {
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }
    template <int count>
    FMHA_DEVICE void wait_products(int under_way, RegisterArray<float, count>& d) const {
        if (under_way == 0)
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        else
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        keep(d);
    }

  private:
    const WsLaunch* launch_;
    std::uint32_t lds_;

    FMHA_DEVICE std::uint32_t shared(int address) const { return lds_ + static_cast<std::uint32_t>(address); }
};

} // namespace fmha::hip_target::nvidia
