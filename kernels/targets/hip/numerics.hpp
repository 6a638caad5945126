#pragma once

#include "kernels/targets/numerics.hpp"

namespace fmha::hip_target {

/// Declared arithmetic of `config` on its own hardware (tolerances B.1).
///
/// - fp32 on NVIDIA goes through TF32: the operands of both products, P among them, are rounded to 11 significant
///   bits, so u_m = u_p = 2^-11 (PTX manual, `cvt.rna.tf32.f32`; the exponent range is that of fp32).
/// - NVIDIA's matrix units multiply exactly and keep subnormals. A sum of products is aligned to its largest term and
///   truncated (Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ CS 7, 2021, for
///   V100 to A100; Li et al., "FTTN", CCGrid 2024, and Xie et al., "MMA-Sim", 2025, for H100, which keeps at least two
///   bits more). Without those bits an instruction of depth k truncates k + 1 terms and the result, each by less than
///   one fp32 ulp of the largest: (k + 2) · 2^-23 for k products. The strict growth of 2^-23 a product is within a
///   quarter of that for k = 8 and within an eighth for k = 16, and above the error of units with two extra bits.
/// - Warp-group products of e4m3 keep some 14 bits of a sum: u_a = 2^-13 (tolerances B.1). Their kernels sum so over the channels of
///   a logit and over the keys of one tile, and add tiles in fp32: the promotion interval is the longer of the two (B.8).
/// - AMD's fp32 MFMA is a chain of fused multiply-adds, and CDNA 2 rounds its 16-bit sums to nearest (FTTN, MMA-Sim):
///   2^-24. CDNA 3 rounds them in one direction (MMA-Sim). Nothing is published on CDNA 4 and RDNA, which are taken to be
///   no better: 2^-23, truncating.
/// - CDNA 4's scaled instructions add the exponents of the scales to those of the products (instruction set manual, "8-bit
///   and Smaller Matrix Operations"), which costs nothing. 4-bit weights share a scale in a row's block of keys, at most
///   2^-2 because no weight exceeds 1: `storage_numerics` declares their floor for it.
/// - CDNA 2 flushes subnormal 16-bit operands (MIOpen, "MI200 MFMA behavior specifics"), so that weights below the
///   smallest normal number of P's type are lost: it is f_p there. The same happens to subnormal Q, K, V and dO, which no
///   declared number covers: the harness gives none to a kernel (`clear_of_subnormals`).
/// - The exponential is `ex2.approx.ftz` (relative error 2^-22, PTX manual) or `v_exp_f32` (1 ulp, AMD's instruction set
///   manuals); both flush results below 2^-126. tanh is made of it, with an absolute error below 2^-20.
Numerics numerics_of(const KernelConfig& config);

} // namespace fmha::hip_target
