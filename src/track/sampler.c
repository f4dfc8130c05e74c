/* One thread, one line for each GPU and sample. */
#include "track/sampler.h"
#include "base/clock.h"
#include "base/memory.h"
#include "tandem/json.h"
#include "tandem/log.h"
#include "track/lines.h"
#include "track/nvml.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { usual_ms = 5000, gpus_max = 64 };

struct tdmi_sampler {
    char *path, *library; /* library NULL: the driver's */
    int64_t every_ms, started_ns;
    _Atomic int64_t step;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_lock, has_ended; /* what was made */
    bool is_ending;           /* under lock */

    /* of the thread alone */
    tdmi_lines lines;
    double joules_before[gpus_max]; /* in the first sample; below 0: unknown */
    bool has_warned;
};

static void warn(tdmi_sampler *sampler, const tdm_error *err)
{
    if (!sampler->has_warned)
        tdm_log(TDM_LOG_WARNING, "%s: GPUs are not watched: %s", sampler->path,
                err->n_frames > 0 ? tdm_error_sentence(err, err->n_frames - 1)
                                  : tdm_status_text(err->code));
    sampler->has_warned = true;
}

/* ---- a look ----------------------------------------------------------------------------- */

static void put_integer(tdm_json_writer *json, const char *key, int64_t value)
{
    if (value < 0)
        tdm_json_null(json, key);
    else
        tdm_json_integer(json, key, value);
}

static void put_number(tdm_json_writer *json, const char *key, double value)
{
    if (value < 0.0)
        tdm_json_null(json, key);
    else
        tdm_json_number(json, key, value);
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
    tdm_json_writer *json = tdm_json_writer_new(0);
    tdm_json_object_begin(json, NULL);
    tdm_json_number(json, "seconds", tdmi_clock_seconds_since(sampler->started_ns));
    tdm_json_integer(json, "step", atomic_load(&sampler->step));
    tdm_json_integer(json, "card", gpu);
    put_integer(json, "busy_percent", sample->busy_percent);
    put_integer(json, "memory_busy_percent", sample->memory_busy_percent);
    put_integer(json, "memory_used_bytes", sample->memory_used_bytes);
    put_number(json, "power_watts", sample->power_watts);
    put_number(json, "energy_joules", has_energy ? sample->energy_joules - before : -1.0);
    put_integer(json, "sm_mhz", sample->sm_mhz);
    put_integer(json, "memory_mhz", sample->memory_mhz);
    put_integer(json, "temperature_celsius", sample->temperature_celsius);
    put_integer(json, "pcie_sent_kb_per_s", sample->pcie_sent_kb_per_s);
    put_integer(json, "pcie_received_kb_per_s", sample->pcie_received_kb_per_s);
    put_reasons(json, sample->reasons);
    tdm_json_object_end(json);
    tdm_status status = tdm_json_finish(json, &line, &n_bytes, err);
    if (status == TDM_OK)
        status = tdmi_lines_add(&sampler->lines, line, n_bytes, err);
    tdm_json_writer_free(json);
    return status;
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
    const bool goes_on = !sampler->is_ending;
    pthread_mutex_unlock(&sampler->lock);
    return goes_on;
}

static void *watch(void *self)
{
    tdmi_sampler *sampler = self;
    tdmi_nvml *nvml = NULL;
    tdm_error err = {0};
    const tdm_status status = sampler->library ? tdmi_nvml_open_file(sampler->library, &nvml, &err)
                                               : tdmi_nvml_open(&nvml, &err);
    if (status != TDM_OK) {
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
    if (sampler->has_ended)
        pthread_cond_destroy(&sampler->ended);
    if (sampler->has_lock)
        pthread_mutex_destroy(&sampler->lock);
    tdmi_lines_release(&sampler->lines);
    tdmi_free(sampler->path);
    tdmi_free(sampler->library);
    tdmi_free(sampler);
}

static char *copy_text(const char *text)
{
    char *copy = tdmi_alloc(strlen(text) + 1, 1);
    if (copy)
        memcpy(copy, text, strlen(text));
    return copy;
}

static tdm_status make_meeting(tdmi_sampler *sampler, tdm_error *err)
{
    pthread_condattr_t steady;
    if (pthread_condattr_init(&steady) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "watching GPUs: the system gives no condition");
    sampler->has_lock = pthread_mutex_init(&sampler->lock, NULL) == 0;
    sampler->has_ended = pthread_condattr_setclock(&steady, CLOCK_MONOTONIC) == 0 &&
                         pthread_cond_init(&sampler->ended, &steady) == 0;
    pthread_condattr_destroy(&steady);
    if (!sampler->has_lock || !sampler->has_ended)
        return TDM_FAIL(err, TDM_E_SYSTEM, "watching GPUs: the system gives no lock");
    return TDM_OK;
}

tdm_status tdmi_sampler_start(const struct tdmi_sampler_options *options, tdmi_sampler **sampler,
                              tdm_error *err)
{
    tdmi_sampler *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "watching GPUs: out of memory");
    made->path = copy_text(options->path);
    made->library = options->library ? copy_text(options->library) : NULL;
    made->every_ms = options->every_ms > 0 ? options->every_ms : usual_ms;
    made->started_ns = tdmi_clock_ns();
    atomic_init(&made->step, 0);
    tdmi_lines_init(&made->lines, made->path);
    tdm_status status = made->path && (made->library || !options->library)
                            ? make_meeting(made, err)
                            : TDM_FAIL(err, TDM_E_MEMORY, "watching GPUs: out of memory");
    if (status == TDM_OK && pthread_create(&made->thread, NULL, watch, made) != 0)
        status = TDM_FAIL(err, TDM_E_SYSTEM, "watching GPUs: the system starts no thread");
    if (status != TDM_OK) {
        release(made);
        return status;
    }
    *sampler = made;
    return TDM_OK;
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
