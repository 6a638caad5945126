/* A C17 program that uses the installed interface and nothing else. Exits with the number of failed checks. */
#include <fmha/fmha.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            ++failures;                                                                                      \
        }                                                                                                    \
    } while (0)

enum { rows = 3, keys = 4, dim = 8 };

static fmha_tensor packed(void* data, int64_t length, int64_t width) {
    const fmha_tensor tensor = {data, length * width, length * width, width, 1};
    return tensor;
}

/* One head with the queries, keys and values of the specification's worked example in channel 0. */
struct example {
    float q[rows * dim], k[keys * dim], v[keys * dim], o[rows * dim], lse[rows];
    fmha_fwd_args args;
};

static void set_up(struct example* e) {
    static const float q[rows] = {1, 2, -1}, k[keys] = {1, 0, -1, 2}, v[keys] = {1, 2, 4, -8};
    memset(e, 0, sizeof *e);
    for (int i = 0; i < rows; ++i) e->q[i * dim] = q[i];
    for (int j = 0; j < keys; ++j) e->k[j * dim] = k[j], e->v[j * dim] = v[j];
    e->args = FMHA_ARGS(fmha_fwd_args, FMHA_FWD);
    e->args.shape.data_type = FMHA_FP32;
    e->args.shape.batch = e->args.shape.nhead_q = e->args.shape.nhead_k = 1;
    e->args.shape.seqlen_q = rows;
    e->args.shape.seqlen_k = keys;
    e->args.shape.hdim_q = e->args.shape.hdim_v = dim;
    e->args.mask.window_left = e->args.mask.window_right = -1;
    e->args.score.scale_s = 1.0F;
    e->args.q = packed(e->q, rows, dim);
    e->args.k = packed(e->k, keys, dim);
    e->args.v = packed(e->v, keys, dim);
    e->args.o = packed(e->o, rows, dim);
    e->args.lse = packed(e->lse, rows, 1);
}

static int near(float value, double expected) {
    return fabs((double)value - expected) <= 2e-5 * fabs(expected);
}

static void known_answers(fmha_context* context) {
    struct example e;
    fmha_run_info info = FMHA_INIT(fmha_run_info);
    set_up(&e);
    CHECK(fmha_run_host(context, &e.args, &info) == FMHA_OK);
    CHECK(strcmp(fmha_last_error(context), "") == 0);
    CHECK(near(e.o[0], -4.61190821) && near(e.o[dim], -6.76231966) && near(e.o[2 * dim], 2.88009817));
    CHECK(near(e.lse[0], 2.44018970) && near(e.lse[1], 4.14507794) && near(e.lse[2], 1.44018970));
    CHECK(strstr(info.kernel, "fp32") != NULL);
    CHECK(info.milliseconds > 0.0);

    set_up(&e);
    e.args.mask.type = FMHA_TOP_LEFT;
    e.args.mask.window_right = 0;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_OK);
    CHECK(near(e.o[0], 1.0) && near(e.o[dim], 1.11920292) && near(e.o[2 * dim], 3.24045134));
    CHECK(near(e.lse[1], 2.12692801));
}

static void refusals(fmha_context* context) {
    struct example e;
    fmha_run_info info = FMHA_INIT(fmha_run_info);
    set_up(&e);
    e.args.shape.nhead_q = 3;
    e.args.shape.nhead_k = 2;
    CHECK(fmha_plan(context, &e.args, &info) == FMHA_BAD_PROBLEM);
    CHECK(strcmp(fmha_last_rule(context), "H-1") == 0);
    CHECK(strstr(fmha_last_error(context), "not a multiple") != NULL);

    set_up(&e);
    e.args.dropout.p_drop = 1.0F;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_BAD_PROBLEM);
    CHECK(strcmp(fmha_last_rule(context), "D-1") == 0);

    set_up(&e);
    e.args.score.scale_o = 2.0F;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_BAD_PROBLEM);
    CHECK(strcmp(fmha_last_rule(context), "O-1") == 0);

    set_up(&e);
    e.args.shape.hdim_q = 512;
    CHECK(fmha_plan(context, &e.args, &info) == FMHA_NO_KERNEL);
    CHECK(strstr(fmha_last_error(context), "hdim_q is 512") != NULL);

    set_up(&e);
    e.args.size -= 4;
    CHECK(fmha_plan(context, &e.args, &info) == FMHA_BAD_ARGUMENT);
    CHECK(strstr(fmha_last_error(context), "args.size") != NULL);

    set_up(&e);
    e.args.version = 7;
    CHECK(fmha_plan(context, &e.args, &info) == FMHA_BAD_ARGUMENT);

    set_up(&e);
    e.args.shape.data_type = 99;
    CHECK(fmha_plan(context, &e.args, &info) == FMHA_BAD_ARGUMENT);

    set_up(&e);
    e.args.v.data = NULL;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_BAD_ARGUMENT);
    CHECK(strstr(fmha_last_error(context), "v.data") != NULL);

    /* Tensors without elements are null, and rows without keys have a result all the same. */
    set_up(&e);
    e.args.shape.seqlen_k = 0;
    e.args.k.data = e.args.v.data = NULL;
    e.o[0] = e.lse[0] = 7.0F;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_OK);
    CHECK(e.o[0] == 0.0F && e.lse[0] == -INFINITY);
    e.args.o.data = NULL;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_BAD_ARGUMENT);
    CHECK(strstr(fmha_last_error(context), "o.data") != NULL);
    set_up(&e);
    e.args.shape.seqlen_q = 0;
    e.args.q.data = e.args.o.data = e.args.lse.data = NULL;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_OK);
    set_up(&e);
    e.args.shape.data_type = FMHA_FP8BF16;
    e.args.quant.qscale = FMHA_PERTENSOR;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_BAD_ARGUMENT);
    CHECK(strcmp(fmha_last_error(context), "q_descale.data is NULL") == 0);

    set_up(&e);
    e.args.api = FMHA_BWD; /* whose structure is another */
    CHECK(fmha_plan(context, &e.args, &info) == FMHA_BAD_ARGUMENT);
    CHECK(strstr(fmha_last_error(context), "args.size") != NULL);
    e.args.api = 17;
    CHECK(fmha_plan(context, &e.args, &info) == FMHA_BAD_ARGUMENT);
    CHECK(strstr(fmha_last_error(context), "args.api is 17") != NULL);

    set_up(&e);
    int64_t bytes = -1;
    int32_t exact = 0;
    CHECK(fmha_workspace_size(context, &e.args, &bytes, &exact) == FMHA_OK && bytes == 0 && exact == 1);
    CHECK(fmha_prepare_workspace(context, &e.args, NULL, NULL) == FMHA_OK);
    CHECK(fmha_workspace_size(context, &e.args, NULL, NULL) == FMHA_BAD_ARGUMENT);
    fmha_splitkv_args split = FMHA_ARGS(fmha_splitkv_args, FMHA_FWD_SPLITKV);
    split.shape = e.args.shape;
    split.shape.data_type = FMHA_BF16;
    split.shape.hdim_q = split.shape.hdim_v = 128;
    split.num_splits = 3;
    CHECK(fmha_workspace_size(context, &split, &bytes, &exact) == FMHA_OK && exact == 1);
    CHECK(bytes == 48 + 3 * rows * 128 * 4); /* S-3: lse_acc, rounded up to 16 bytes, and o_acc */
    split.shape.max_seqlen_q = 1;            /* of fewer rows than the kernels write */
    CHECK(fmha_workspace_size(context, &split, &bytes, NULL) == FMHA_BAD_PROBLEM);
    CHECK(strstr(fmha_last_error(context), "every entry of the batch has 3 rows") != NULL);
    split.shape.max_seqlen_q = 0;
    CHECK(fmha_prepare_workspace(context, &split, (void*)1, NULL) == FMHA_BAD_ARGUMENT);
    CHECK(fmha_run_host(context, &split, NULL) == FMHA_BAD_ARGUMENT);
    CHECK(strstr(fmha_last_error(context), "q.data is NULL") != NULL);
    /* Keys of a row of the block table: 2^63 and more would not fit. */
    const int64_t row_lengths[] = {-1, ((int64_t)1 << 31) + 1, INT64_MAX};
    for (int i = 0; i < 3; ++i) {
        split.place.page_size = 128;
        split.place.block_table_stride = row_lengths[i];
        CHECK(fmha_plan(context, &split, NULL) == FMHA_BAD_PROBLEM);
        CHECK(strcmp(fmha_last_rule(context), "P-2") == 0);
        CHECK(strstr(fmha_last_error(context), "place.block_table_stride is ") != NULL);
    }

    set_up(&e);
    CHECK(fmha_run_device(context, &e.args, NULL, NULL) == FMHA_UNSUPPORTED);
    CHECK(fmha_run_host(context, NULL, NULL) == FMHA_BAD_ARGUMENT);
    CHECK(fmha_run_host(NULL, &e.args, NULL) == FMHA_BAD_ARGUMENT);
}

/* A member without a meaning is 0, a flag 0 or 1; anything else is memory that its caller did not set. */
static void members_of_few_values(fmha_context* context) {
    static struct example e;
    static fmha_splitkv_args split;
    static fmha_appendkv_args append;
    static fmha_bwd_args bwd;
    const struct {
        const void* args;
        int32_t* member;
        const char* sentence;
    } rows_of_table[] = {
        {&e.args, &e.args.reserved, "args.reserved is 2; allowed: 0"},
        {&e.args, &e.args.shape.reserved, "shape.reserved is 2; allowed: 0"},
        {&e.args, &e.args.mask.reserved, "mask.reserved is 2; allowed: 0"},
        {&e.args, &e.args.dropout.reserved, "dropout.reserved is 2; allowed: 0"},
        {&e.args, &e.args.quant.reserved, "quant.reserved is 2; allowed: 0"},
        {&split, &split.reserved, "args.reserved is 2; allowed: 0"},
        {&split, &split.place.reserved, "place.reserved is 2; allowed: 0"},
        {&split, &split.place.is_gappy, "place.is_gappy is 2; allowed: 0 and 1"},
        {&append, &append.has_mask, "args.has_mask is 2; allowed: 0 and 1"},
        {&append, &append.rope.reserved, "rope.reserved is 2; allowed: 0"},
        {&bwd, &bwd.reserved, "args.reserved is 2; allowed: 0"},
        {&bwd, &bwd.deterministic, "args.deterministic is 2; allowed: 0 and 1"},
        {&bwd, &bwd.reduce_dk_dv, "args.reduce_dk_dv is 2; allowed: 0 and 1"},
    };
    set_up(&e);
    split = FMHA_ARGS(fmha_splitkv_args, FMHA_FWD_SPLITKV);
    append = FMHA_ARGS(fmha_appendkv_args, FMHA_FWD_APPENDKV);
    bwd = FMHA_ARGS(fmha_bwd_args, FMHA_BWD);
    split.shape = append.shape = bwd.shape = e.args.shape;
    for (size_t i = 0; i < sizeof rows_of_table / sizeof *rows_of_table; ++i) {
        *rows_of_table[i].member = 2;
        CHECK(fmha_plan(context, rows_of_table[i].args, NULL) == FMHA_BAD_ARGUMENT);
        CHECK(strcmp(fmha_last_error(context), rows_of_table[i].sentence) == 0);
        *rows_of_table[i].member = 0;
    }
    e.args.reserved = -1;
    CHECK(fmha_plan(context, &e.args, NULL) == FMHA_BAD_ARGUMENT);
}

/* Lengths that lead out of tensors, or past rows that nobody would compute (N-1, N-2), and sink logits that are no numbers (K-5). */
static void lengths(fmha_context* context) {
    struct example e;
    set_up(&e);
    int32_t all_queries = rows, some_keys = keys - 1;
    e.args.lengths.seqlen_q = &all_queries;
    e.args.lengths.seqlen_k = &some_keys;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_OK);
    some_keys = keys + 1;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_BAD_PROBLEM);
    CHECK(strcmp(fmha_last_rule(context), "N-1") == 0);
    CHECK(strstr(fmha_last_error(context), "seqlen_k of entry 0 is 5; allowed: 0 to 4") != NULL);
    some_keys = -1;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_BAD_PROBLEM);

    set_up(&e);
    int32_t starts_q[] = {0, rows}, starts_k[] = {0, keys};
    e.args.shape.mode = FMHA_GROUP;
    e.args.shape.max_seqlen_q = rows;
    e.args.lengths.seqstart_q = starts_q;
    e.args.lengths.seqstart_k = starts_k;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_OK);
    e.args.shape.max_seqlen_q = rows - 1;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_BAD_PROBLEM);
    CHECK(strcmp(fmha_last_rule(context), "N-2") == 0);
    CHECK(strstr(fmha_last_error(context), "max_seqlen_q is 2, entry 0 has 3 queries") != NULL);
    e.args.shape.max_seqlen_q = rows;
    starts_k[1] = -1;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_BAD_PROBLEM);
    CHECK(strstr(fmha_last_error(context), "seqstart_k goes from 0 to -1 at entry 0") != NULL);
    starts_k[1] = keys;
    const int32_t cumulative[] = {0, keys + 1};
    e.args.lengths.cu_seqlen_k = cumulative;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_BAD_PROBLEM);
    CHECK(strstr(fmha_last_error(context), "cu_seqlen_k of entry 0 is 5") != NULL);

    set_up(&e);
    float sink = -INFINITY;
    e.args.score.sink_logit = &sink;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_OK && near(e.lse[0], 2.44018970));
    sink = INFINITY;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_BAD_PROBLEM);
    CHECK(strcmp(fmha_last_rule(context), "K-5") == 0);
    sink = NAN;
    CHECK(fmha_run_host(context, &e.args, NULL) == FMHA_BAD_PROBLEM);
}

/* A workspace for so many splits of dQ has more bytes than 64 bits count. */
static void workspace_beyond_64_bits(fmha_context* context) {
    float any = 0;
    int64_t bytes = 0;
    fmha_bwd_args args = FMHA_ARGS(fmha_bwd_args, FMHA_BWD);
    const int32_t starts[1] = {0};
    args.shape.data_type = FMHA_FP16;
    args.shape.mode = FMHA_GROUP;
    args.lengths.seqstart_q = args.lengths.seqstart_k = starts;
    args.shape.max_seqlen_q = args.shape.max_seqlen_k = 1 << 20;
    args.shape.batch = 1 << 20;
    args.shape.nhead_q = args.shape.nhead_k = 1 << 10;
    args.shape.seqlen_q = args.shape.seqlen_k = 1 << 20;
    args.shape.hdim_q = args.shape.hdim_v = 128;
    args.mask.window_left = args.mask.window_right = -1;
    args.deterministic = 1;
    args.q = args.k = args.v = args.o = args.lse = args.d_o = args.d = args.dq = args.dk = args.dv =
        packed(&any, 1, 128);
    CHECK(fmha_workspace_size(context, &args, &bytes, NULL) == FMHA_BAD_ARGUMENT);
    CHECK(strstr(fmha_last_error(context), "exceeds 64-bit sizes") != NULL);
}

static void contexts(void) {
    fmha_context_options options = FMHA_INIT(fmha_context_options);
    fmha_context* context = NULL;
    options.arch = "0";
    CHECK(fmha_create(&options, &context) == FMHA_BAD_ARGUMENT);
    CHECK(strstr(fmha_last_error(context), "gfx950") != NULL); /* the known architectures are listed */
    CHECK(fmha_kernel_count(context) == 0);
    struct example e;
    set_up(&e);
    CHECK(fmha_plan(context, &e.args, NULL) == FMHA_BAD_ARGUMENT);
    fmha_destroy(context);
    CHECK(fmha_create(&options, NULL) == FMHA_BAD_ARGUMENT);
    fmha_destroy(NULL);
}

static void layouts(void) {
    fmha_field_layout fields[64];
    uint64_t size = 0;
    const uint64_t count = fmha_layout("fmha_fwd_args", fields, 64, &size);
    CHECK(size == sizeof(fmha_fwd_args));
    CHECK(count > 0 && fields[count - 1].offset + fields[count - 1].size == sizeof(fmha_fwd_args));
    for (uint64_t i = 0; i < count; ++i) {
        if (strcmp(fields[i].name, "lse") == 0) CHECK(fields[i].offset == offsetof(fmha_fwd_args, lse));
        if (strcmp(fields[i].name, "dropout") == 0)
            CHECK(fields[i].offset == offsetof(fmha_fwd_args, dropout));
        if (strcmp(fields[i].name, "dropout") == 0) CHECK(strcmp(fields[i].type, "fmha_dropout") == 0);
    }
    CHECK(fmha_layout("fmha_run_info", NULL, 0, &size) == 5 && size == sizeof(fmha_run_info));
    CHECK(fmha_layout("nonsense", fields, 64, &size) == 0);
}

/* Prefers what `user` says, but for calls without LSE. */
static const char* wide_tiles(const void* args, void* user) {
    const fmha_fwd_args* call = args;
    return call->lse.data != NULL ? user : NULL;
}

static void heuristics(fmha_context* context) {
    struct example e;
    fmha_run_info usual = FMHA_INIT(fmha_run_info), info = FMHA_INIT(fmha_run_info);
    char wide[] = "\nfwd_gfx950_fp32_*_h256x256_*", unknown[] = "no_such_kernel";
    set_up(&e);
    CHECK(fmha_plan(context, &e.args, &usual) == FMHA_OK);
    CHECK(strstr(usual.kernel, "_h256x256_") == NULL);
    CHECK(fmha_set_heuristic(context, wide_tiles, wide) == FMHA_OK);
    CHECK(fmha_run_host(context, &e.args, &info) == FMHA_OK);
    CHECK(strstr(info.kernel, "_h256x256_") != NULL);
    CHECK(near(e.o[0], -4.61190821));
    e.args.lse.data = NULL;
    CHECK(fmha_plan(context, &e.args, &info) == FMHA_OK && strstr(info.kernel, "_h256x256_") == NULL);
    e.args.lse.data = e.lse;
    CHECK(fmha_set_heuristic(context, wide_tiles, unknown) == FMHA_OK);
    CHECK(fmha_plan(context, &e.args, &info) == FMHA_BAD_ARGUMENT);
    CHECK(strstr(fmha_last_error(context), "no_such_kernel") != NULL);
    CHECK(fmha_set_heuristic(context, NULL, NULL) == FMHA_OK);
    CHECK(fmha_plan(context, &e.args, &info) == FMHA_OK && strcmp(info.kernel, usual.kernel) == 0);

    /* Names are those of the kernels that are left. */
    fmha_context_options options = FMHA_INIT(fmha_context_options);
    options.arch = "gfx950";
    fmha_context* few = NULL;
    CHECK(fmha_create(&options, &few) == FMHA_OK);
    CHECK(fmha_set_heuristic(few, wide_tiles, wide) == FMHA_OK);
    CHECK(fmha_keep_kernels(few, "c.hdim_q < 256") == FMHA_OK);
    CHECK(fmha_plan(few, &e.args, &info) == FMHA_BAD_ARGUMENT);
    CHECK(strstr(fmha_last_error(few), "no kernel of this context is called fwd_gfx950_fp32_") != NULL);
    fmha_destroy(few);
}

static void corrections(fmha_context* context) {
    char text[16384];
    uint64_t length = 0;
    CHECK(fmha_correct_kernel(context,
                              "{\"signature\": {\"data_type\": \"fp16\", \"hdim_q\": 100, \"hdim_v\": 128}}",
                              text, sizeof text, &length) == FMHA_OK);
    CHECK(length > 0 && length < sizeof text && strstr(text, "VR-01: hdim_q 100") != NULL);
    CHECK(strstr(text, "\"signature.hdim_q\"") != NULL && strstr(text, "\"valid\": false") != NULL);
    CHECK(fmha_correct_kernel(context, "{\"signatur\": {}}", text, sizeof text, &length) ==
          FMHA_BAD_ARGUMENT);
    CHECK(strstr(fmha_last_error(context), "signatur") != NULL);
    CHECK(fmha_correct_kernel(context, NULL, text, sizeof text, &length) == FMHA_BAD_ARGUMENT);
}

int main(void) {
    CHECK(fmha_abi_version() == FMHA_ABI_VERSION);
    fmha_context_options options = FMHA_INIT(fmha_context_options);
    options.arch = "gfx950";
    fmha_context* context = NULL;
    CHECK(fmha_create(&options, &context) == FMHA_OK);
    CHECK(fmha_kernel_count(context) > 10000);
    known_answers(context);
    refusals(context);
    members_of_few_values(context);
    lengths(context);
    workspace_beyond_64_bits(context);
    heuristics(context);
    corrections(context);
    fmha_destroy(context);
    contexts();
    layouts();
    return failures;
}
