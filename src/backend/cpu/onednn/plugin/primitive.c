/*
 * Seats of a primitive, claimed by one atomic exchange.
 */
#include "backend/cpu/onednn/plugin/primitive.h"
#include "base/system/affinity.h"

#include <sched.h>
#include <stdatomic.h>

struct seat {
    atomic_bool is_taken;
    dnnl_stream_t stream;
    dnnl_exec_arg_t arguments[TDMI_ONEDNN_ARGUMENTS];
};

struct tdmi_onednn_primitive {
    dnnl_primitive_t primitive;
    int places[TDMI_ONEDNN_ARGUMENTS]; /* in run's arrays, of each argument that is not left out */
    int n_arguments;
    struct seat *seats;
    int n_seats;
};

/* ---- one thread, no signals --------------------------------------------------------------- */

/* OpenMP as oneDNN brings it; NULL where it was built without. */
extern void omp_set_num_threads(int n) __attribute__((weak));
extern int omp_get_max_threads(void) __attribute__((weak));

struct tdmi_onednn_before tdmi_onednn_enter(void)
{
    struct tdmi_onednn_before before = {.threads = 1};
    tdmi_signals_block(&before.signals);
    if (omp_set_num_threads && omp_get_max_threads) {
        before.threads = omp_get_max_threads();
        if (before.threads != 1)
            omp_set_num_threads(1);
    }
    return before;
}

void tdmi_onednn_leave(const struct tdmi_onednn_before *before)
{
    if (before->threads != 1)
        omp_set_num_threads(before->threads);
    pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
}

/* ---- making ------------------------------------------------------------------------------- */

tdm_status tdmi_onednn_need_room(const char *what, tdm_error *err)
{
    if (tdmi_memory_has_room(TDMI_ONEDNN_ROOM_TO_MAKE))
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_MEMORY, "preparing %s: oneDNN wants %d MiB: out of memory", what,
                    TDMI_ONEDNN_ROOM_TO_MAKE >> 20);
}

tdm_status tdmi_onednn_explain(dnnl_status_t code, const char *what, tdm_error *err)
{
    if (code == dnnl_success)
        return TDM_OK;
    return TDM_FAIL(err, code == dnnl_out_of_memory ? TDM_E_MEMORY : TDM_E_ABSENT,
                    code == dnnl_unimplemented ? "oneDNN has no %s for this CPU (status %d)"
                                               : "oneDNN refused %s (status %d)",
                    what, (int)code);
}

size_t tdmi_onednn_scratch_bytes(const_dnnl_primitive_desc_t plan)
{
    return dnnl_memory_desc_get_size(
        dnnl_primitive_desc_query_md(plan, dnnl_query_scratchpad_md, 0));
}

static tdm_status fill_seat(tdmi_onednn_primitive *primitive, struct seat *seat,
                            dnnl_engine_t engine, const struct tdmi_onednn_argument *arguments,
                            tdm_error *err)
{
    TDMI_ONEDNN_TRY("a stream",
                    dnnl_stream_create(&seat->stream, engine, dnnl_stream_default_flags));
    for (int i = 0; i < primitive->n_arguments; i++) {
        const struct tdmi_onednn_argument *argument = &arguments[primitive->places[i]];
        seat->arguments[i].arg = argument->name;
        TDMI_ONEDNN_TRY("an argument",
                        dnnl_memory_create(&seat->arguments[i].memory, argument->layout, engine,
                                           DNNL_MEMORY_NONE));
    }
    return TDM_OK;
}

TDMI_POINTER_RELEASE(tdmi_onednn_primitive, tdmi_onednn_primitive_close)

tdm_status tdmi_onednn_primitive_open(const_dnnl_primitive_desc_t plan,
                                      const struct tdmi_onednn_argument *arguments, int n_arguments,
                                      tdmi_onednn_primitive **primitive, tdm_error *err)
{
    int cpus[TDMI_CPUS_MAX];
    dnnl_engine_t engine = NULL;
    TDMI_AT_END(tdmi_onednn_primitive_close_at) tdmi_onednn_primitive *made = NULL;
    *primitive = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    TDMI_TRY(tdmi_onednn_need_room("a primitive", err));
    int n_cpus = tdmi_affinity_mask(cpus, TDMI_CPUS_MAX);
    made->n_seats = n_cpus > 0 ? n_cpus : 1;
    TDMI_TRY(TDMI_NEW(made->seats, made->n_seats, err));
    for (int i = 0; i < n_arguments; i++)
        if (arguments[i].layout)
            made->places[made->n_arguments++] = i;
    const struct tdmi_onednn_before before = tdmi_onednn_enter();
    dnnl_status_t code = dnnl_primitive_create(&made->primitive, plan);
    tdmi_onednn_leave(&before);
    TDMI_ONEDNN_TRY("a primitive", code);
    TDMI_ONEDNN_TRY("a primitive", dnnl_primitive_desc_query(plan, dnnl_query_engine, 0, &engine));
    for (int i = 0; i < made->n_seats; i++)
        TDM_TRY(fill_seat(made, &made->seats[i], engine, arguments, err), err,
                "preparing a primitive for thread %d of %d", i + 1, made->n_seats);
    *primitive = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_onednn_primitive_close(tdmi_onednn_primitive *primitive)
{
    if (!primitive)
        return;
    for (int i = 0; primitive->seats && i < primitive->n_seats; i++) {
        struct seat *seat = &primitive->seats[i];
        for (int a = 0; a < TDMI_ONEDNN_ARGUMENTS; a++)
            dnnl_memory_destroy_at(&seat->arguments[a].memory);
        dnnl_stream_destroy_at(&seat->stream);
    }
    tdmi_free(primitive->seats);
    dnnl_primitive_destroy_at(&primitive->primitive);
    tdmi_free(primitive);
}

/* ---- running ------------------------------------------------------------------------------ */

/* More threads than seats can only meet here where threads outnumber CPUs: waiting costs nothing.
 */
static struct seat *take_seat(tdmi_onednn_primitive *primitive)
{
    for (;;) {
        for (int i = 0; i < primitive->n_seats; i++)
            if (!atomic_exchange_explicit(&primitive->seats[i].is_taken, true,
                                          memory_order_acquire))
                return &primitive->seats[i];
        sched_yield();
    }
}

bool tdmi_onednn_primitive_run(tdmi_onednn_primitive *primitive, const void *const *arrays)
{
    if (!tdmi_memory_has_room(TDMI_ONEDNN_ROOM_TO_RUN))
        return false;
    struct seat *seat = take_seat(primitive);
    dnnl_status_t code = dnnl_success;
    for (int i = 0; i < primitive->n_arguments && code == dnnl_success; i++)
        code = dnnl_memory_set_data_handle(
            seat->arguments[i].memory,
            (void *)(uintptr_t)arrays[primitive->places[i]]); /* outputs are the caller's own */
    const struct tdmi_onednn_before before = tdmi_onednn_enter();
    if (code == dnnl_success)
        code = dnnl_primitive_execute(primitive->primitive, seat->stream, primitive->n_arguments,
                                      seat->arguments);
    tdmi_onednn_leave(&before);
    atomic_store_explicit(&seat->is_taken, false, memory_order_release);
    return code == dnnl_success;
}
