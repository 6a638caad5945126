// Includes the files that the macro FMHA_FILES lists: strings, each with a comma behind it, at most 16. A table of families gives such a list,
// so that its row includes the files of a family. A list is used once, hence no #pragma once; and the preprocessor has no loop.
// Who follows includes by reading lines (kernels/generator/headers.cpp) has to know about this one.

#ifndef FMHA_QUOTED
/// A path as a string. Macros do not change it.
#define FMHA_QUOTED(path) #path

#define FMHA_FILE_0(file, ...) file
#define FMHA_FILE_1(file, ...) FMHA_FILE_0(__VA_ARGS__)
#define FMHA_FILE_2(file, ...) FMHA_FILE_1(__VA_ARGS__)
#define FMHA_FILE_3(file, ...) FMHA_FILE_2(__VA_ARGS__)
#define FMHA_FILE_4(file, ...) FMHA_FILE_3(__VA_ARGS__)
#define FMHA_FILE_5(file, ...) FMHA_FILE_4(__VA_ARGS__)
#define FMHA_FILE_6(file, ...) FMHA_FILE_5(__VA_ARGS__)
#define FMHA_FILE_7(file, ...) FMHA_FILE_6(__VA_ARGS__)
#define FMHA_FILE_8(file, ...) FMHA_FILE_7(__VA_ARGS__)
#define FMHA_FILE_9(file, ...) FMHA_FILE_8(__VA_ARGS__)
#define FMHA_FILE_10(file, ...) FMHA_FILE_9(__VA_ARGS__)
#define FMHA_FILE_11(file, ...) FMHA_FILE_10(__VA_ARGS__)
#define FMHA_FILE_12(file, ...) FMHA_FILE_11(__VA_ARGS__)
#define FMHA_FILE_13(file, ...) FMHA_FILE_12(__VA_ARGS__)
#define FMHA_FILE_14(file, ...) FMHA_FILE_13(__VA_ARGS__)
#define FMHA_FILE_15(file, ...) FMHA_FILE_14(__VA_ARGS__)
#define FMHA_NTH_FILE(n, ...) FMHA_FILE_##n(__VA_ARGS__)
// Behind the last file stands one that is included already.
#define FMHA_FOUR_MORE                                                                                       \
    "dispatcher/types/family_table.hpp", "dispatcher/types/family_table.hpp",                                \
        "dispatcher/types/family_table.hpp", "dispatcher/types/family_table.hpp"
#define FMHA_FILE(n)                                                                                         \
    FMHA_NTH_FILE(n, FMHA_FILES FMHA_FOUR_MORE, FMHA_FOUR_MORE, FMHA_FOUR_MORE, FMHA_FOUR_MORE)
#endif

#include FMHA_FILE(0)
#include FMHA_FILE(1)
#include FMHA_FILE(2)
#include FMHA_FILE(3)
#include FMHA_FILE(4)
#include FMHA_FILE(5)
#include FMHA_FILE(6)
#include FMHA_FILE(7)
#include FMHA_FILE(8)
#include FMHA_FILE(9)
#include FMHA_FILE(10)
#include FMHA_FILE(11)
#include FMHA_FILE(12)
#include FMHA_FILE(13)
#include FMHA_FILE(14)
#include FMHA_FILE(15)
