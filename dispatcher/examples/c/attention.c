/* Attention through the C interface: plan, run on the host, and compare with the reference's library. */
#include <fmha/fmha.h>
#include <fmha/reference.h>

#include <math.h>
#include <stdio.h>

enum { heads = 4, rows = 60, keys = 90, width = 64 };

static float q[heads * rows * width], k[heads * keys * width], v[heads * keys * width],
    o[heads * rows * width];
static double exact[heads * rows * width];

static void fill(float* values, int count, unsigned state) {
    for (int i = 0; i < count; ++i) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
}

static fmha_tensor tensor(float* data, int length) {
    return (fmha_tensor){data, (int64_t)heads * length * width, (int64_t)length * width, width, 1};
}

int main(void) {
    fill(q, heads * rows * width, 1);
    fill(k, heads * keys * width, 2);
    fill(v, heads * keys * width, 3);

    fmha_context_options options = FMHA_INIT(fmha_context_options);
    options.arch = "gfx950";
    fmha_context* context = NULL;
    if (fmha_create(&options, &context) != FMHA_OK) {
        printf("%s\n", fmha_last_error(context));
        return 1;
    }
    fmha_fwd_args args = FMHA_ARGS(fmha_fwd_args, FMHA_FWD);
    args.shape.data_type = FMHA_FP32;
    args.shape.batch = 1;
    args.shape.nhead_q = args.shape.nhead_k = heads;
    args.shape.seqlen_q = rows;
    args.shape.seqlen_k = keys;
    args.shape.hdim_q = args.shape.hdim_v = width;
    args.q = tensor(q, rows);
    args.k = tensor(k, keys);
    args.v = tensor(v, keys);
    args.o = tensor(o, rows);
    args.mask.type = FMHA_BOTTOM_RIGHT; /* causal: nothing to the right of the diagonal */
    args.mask.window_left = -1;

    fmha_run_info info = FMHA_INIT(fmha_run_info);
    if (fmha_run_host(context, &args, &info) != FMHA_OK) {
        printf("%s\n", fmha_last_error(context));
        return 1;
    }
    printf("%s\n%.3f ms\n", info.kernel, info.milliseconds);

    char error[256] = "";
    if (fmha_reference_attention("gfx950", &args, exact, NULL, error, sizeof error) != FMHA_OK) {
        printf("%s\n", error);
        return 1;
    }
    double worst = 0.0;
    for (int i = 0; i < heads * rows * width; ++i) {
        const double distance = fabs((double)o[i] - exact[i]);
        worst = isnan(distance) ? INFINITY : fmax(worst, distance);
    }
    printf("worst error %g\n", worst);

    /* A mistake is a status and a sentence. */
    args.shape.hdim_q = 63;
    const fmha_status refused = fmha_run_host(context, &args, NULL);
    printf("%s (%s)\n", fmha_last_error(context), fmha_last_rule(context));
    fmha_destroy(context);
    return refused == FMHA_BAD_PROBLEM && worst < 1e-5 ? 0 : 1;
}
