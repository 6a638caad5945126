// libFuzzer target over the C interface. Every call must end in a status with its sentence, and never in FMHA_INTERNAL or FMHA_NO_MEMORY, which no
// argument explains. An input is a list of edits of a legal structure, or a text. No kernel is linked: a call on the host ends where
// it would launch one.
#include "dispatcher/include/fmha/fmha.h"
#include "dispatcher/types/error.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

std::shared_ptr<const fmha::KernelInstance> fmha::host_target::make_instance(const KernelConfig&, int) {
    throw UnsupportedInvocation("fuzzing computes nothing");
}

namespace {

using fmha::fuzz::require;

struct Context {
    fmha_context* handle = nullptr;

    /// `where` keeps few kernels, so that an input costs little.
    explicit Context(const char* where) {
        fmha_context_options options{};
        options.size = sizeof options;
        options.version = FMHA_ABI_VERSION;
        options.arch = "gfx950";
        require(fmha_create(&options, &handle) == FMHA_OK, fmha_last_error(handle));
        require(fmha_keep_kernels(handle, where) == FMHA_OK, fmha_last_error(handle));
    }
    ~Context() { fmha_destroy(handle); }
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
};

void judge(const Context& context, fmha_status status) {
    const std::string error = fmha_last_error(context.handle), rule = fmha_last_rule(context.handle);
    require(status != FMHA_INTERNAL && status != FMHA_NO_MEMORY, error);
    require((status == FMHA_OK) == error.empty(), "status " + std::to_string(status) + ": " + error);
    require(rule.empty() || status == FMHA_BAD_PROBLEM, "status " + std::to_string(status) + ", " + rule);
}

/// What any pointer points to; whoever only plans does not look.
alignas(16) std::array<std::int32_t, 1024> memory{};

/// A legal call; the members of other APIs that `Args` lacks stay out.
template <class Args>
Args legal(fmha_api api) {
    Args args{};
    args.size = sizeof args;
    args.version = FMHA_ABI_VERSION;
    args.api = api;
    const bool packed = api == FMHA_BATCH_PREFILL;
    args.shape = {.data_type = FMHA_BF16,
                  .mode = packed ? FMHA_GROUP : FMHA_BATCH,
                  .v_layout = FMHA_V_ROW,
                  .reserved = 0,
                  .batch = 2,
                  .nhead_q = 4,
                  .nhead_k = 2,
                  .seqlen_q = 65,
                  .seqlen_k = 129,
                  .max_seqlen_q = 65,
                  .max_seqlen_k = 129,
                  .min_seqlen_q = 0,
                  .hdim_q = 128,
                  .hdim_v = 128};
    const fmha_tensor some{memory.data(), 0, 0, 128, 1};
    args.q = args.k = args.v = some;
    if constexpr (requires { args.o; }) args.o = some;
    if constexpr (requires { args.mask; }) args.mask.window_left = args.mask.window_right = -1;
    if constexpr (requires { args.d_o; }) args.lse = args.d_o = args.d = args.dq = args.dk = args.dv = some;
    if (packed) {
        args.lengths.seqstart_q = memory.data();
        if constexpr (requires { args.place.kv_lookup; }) {
            args.place.page_size = 1024;
            args.place.page_count = 8;
            args.place.kv_layout = FMHA_KV_LINEAR;
            args.place.kv_lookup = FMHA_KV_SGLANG_1D;
            args.place.kv_indptr = args.place.kv_page_indices = args.place.kv_last_page_lens = memory.data();
        }
    } else if (api == FMHA_FWD_PAGEDKV || api == FMHA_FWD_APPENDKV) {
        args.lengths.seqlen_k = memory.data();
        if constexpr (requires { args.place.block_table; }) {
            args.place.block_table = memory.data();
            args.place.block_table_stride = 8;
            args.place.page_size = 128;
            args.place.page_count = 8;
        }
    }
    if constexpr (requires { args.k_new; }) {
        args.k_new = args.v_new = some;
        args.seqlen_knew = 3;
    }
    return args;
}

/// Writes four or eight bytes at a time over `args`: an offset and a value each. Header and API stay.
template <class Args>
void edit(Args& args, const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t header = 12, edit_bytes = 10;
    std::array<unsigned char, sizeof(Args)> bytes;
    std::memcpy(bytes.data(), &args, sizeof args);
    for (; size >= edit_bytes; data += edit_bytes, size -= edit_bytes) {
        const std::size_t word = data[0] | static_cast<unsigned>(data[1] & 0x7FU) << 8U;
        const std::size_t offset = header + word * 4 % (sizeof(Args) - header);
        const std::size_t width = (data[1] & 0x80U) != 0 ? 4 : 8;
        std::memcpy(bytes.data() + offset, data + 2, std::min(width, sizeof(Args) - offset));
    }
    std::memcpy(static_cast<void*>(&args), bytes.data(), sizeof args);
}

template <class Args>
void call(fmha_api api, unsigned choice, const std::uint8_t* data, std::size_t size) {
    static const Context context(
        "(c.hdim_q == 128 and c.hdim_v == 128 or c.family == 'fwd_splitkv_combine') and c.data_type == "
        "'bf16' and "
        "c.bias == 'no' and not c.has_dropout and (c.family != 'batch_prefill' or c.page_size == 1024)");
    Args args = legal<Args>(api);
    if (size == 0) {
        fmha_run_info info{};
        info.size = sizeof info;
        info.version = FMHA_ABI_VERSION;
        require(fmha_plan(context.handle, &args, &info) == FMHA_OK, fmha_last_error(context.handle));
        return;
    }
    edit(args, data, size);
    std::uint64_t length = 0;
    std::int64_t bytes = 0;
    std::int32_t exact = 0;
    std::array<char, 64> text{};
    switch (choice % 4) {
    case 0:
        judge(context, fmha_explain(context.handle, &args, text.data(), text.size(), &length));
        break;
    case 1:
        judge(context, fmha_workspace_size(context.handle, &args, &bytes, &exact));
        break;
    case 2:
        judge(context, fmha_prepare_workspace(context.handle, &args, memory.data(), nullptr));
        break;
    default:
        judge(context, fmha_plan(context.handle, &args, nullptr));
    }
}

/// The heuristic's names are the input.
const char* preferred(const void*, void* text) {
    return static_cast<const std::string*>(text)->c_str();
}

void read_text(unsigned choice, const std::uint8_t* data, std::size_t size) {
    static const Context context(
        "c.hdim_q == 128 and c.hdim_v == 128 and c.family == 'fwd' and c.data_type == 'bf16'");
    std::string text(reinterpret_cast<const char*>(data), size);
    std::array<char, 64> answer{};
    std::uint64_t length = 0;
    if (choice % 2 == 0) {
        judge(context,
              fmha_correct_kernel(context.handle, text.c_str(), answer.data(), answer.size(), &length));
        return;
    }
    judge(context, fmha_set_heuristic(context.handle, preferred, &text));
    const auto args = legal<fmha_fwd_args>(FMHA_FWD);
    judge(context, fmha_plan(context.handle, &args, nullptr));
    judge(context, fmha_set_heuristic(context.handle, nullptr, nullptr));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const unsigned choice = data[0] / 8;
    ++data, --size;
    switch ((data[-1]) % 8) {
    case 0:
        call<fmha_fwd_args>(FMHA_FWD, choice, data, size);
        break;
    case 1:
        call<fmha_pagedkv_args>(FMHA_FWD_PAGEDKV, choice, data, size);
        break;
    case 2:
        call<fmha_splitkv_args>(FMHA_FWD_SPLITKV, choice, data, size);
        break;
    case 3:
        call<fmha_appendkv_args>(FMHA_FWD_APPENDKV, choice, data, size);
        break;
    case 4:
        call<fmha_batch_prefill_args>(FMHA_BATCH_PREFILL, choice, data, size);
        break;
    case 5:
        call<fmha_bwd_args>(FMHA_BWD, choice, data, size);
        break;
    default:
        read_text(choice, data, size);
    }
    return 0;
}
