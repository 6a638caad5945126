#pragma once

#include "harness/cases/case.hpp"

/// Spellings of the case language's enumerations.
namespace fmha {

template <>
struct EnumTable<harness::Fill> {
    using enum harness::Fill;
    static constexpr std::array<EnumName<harness::Fill>, 14> names{{{normal, "normal"},
                                                                    {sharp, "sharp"},
                                                                    {indexed, "indexed"},
                                                                    {zeros, "zeros"},
                                                                    {huge, "huge"},
                                                                    {uniform, "uniform"},
                                                                    {integers, "integers"},
                                                                    {edge_last, "edge_last"},
                                                                    {edge_first, "edge_first"},
                                                                    {rising, "rising"},
                                                                    {ties, "ties"},
                                                                    {weight_ties, "weight_ties"},
                                                                    {shifted, "shifted"},
                                                                    {heavy_tailed, "heavy_tailed"}}};
    static constexpr auto& aliases = no_aliases<harness::Fill>;
};

template <>
struct EnumTable<harness::LengthForm> {
    using enum harness::LengthForm;
    static constexpr std::array<EnumName<harness::LengthForm>, 4> names{
        {{none, "none"}, {seqlen, "seqlen"}, {cu_seqlen, "cu_seqlen"}, {both, "both"}}};
    static constexpr auto& aliases = no_aliases<harness::LengthForm>;
};

template <>
struct EnumTable<harness::Layout> {
    using enum harness::Layout;
    static constexpr std::array<EnumName<harness::Layout>, 2> names{{{bhsd, "bhsd"}, {bshd, "bshd"}}};
    static constexpr auto& aliases = no_aliases<harness::Layout>;
};

template <>
struct EnumTable<harness::SinkLogits> {
    using enum harness::SinkLogits;
    static constexpr std::array<EnumName<harness::SinkLogits>, 4> names{
        {{none, "none"}, {normal, "normal"}, {saturated, "saturated"}, {neutral, "neutral"}}};
    static constexpr auto& aliases = no_aliases<harness::SinkLogits>;
};

template <>
struct EnumTable<harness::SplitStage> {
    static constexpr std::array<EnumName<harness::SplitStage>, 2> names{
        {{harness::SplitStage::both, "both"}, {harness::SplitStage::combine, "combine"}}};
    static constexpr auto& aliases = no_aliases<harness::SplitStage>;
};

template <>
struct EnumTable<harness::PartialLse> {
    using enum harness::PartialLse;
    static constexpr std::array<EnumName<harness::PartialLse>, 7> names{{{normal, "normal"},
                                                                         {equal, "equal"},
                                                                         {far, "far"},
                                                                         {wide, "wide"},
                                                                         {some_empty, "some_empty"},
                                                                         {all_empty, "all_empty"},
                                                                         {last_only, "last_only"}}};
    static constexpr auto& aliases = no_aliases<harness::PartialLse>;
};

template <>
struct EnumTable<harness::ForwardResults> {
    using enum harness::ForwardResults;
    static constexpr std::array<EnumName<harness::ForwardResults>, 2> names{
        {{reference, "reference"}, {kernel, "kernel"}}};
    static constexpr auto& aliases = no_aliases<harness::ForwardResults>;
};

template <>
struct EnumTable<harness::Expectation> {
    using enum harness::Expectation;
    static constexpr std::array<EnumName<harness::Expectation>, 3> names{
        {{pass, "pass"}, {invalid_problem, "invalid_problem"}, {no_kernel, "no_kernel"}}};
    static constexpr auto& aliases = no_aliases<harness::Expectation>;
};

} // namespace fmha
