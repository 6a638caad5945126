/* A project that knows nothing of the source tree: it finds the installed library and plans a kernel. */
#include <fmha/fmha.h>
#include <stdio.h>

int main(void) {
    fmha_context_options options = FMHA_INIT(fmha_context_options);
    options.arch = "gfx950";
    fmha_context* context = NULL;
    if (fmha_create(&options, &context) != FMHA_OK) {
        fprintf(stderr, "%s\n", fmha_last_error(context));
        fmha_destroy(context);
        return 1;
    }
    char placeholder = 0; /* planning looks only at whether a pointer is null */
    fmha_fwd_args args = FMHA_ARGS(fmha_fwd_args, FMHA_FWD);
    args.shape.data_type = FMHA_BF16;
    args.shape.batch = 1;
    args.shape.nhead_q = 8;
    args.shape.nhead_k = 2;
    args.shape.seqlen_q = args.shape.seqlen_k = 1000;
    args.shape.hdim_q = args.shape.hdim_v = 128;
    args.q.data = args.k.data = args.v.data = args.o.data = &placeholder;
    fmha_run_info info = FMHA_INIT(fmha_run_info);
    const fmha_status status = fmha_plan(context, &args, &info);
    printf("%s%s\n", status == FMHA_OK ? info.kernel : "", fmha_last_error(context));
    fmha_destroy(context);
    return status == FMHA_OK ? 0 : 1;
}
