// libFuzzer target over the C interface. Every call must end in a status with its sentence, and never in FMHA_INTERNAL or FMHA_NO_MEMORY, which no
// argument explains. An input is a list of edits of a legal structure and of the numbers that its arrays hold, or a text. No kernel is
// linked: a call on the host ends where one has been launched and would compute.
#include "dispatcher/include/fmha/fmha.h"
#include "dispatcher/types/error.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/launch.hpp"
#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace {

using fmha::fuzz::require;

/// Judges its arguments as every kernel of the host does, and computes nothing.
class IdleKernel final : public fmha::KernelInstance {
  public:
    explicit IdleKernel(const fmha::KernelConfig& config) : config_(config) {}
    const fmha::KernelConfig& config() const override { return config_; }
    std::string name() const override { return "idle." + identifier(config_); }
    void launch(const fmha::Invocation& invocation, fmha::Stream) const override {
        fmha::targets::with_launch(config_, invocation, fmha::targets::Elements::of,
                                   [](auto, const auto&) {});
    }

  private:
    fmha::KernelConfig config_;
};

} // namespace

std::shared_ptr<const fmha::KernelInstance> fmha::host_target::make_instance(const KernelConfig& config,
                                                                             int) {
    return std::make_shared<IdleKernel>(config);
}

namespace {

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

/// The array behind every pointer; planning does not look at it. As lengths, offsets and pages of a few entries the first numbers are legal: they
/// begin with 0, as offsets do. Lengths of last pages, which are above 0, begin at the second.
using Numbers = std::array<std::int32_t, 1024>;
alignas(16) Numbers memory{};
constexpr std::size_t edited_numbers = 64;

const std::int32_t* last_page_lens() {
    return memory.data() + 1;
}

void fill_memory() {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::int32_t>(i % 7);
}

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
    // Elements of an output have places of their own (L-4): more rows than a head has, more heads than an entry has.
    constexpr std::int64_t row = 128, head = 1024 * row, entry = 4 * head;
    const fmha_tensor some{memory.data(), entry, head, row, 1};
    // Nobody looks into tensors, but outputs have memory of their own.
    auto own = [&some, n = std::uintptr_t{0}]() mutable {
        fmha_tensor output = some;
        output.data = reinterpret_cast<void*>(++n << 40U); // NOLINT(performance-no-int-to-ptr)
        return output;
    };
    args.q = args.k = args.v = some;
    if constexpr (requires { args.o; }) args.o = own();
    if constexpr (requires { args.mask; }) args.mask.window_left = args.mask.window_right = -1;
    if constexpr (requires { args.d_o; }) {
        args.lse = args.d_o = some;
        for (fmha_tensor* output : {&args.d, &args.dq, &args.dk, &args.dv}) *output = own();
    }
    if (packed) {
        args.lengths.seqstart_q = memory.data();
        if constexpr (requires { args.place.kv_lookup; }) {
            args.place.page_size = 1024;
            args.place.page_count = 8;
            args.place.kv_layout = FMHA_KV_LINEAR;
            args.place.kv_lookup = FMHA_KV_SGLANG_1D;
            args.place.kv_indptr = args.place.kv_page_indices = memory.data();
            args.place.kv_last_page_lens = last_page_lens();
        }
    } else if (api == FMHA_FWD_PAGEDKV || api == FMHA_FWD_APPENDKV) {
        args.lengths.seqlen_k = memory.data();
        if constexpr (requires { args.place.block_table; }) {
            args.place.block_table = memory.data();
            args.place.block_table_stride = 8;
            args.place.page_size = 128;
            args.place.page_count = 8;
        }
    } else if constexpr (requires { args.num_splits; }) {
        args.place.cache_batch_idx = memory.data();
        args.place.page_count = 8;
    }
    if constexpr (requires { args.k_new; }) {
        args.k = own();
        args.v = own();
        args.k_new = args.v_new = some;
        args.seqlen_knew = 3;
    }
    return args;
}

/// Writes four or eight bytes at a time over `args` and the first numbers in memory: an offset and a value each. Header and API stay.
template <class Args>
void edit(Args& args, const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t header = 12, edit_bytes = 10, numbers = edited_numbers * sizeof memory[0];
    std::array<unsigned char, sizeof(Args) + numbers> bytes;
    std::memcpy(bytes.data(), &args, sizeof args);
    std::memcpy(bytes.data() + sizeof args, memory.data(), numbers);
    for (; size >= edit_bytes; data += edit_bytes, size -= edit_bytes) {
        const std::size_t word = data[0] | static_cast<unsigned>(data[1] & 0x7FU) << 8U;
        const std::size_t offset = header + word * 4 % (bytes.size() - header);
        const std::size_t width = (data[1] & 0x80U) != 0 ? 4 : 8;
        std::memcpy(bytes.data() + offset, data + 2, std::min(width, bytes.size() - offset));
    }
    std::memcpy(static_cast<void*>(&args), bytes.data(), sizeof args);
    std::memcpy(memory.data(), bytes.data() + sizeof args, numbers);
}

void point_to_memory(const std::int32_t*& array) {
    if (array != nullptr) array = memory.data();
}

/// `extent`, or a smaller one of the same kind.
void limit(std::int64_t& extent, std::int64_t most) {
    if (extent > most) extent %= most + 1;
}

/// Offsets of a packed batch in memory of the host are read even by who only plans, batch + 1 of them.
template <class Args>
void keep_offsets(Args& args) {
    if constexpr (requires { args.host_seqstart_q; }) {
        point_to_memory(args.host_seqstart_q);
        point_to_memory(args.host_seqstart_k);
        if (args.host_seqstart_q != nullptr)
            limit(args.shape.batch, static_cast<std::int64_t>(memory.size()) - 1);
    }
}

/// The duty of a caller on the host: arrays that can be read where the arguments say that they have elements. The library can check no address.
template <class Args>
void keep_promises(Args& args) {
    constexpr std::int64_t far = 200, most_entries = 15, most_heads = 64;
    constexpr auto row = static_cast<std::int64_t>(memory.size()) / (most_entries + 1);
    // Offsets and pages that numbers in memory name lie in memory as well.
    for (std::int32_t& number : memory) number = std::clamp(number, -2, static_cast<std::int32_t>(far));
    fmha_shape& shape = args.shape;
    limit(shape.batch, most_entries);
    limit(shape.nhead_q, most_heads);
    limit(shape.nhead_k, most_heads);
    fmha_lengths& lengths = args.lengths;
    for (const std::int32_t** array : {&lengths.seqstart_q, &lengths.seqstart_k, &lengths.seqlen_q,
                                       &lengths.seqlen_k, &lengths.cu_seqlen_q, &lengths.cu_seqlen_k})
        point_to_memory(*array);
    // Four bytes each, as the numbers have: any bits are a float.
    if constexpr (requires { args.score; })
        if (args.score.sink_logit != nullptr)
            args.score.sink_logit = reinterpret_cast<const float*>(memory.data());
    if constexpr (requires { args.place; }) {
        fmha_kv_place& place = args.place;
        for (const std::int32_t** array :
             {&place.block_table, &place.kv_indptr, &place.kv_page_indices, &place.cache_batch_idx})
            point_to_memory(*array);
        if (place.kv_last_page_lens != nullptr) place.kv_last_page_lens = last_page_lens();
        // A single row may be said to be long, as nobody reads it beyond its keys.
        if (shape.batch > 1) limit(place.block_table_stride, row);
        if constexpr (requires { args.seqlen_knew; })
            if (place.block_table_stride > row) limit(args.seqlen_knew, far);
    }
    if constexpr (requires { args.quant; }) {
        if (args.quant.qscale == 0) return;
        // Every scale of every block is read.
        limit(shape.batch, 2);
        limit(shape.nhead_q, 4);
        limit(shape.nhead_k, 4);
        limit(shape.seqlen_q, far);
        limit(shape.seqlen_k, far);
        point_to_memory(args.quant.block_scale_seqstart_q);
        point_to_memory(args.quant.block_scale_seqstart_k);
        for (fmha_tensor* scale : {&args.quant.q_descale, &args.quant.k_descale, &args.quant.v_descale})
            *scale = {scale->data == nullptr ? nullptr : memory.data(), 0, 0, 0, 0};
    }
}

/// On the host, unless it would need much memory.
template <class Args>
void run_on_host(const Context& context, Args& args) {
    constexpr std::int64_t most_bytes = 1 << 24;
    keep_promises(args);
    std::int64_t bytes = 0;
    if (fmha_workspace_size(context.handle, &args, &bytes, nullptr) != FMHA_OK) bytes = 0;
    if (bytes <= most_bytes) judge(context, fmha_run_host(context.handle, &args, nullptr));
}

template <class Args>
void call(fmha_api api, unsigned choice, const std::uint8_t* data, std::size_t size) {
    static const Context context(
        "(c.hdim_q == 128 and c.hdim_v == 128 or c.family == 'fwd_splitkv_combine') and c.data_type == "
        "'bf16' and "
        "c.bias == 'no' and not c.has_dropout and (c.family != 'batch_prefill' or c.page_size == 1024)");
    Args args = legal<Args>(api);
    fill_memory();
    if (size == 0) {
        fmha_run_info info{};
        info.size = sizeof info;
        info.version = FMHA_ABI_VERSION;
        require(fmha_plan(context.handle, &args, &info) == FMHA_OK, fmha_last_error(context.handle));
        require(fmha_run_host(context.handle, &args, &info) == FMHA_OK, fmha_last_error(context.handle));
        return;
    }
    edit(args, data, size);
    keep_offsets(args);
    std::uint64_t length = 0;
    std::int64_t bytes = 0;
    std::int32_t exact = 0;
    std::array<char, 64> text{};
    switch (choice % 8) {
    case 0:
        judge(context, fmha_explain(context.handle, &args, text.data(), text.size(), &length));
        break;
    case 1:
        judge(context, fmha_workspace_size(context.handle, &args, &bytes, &exact));
        break;
    case 2:
        judge(context, fmha_prepare_workspace(context.handle, &args, memory.data(), nullptr));
        break;
    case 3:
        judge(context, fmha_plan(context.handle, &args, nullptr));
        break;
    default:
        run_on_host(context, args);
    }
}

/// The heuristic's names are the input.
const char* preferred(const void*, void* text) {
    return static_cast<const std::string*>(text)->c_str();
}

/// A context with that heuristic; to set one costs more than many plans.
struct Advised {
    Context context{"c.hdim_q == 128 and c.hdim_v == 128 and c.family == 'fwd' and c.data_type == 'bf16'"};
    std::string text;

    Advised() { judge(context, fmha_set_heuristic(context.handle, preferred, &text)); }
};

void read_text(unsigned choice, const std::uint8_t* data, std::size_t size) {
    static Advised advised;
    const Context& context = advised.context;
    advised.text.assign(reinterpret_cast<const char*>(data), size);
    std::array<char, 64> answer{};
    std::uint64_t length = 0;
    if (choice % 2 == 0) {
        judge(context, fmha_correct_kernel(context.handle, advised.text.c_str(), answer.data(), answer.size(),
                                           &length));
        return;
    }
    const auto args = legal<fmha_fwd_args>(FMHA_FWD);
    judge(context, fmha_plan(context.handle, &args, nullptr));
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
