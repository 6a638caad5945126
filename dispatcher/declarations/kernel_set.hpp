#pragma once

#include "dispatcher/types/kernel_config.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Lists of kernels that a program declares (dispatcher-api section 5). A declaration is a signature, an algorithm
/// and an architecture; some of its fields may be left open with ANY and are expanded against rule set `house`.
namespace fmha {

/// "Every value that rule set house has for this field."
struct AnyValue {};
inline constexpr AnyValue ANY{};

/// One value, or ANY.
template <class T>
class Axis {
  public:
    Axis(T value) : value_(value) {} // NOLINT(google-explicit-constructor): reads as a value
    Axis(AnyValue) : value_() {}     // NOLINT(google-explicit-constructor): reads as a value
    bool is_any() const { return !value_.has_value(); }
    const T& value() const { return *value_; }
    friend bool operator==(const Axis&, const Axis&) = default;

  private:
    std::optional<T> value_;
};

struct HeadDims {
    std::int64_t q = 0, v = 0;
    friend bool operator==(const HeadDims&, const HeadDims&) = default;
    friend auto operator<=>(const HeadDims&, const HeadDims&) = default;
};

/// Signature of a declaration. Setters take enumerations, or the tokens of section 5.1 as text; unknown tokens
/// throw DeclarationError that lists the allowed ones.
class SignatureDecl {
  public:
    SignatureDecl& family(KernelFamily value);
    SignatureDecl& family(std::string_view token);
    SignatureDecl& dtype(Axis<DataType> value);
    SignatureDecl& dtype(std::string_view token);
    SignatureDecl& mode(Axis<Mode> value);
    SignatureDecl& mode(std::string_view token);
    SignatureDecl& vlayout(VLayout value);
    SignatureDecl& vlayout(std::string_view token);
    SignatureDecl& hdim(std::int64_t both);
    SignatureDecl& hdim(std::int64_t q, std::int64_t v);
    SignatureDecl& hdim(AnyValue);
    SignatureDecl& mask(Axis<MaskClass> value);
    SignatureDecl& mask(std::string_view token);
    SignatureDecl& bias(Axis<BiasType> value);
    SignatureDecl& bias(std::string_view token);
    SignatureDecl& lse(Axis<bool> on);
    SignatureDecl& dropout(Axis<bool> on);
    SignatureDecl& qscale(QScale value);
    SignatureDecl& qscale(std::string_view token);
    SignatureDecl& rope(Rope value);
    SignatureDecl& rope(std::string_view token);
    SignatureDecl& logits(bool on);
    SignatureDecl& paged_kv(bool on);
    SignatureDecl& fp8_static_quant(bool on);
    SignatureDecl& skip(bool on);
    SignatureDecl& sink(bool on);
    SignatureDecl& sink_logit(bool on);
    SignatureDecl& dbias(bool on);
    SignatureDecl& store_randval(bool on);
    SignatureDecl& deterministic(bool on);
    SignatureDecl& kv_cache(KvLayout layout, KvLookup lookup, std::int32_t page_size);

    /// The fields that cannot be ANY; the axes below overwrite theirs.
    Signature fixed;
    Axis<DataType> data_type_axis{DataType::fp16};
    Axis<Mode> mode_axis{Mode::batch};
    Axis<HeadDims> hdim_axis{HeadDims{128, 128}};
    Axis<MaskClass> mask_axis{MaskClass::none};
    Axis<BiasType> bias_axis{BiasType::no_bias};
    Axis<bool> lse_axis{false};
    Axis<bool> dropout_axis{false};
    friend bool operator==(const SignatureDecl&, const SignatureDecl&) = default;
};

/// Block tile with the waves and warp tiles that go with it.
struct TileChoice {
    Tile tile{128, 64, 32, 128, 32, 128, 0, 0, 0};
    GemmTriples wave{2, 2, 1, 2, 2, 1, 1, 1, 1};
    GemmTriples warp{32, 32, 16, 32, 32, 16, 16, 16, 16};
    friend bool operator==(const TileChoice&, const TileChoice&) = default;
    friend auto operator<=>(const TileChoice&, const TileChoice&) = default;
};

/// Algorithm of a declaration (section 5.2). Unset tile entries are 0 and completed once, when the declaration is
/// added: n1 from hdim_v, k1 from k0, k0max from hdim_q, alignments from k0max and hdim_v.
class AlgorithmDecl {
  public:
    /// Six numbers, nine for bwd_dq_dk_dv; any other count throws DeclarationError.
    AlgorithmDecl& tile(std::initializer_list<int> numbers);
    AlgorithmDecl& tile(AnyValue);
    /// Three to nine numbers; the rest keep their defaults.
    AlgorithmDecl& wave(std::initializer_list<int> numbers);
    AlgorithmDecl& warp(std::initializer_list<int> numbers);
    AlgorithmDecl& tile_m0(int n) { return set_tile(&Tile::m0, n); }
    AlgorithmDecl& tile_n0(int n) { return set_tile(&Tile::n0, n); }
    AlgorithmDecl& tile_k0(int n) { return set_tile(&Tile::k0, n); }
    AlgorithmDecl& tile_n1(int n) { return set_tile(&Tile::n1, n); }
    AlgorithmDecl& tile_k1(int n) { return set_tile(&Tile::k1, n); }
    AlgorithmDecl& tile_k0max(int n) { return set_tile(&Tile::k0max, n); }
    AlgorithmDecl& wave_m0(int n) { return set_wave(&GemmTriples::m0, n); }
    AlgorithmDecl& wave_n0(int n) { return set_wave(&GemmTriples::n0, n); }
    AlgorithmDecl& wave_k0(int n) { return set_wave(&GemmTriples::k0, n); }
    AlgorithmDecl& wave_m1(int n) { return set_wave(&GemmTriples::m1, n); }
    AlgorithmDecl& wave_n1(int n) { return set_wave(&GemmTriples::n1, n); }
    AlgorithmDecl& wave_k1(int n) { return set_wave(&GemmTriples::k1, n); }
    AlgorithmDecl& warp_m0(int n) { return set_warp(&GemmTriples::m0, n); }
    AlgorithmDecl& warp_n0(int n) { return set_warp(&GemmTriples::n0, n); }
    AlgorithmDecl& warp_k0(int n) { return set_warp(&GemmTriples::k0, n); }
    AlgorithmDecl& warp_m1(int n) { return set_warp(&GemmTriples::m1, n); }
    AlgorithmDecl& warp_n1(int n) { return set_warp(&GemmTriples::n1, n); }
    AlgorithmDecl& warp_k1(int n) { return set_warp(&GemmTriples::k1, n); }
    AlgorithmDecl& pipeline(Axis<Pipeline> value);
    AlgorithmDecl& pipeline(std::string_view token);
    AlgorithmDecl& padding(bool s, bool sk, int d, int dv);
    AlgorithmDecl& trload(bool on);
    AlgorithmDecl& alignments(int q, int v);
    AlgorithmDecl& block_per_cu(int n);
    AlgorithmDecl& num_wave_groups(int n);
    AlgorithmDecl& max_splits_log2(int n);
    AlgorithmDecl& max_seq_len_q(std::int64_t n);
    AlgorithmDecl& selection_rank(int n);
    AlgorithmDecl& constraint(std::string_view name);
    AlgorithmDecl& load_mode(LoadMode mode);
    AlgorithmDecl& dropout_variant(DropoutVariant variant);

    AlgorithmDecl();
    Algorithm fixed; ///< tile, waves, warp tiles and pipeline live in the axes below
    Axis<TileChoice> tile_axis{TileChoice{}};
    Axis<Pipeline> pipeline_axis{Pipeline::qr_async};
    friend bool operator==(const AlgorithmDecl&, const AlgorithmDecl&) = default;

  private:
    AlgorithmDecl& set_tile(std::int16_t Tile::*entry, int n);
    AlgorithmDecl& set_wave(std::int16_t GemmTriples::*entry, int n);
    AlgorithmDecl& set_warp(std::int16_t GemmTriples::*entry, int n);
};

struct Declaration {
    SignatureDecl signature;
    AlgorithmDecl algorithm;
    Axis<ArchName> arch{ArchName()};

    bool has_wildcard() const;
    /// The kernel without its wildcard axes, as listings show it.
    KernelConfig config() const;
    friend bool operator==(const Declaration&, const Declaration&) = default;
};

/// A named list of declarations.
class KernelSet {
  public:
    explicit KernelSet(std::string name) : name_(std::move(name)) {}

    /// The architecture must be written, by name or as ANY.
    KernelSet& add(SignatureDecl signature, AlgorithmDecl algorithm, Axis<ArchName> arch);
    KernelSet& add(SignatureDecl signature, AlgorithmDecl algorithm, const char* arch);
    KernelSet& merge(const KernelSet& other);
    KernelSet& tag(std::string_view tag);

    const std::string& name() const { return name_; }
    const std::vector<Declaration>& declarations() const { return declarations_; }
    const std::vector<std::string>& tags() const { return tags_; }
    bool needs_expansion() const;
    /// One line a declaration, with the completed values and the wildcards.
    std::string to_string() const;
    friend bool operator==(const KernelSet&, const KernelSet&) = default;

  private:
    std::string name_;
    std::vector<Declaration> declarations_;
    std::vector<std::string> tags_;
};

/// The sets that `DECL_FMHA_KERNEL_SET` declared anywhere in the program, by name. Throws DeclarationError when one
/// name stands for two different sets, and the errors of the setters.
std::vector<KernelSet> declared_kernel_sets();

/// One of them; throws DeclarationError with the known names.
KernelSet declared_kernel_set(std::string_view name);

namespace detail {

/// Appends to the program's list of declared sets, its only static object. Sets are built when the list is read,
/// so that a wrong declaration is an exception there and not an abort before main.
struct DeclaredSet {
    DeclaredSet(const char* name, KernelSet (*make)());
};

} // namespace detail

#define DECL_FMHA_KERNEL_SET(name, ...)                                                                      \
    namespace {                                                                                              \
    const ::fmha::detail::DeclaredSet fmha_declared_set_##name(#name, [] {                                   \
        return ::fmha::KernelSet(#name) __VA_ARGS__;                                                         \
    });                                                                                                      \
    }

} // namespace fmha
