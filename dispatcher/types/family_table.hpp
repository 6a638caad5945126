#pragma once

/// The two tables of families. The enumerations, their names, the traits, the variant of arguments, the switch over programs and that
/// over the harness's families are made of their rows, and a row includes the arguments or the program of its family
/// (include_files.hpp). So a new family is a row in each and its own files: tests/toy_family adds one and counts.
/// `dispatcher/types/family_traits.hpp` says what the columns mean, and what those left out are.

// A line behind the last row ends the list, so that a new row is a line more and no line is another.
// clang-format off

/// `row(name, arguments, columns of ApiTraits…)` for every API.
#define FMHA_API_FAMILIES(row)                                                                                         \
    row(fwd, FwdArgs, .short_name = "fwd", .dropout = true, .min_seqlen_q = true, .tensor_maps = true)                 \
    row(fwd_pagedkv, PagedKvArgs, .short_name = "pagedkv", .reads_cache = true, .always_paged = true,                  \
        .tensor_maps = true)                                                                                           \
    row(fwd_splitkv, SplitKvArgs, .short_name = "splitkv", .reads_cache = true, .splits_keys = true)                   \
    row(fwd_appendkv, AppendKvArgs, .short_name = "appendkv", .attends = false, .reads_cache = true,                   \
        .stores_keys = true)                                                                                           \
    row(batch_prefill, BatchPrefillArgs, .short_name = "batch_prefill", .reads_cache = true, .always_paged = true,     \
        .lists_pages = true, .tensor_maps = true)                                                                      \
    row(bwd, BwdArgs, .short_name = "bwd", .gradients = true, .dropout = true)                                         \

/// `row(name, API, columns of KernelTraits…)` for every kernel family, those of an API in the order of their launches.
#define FMHA_KERNEL_FAMILIES(row)                                                                                      \
    row(fwd, fwd, .products = MatrixProducts::two, .key_tiles = true)                                                  \
    row(fwd_pagedkv, fwd_pagedkv, .products = MatrixProducts::two, .key_tiles = true)                                  \
    row(fwd_splitkv, fwd_splitkv, .products = MatrixProducts::two, .key_tiles = true, .stores_splits = true)           \
    row(fwd_splitkv_combine, fwd_splitkv, .key_axis = false, .query_dim = false, .combines_splits = true)              \
    row(fwd_appendkv, fwd_appendkv)                                                                                    \
    row(batch_prefill, batch_prefill, .products = MatrixProducts::two, .query_tiles = false)                           \
    row(bwd_dot_do_o, bwd, .key_axis = false, .query_dim = false, .row_sums = true)                                    \
    row(bwd_dq_dk_dv, bwd, .products = MatrixProducts::five, .query_tiles = false)                                     \
    row(bwd_convert_dq, bwd, .key_axis = false, .value_dim = false, .completes_dq = true)                              \

// Formatting stays off to the end of the file: clang-format 14 minds the line before one that switches it on.
