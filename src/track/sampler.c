/* One thread, one line for each GPU and sample. */
#include "track/sampler.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/system/signals.h"
#include "base/text/json.h"
#include "tandem/json.h"
#include "tandem/log.h"
#include "track/lines.h"
#include "track/nvml.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { usual_ms = 5000, gpus_max = 64 };

struct tdmi_sampler {
    tdmi_arena arena;
    const char *path, *library;
    int64_t every_ms, started_ns;
    _Atomic int64_t step;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool is_ending; /* under lock */

    /* of the thread alone */
    tdmi_lines lines;
    double joules_before[gpus_max]; /* in the first sample; below 0: unknown */
    bool has_warned;
};

static void warn(tdmi_sampler *sampler, const tdm_error *err)
{
    if (!sampler->has_warned)
        tdm_log(TDM_LOG_WARNING, "%s: GPUs are not watched: %s", sampler->path,
                tdm_error_sentence(err, err->n_frames - 1));
    sampler->has_warned = true;
}

/* ---- a look ----------------------------------------------------------------------------- */

/* Below 0: unknown. */
static void put_number(tdm_json_writer *json, const char *key, double value)
{
    tdm_json_number(json, key, value < 0.0 ? NAN : value);
}

static void put_reasons(tdm_json_writer *json, int64_t reasons)
{
    if (reasons < 0) {
        tdm_json_null(json, "clocks_held_by");
        return;
    }
    tdm_json_array_begin(json, "clocks_held_by");
    for (int i = 0; i < 63; i++) {
        const int64_t reason = (int64_t)1 << i;
        const char *text = tdmi_nvml_reason_text(reason);
        char number[24];
        snprintf(number, sizeof number, "bit %d", i);
        if (reasons & reason)
            tdm_json_string(json, NULL, text ? text : number);
    }
    tdm_json_array_end(json);
}

static tdm_status write_line(tdmi_sampler *sampler, int gpu, const struct tdmi_nvml_sample *sample,
                             tdm_error *err)
{
    const char *line = NULL;
    size_t n_bytes = 0;
    const double before = gpu < gpus_max ? sampler->joules_before[gpu] : -1.0;
    const bool has_energy = before >= 0.0 && sample->energy_joules >= before;
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = tdm_json_writer_new(0);
    tdm_json_object_begin(json, NULL);
    tdm_json_number(json, "seconds", tdmi_clock_seconds_since(sampler->started_ns));
    tdm_json_integer(json, "step", atomic_load(&sampler->step));
    tdm_json_integer(json, "card", gpu);
    put_number(json, "busy_percent", sample->busy_percent);
    put_number(json, "memory_busy_percent", sample->memory_busy_percent);
    put_number(json, "memory_used_bytes", (double)sample->memory_used_bytes);
    put_number(json, "power_watts", sample->power_watts);
    put_number(json, "energy_joules", has_energy ? sample->energy_joules - before : -1.0);
    put_number(json, "sm_mhz", sample->sm_mhz);
    put_number(json, "memory_mhz", sample->memory_mhz);
    put_number(json, "temperature_celsius", sample->temperature_celsius);
    put_number(json, "pcie_sent_kb_per_s", (double)sample->pcie_sent_kb_per_s);
    put_number(json, "pcie_received_kb_per_s", (double)sample->pcie_received_kb_per_s);
    put_reasons(json, sample->reasons);
    tdm_json_object_end(json);
    TDMI_TRY(tdm_json_finish(json, &line, &n_bytes, err));
    return tdmi_lines_add(&sampler->lines, line, n_bytes, err);
}

static void look(tdmi_sampler *sampler, const tdmi_nvml *nvml, bool is_first)
{
    for (int gpu = 0; gpu < tdmi_nvml_count(nvml); gpu++) {
        struct tdmi_nvml_sample sample;
        tdm_error err = {0};
        tdm_status status = tdmi_nvml_sample(nvml, gpu, &sample, &err);
        if (status == TDM_OK && is_first && gpu < gpus_max)
            sampler->joules_before[gpu] = sample.energy_joules;
        if (status == TDM_OK)
            status = write_line(sampler, gpu, &sample, &err);
        if (status != TDM_OK)
            warn(sampler, &err);
    }
}

/* ---- the thread ------------------------------------------------------------------------- */

/* Until the next look is due; false: it is the last one. */
static bool wait_for_next(tdmi_sampler *sampler)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const int64_t ns = until.tv_nsec + sampler->every_ms % 1000 * 1000000;
    until.tv_sec += (time_t)(sampler->every_ms / 1000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_mutex_lock(&sampler->lock);
    int code = 0;
    while (!sampler->is_ending && code == 0)
        code = pthread_cond_timedwait(&sampler->ended, &sampler->lock, &until);
    const bool has_next = !sampler->is_ending;
    pthread_mutex_unlock(&sampler->lock);
    return has_next;
}

static void *watch(void *self)
{
    tdmi_sampler *sampler = self;
    tdmi_nvml *nvml = NULL;
    tdm_error err = {0};
    if (tdmi_nvml_open(sampler->library, &nvml, &err) != TDM_OK) {
        warn(sampler, &err);
        return NULL;
    }
    for (int gpu = 0; gpu < gpus_max; gpu++)
        sampler->joules_before[gpu] = -1.0;
    look(sampler, nvml, true);
    while (wait_for_next(sampler))
        look(sampler, nvml, false);
    look(sampler, nvml, false);
    tdmi_nvml_close(nvml);
    return NULL;
}

static void release(tdmi_sampler *sampler)
{
    pthread_cond_destroy(&sampler->ended);
    pthread_mutex_destroy(&sampler->lock);
    tdmi_lines_release(&sampler->lines);
    tdmi_arena_release(&sampler->arena);
    tdmi_free(sampler);
}

/* These cannot fail on the systems we build for. */
static void make_lock(tdmi_sampler *sampler)
{
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&sampler->lock, NULL);
    pthread_cond_init(&sampler->ended, &steady);
    pthread_condattr_destroy(&steady);
}

tdm_status tdmi_sampler_start(const char *folder, const char *library, int64_t every_ms,
                              tdmi_sampler **sampler, tdm_error *err)
{
    tdmi_sampler *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->path = tdmi_path_join(&made->arena, folder, "system.jsonl");
    made->library = library ? tdmi_arena_copy(&made->arena, library) : NULL;
    made->every_ms = every_ms > 0 ? every_ms : usual_ms;
    made->started_ns = tdmi_clock_ns();
    tdmi_lines_init(&made->lines, made->path);
    make_lock(made);
    tdm_status status = TDM_OK;
    sigset_t before;
    tdmi_signals_block(&before);
    if (!made->path || (library && !made->library))
        status = TDM_FAIL(err, TDM_E_MEMORY, "watching GPUs: out of memory");
    else if (pthread_create(&made->thread, NULL, watch, made) != 0)
        status = TDM_FAIL(err, TDM_E_SYSTEM, "watching GPUs: the system starts no thread");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status == TDM_OK)
        *sampler = made;
    else
        release(made);
    return status;
}

void tdmi_sampler_stop(tdmi_sampler *sampler)
{
    if (!sampler)
        return;
    pthread_mutex_lock(&sampler->lock);
    sampler->is_ending = true;
    pthread_cond_signal(&sampler->ended);
    pthread_mutex_unlock(&sampler->lock);
    pthread_join(sampler->thread, NULL);
    release(sampler);
}

void tdmi_sampler_place(tdmi_sampler *sampler, int64_t step)
{
    atomic_store(&sampler->step, step);
}
