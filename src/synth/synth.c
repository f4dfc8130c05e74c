/*
 * tdm_synth: checks what was asked for, draws the pictures on all threads and writes them. Which
 * thread draws which picture does not matter, because a picture depends on nothing but the seed,
 * its class, its number and the size (synth/scene.h).
 */
#include "tandem/prepare.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/sized.h"
#include "synth/class.h"
#include "synth/folder.h"
#include "synth/scene.h"
#include "tandem/event.h"
#include <stdatomic.h>
#include <string.h>
#include <strings.h>

enum { MAX_PER_CLASS = 1000000, MIN_SIZE = 16, MAX_SIZE = 2048, MAX_THREADS = 4096 };

/* Progress is told at most this often: a sink may draw on a terminal. */
static const int64_t report_every_ns = 50 * 1000000LL;

struct worker {
    struct tdmi_synth_canvas canvas;
    tdmi_image image;
    tdmi_text file;
    int64_t bytes;
};

struct job {
    const struct tdm_synth_options *options;
    tdm_sink sink;
    int64_t begin_ns, reported_ns; /* the calling thread's */
    enum tdmi_image_format format;
    char ending[8];
    int total;
    atomic_int done;
    struct tdmi_synth_tables *tables;
    struct tdmi_synth_folder folder;
    struct worker *workers;
};

void tdm_synth_options_init(struct tdm_synth_options *options, size_t struct_bytes)
{
    static const struct tdm_synth_options usual = {
        .classes = 5, .per_class = 200, .size = 160, .seed = 42, .format = "jpeg"};
    tdmi_options_init(options, struct_bytes, &usual, sizeof usual);
}

/* ---- options -------------------------------------------------------------------- */

static const struct {
    const char *endings; /* ".jpg.jpeg", the first is used */
    const char *prefetched_by;
} formats[TDMI_IMAGE_FORMATS] = {
#define X(name, extensions, what_brings_it) [TDMI_IMAGE_##name] = {extensions, what_brings_it},
#include "image/formats/formats.def"
#undef X
};

/* "jpeg, png, bmp": what this build can write. */
static void list_formats(char *text, size_t text_bytes)
{
    size_t length = 0;
    for (int f = TDMI_IMAGE_UNKNOWN + 1; f < TDMI_IMAGE_FORMATS; f++) {
        const char *name = tdmi_image_format_name((enum tdmi_image_format)f);
        if (!tdmi_image_can_encode((enum tdmi_image_format)f) || length + 12 > text_bytes)
            continue;
        if (length > 0) {
            memcpy(text + length, ", ", 2);
            length += 2;
        }
        for (; *name && length + 1 < text_bytes; name++)
            text[length++] = (char)(*name >= 'A' && *name <= 'Z' ? *name - 'A' + 'a' : *name);
    }
    text[length] = '\0';
}

static tdm_status choose_format(struct job *job, tdm_error *err)
{
    const char *asked = job->options->format;
    char writable[80];
    list_formats(writable, sizeof writable);
    if (!asked)
        return TDM_FAIL(err, TDM_E_USAGE, "no picture format was given; this build can write %s",
                        writable);
    for (int f = TDMI_IMAGE_UNKNOWN + 1; f < TDMI_IMAGE_FORMATS; f++) {
        if (strcasecmp(asked, tdmi_image_format_name((enum tdmi_image_format)f)) != 0)
            continue;
        job->format = (enum tdmi_image_format)f;
        if (!tdmi_image_can_encode(job->format)) {
            const char *prefetched_by = formats[f].prefetched_by;
            return TDM_FAIL(err, TDM_E_ABSENT,
                            "cannot write %s pictures: this build has no encoder for them%s%s%s; "
                            "it can write %s",
                            asked, *prefetched_by ? " (install " : "", prefetched_by,
                            *prefetched_by ? " and build again)" : "", writable);
        }
        size_t length = 1 + strcspn(formats[f].endings + 1, ".");
        memcpy(job->ending, formats[f].endings, length);
        job->ending[length] = '\0';
        return TDM_OK;
    }
    return TDM_FAIL(err, TDM_E_USAGE,
                    "cannot write pictures as \"%s\": unknown format; this build "
                    "can write %s",
                    asked, writable);
}

static tdm_status check_range(const char *what, int value, int low, int high, tdm_error *err)
{
    if (value < low || value > high)
        return TDM_FAIL(err, TDM_E_USAGE, "%s is %d, which is not in %d to %d", what, value, low,
                        high);
    return TDM_OK;
}

static tdm_status check_options(struct job *job, tdm_error *err)
{
    const struct tdm_synth_options *options = job->options;
    const struct {
        const char *what;
        int value, low, high;
    } ranges[] = {
        {"the number of classes", options->classes, 2, TDMI_SYNTH_CLASSES},
        {"the number of pictures per class", options->per_class, 1, MAX_PER_CLASS},
        {"the size in pixels", options->size, MIN_SIZE, MAX_SIZE},
        {"the number of threads", options->threads, 0, MAX_THREADS},
    };
    if (!options->folder || !*options->folder)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "no folder was given for the synthetic data set; name "
                        "one that is empty or does not exist");
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        TDM_TRY(check_range(ranges[i].what, ranges[i].value, ranges[i].low, ranges[i].high, err),
                err, "cannot make a synthetic data set in %s", options->folder);
    TDM_TRY(choose_format(job, err), err, "cannot make a synthetic data set in %s",
            options->folder);
    job->total = options->classes * options->per_class; /* at most 10^9 */
    return TDM_OK;
}

/* ---- the work ------------------------------------------------------------------------------ */

static void tell(const struct job *job, tdm_event_kind kind)
{
    if (!job->sink.event)
        return;
    tdm_event event = {
        .kind = kind,
        .done = atomic_load(&job->done),
        .total = job->total,
        .seconds = tdmi_clock_seconds_since(job->begin_ns),
        .text = "drawing pictures",
    };
    job->sink.event(job->sink.self, &event);
}

/* One picture. Neighbouring tasks go to different class folders, so that threads do not wait for
 * each other's lock on a folder. */
static tdm_status draw_picture(void *self, int index, int worker_number, tdm_error *err)
{
    struct job *job = self;
    struct worker *worker = &job->workers[worker_number];
    int class_index = index % job->options->classes;
    int64_t number = index / job->options->classes;
    if (tdm_stop_is_requested())
        return TDM_FAIL(err, TDM_E_STOPPED, "stopped after %d of %d pictures",
                        atomic_load(&job->done), job->total);
    int quality = 0;
    TDM_TRY(tdmi_synth_draw(job->tables, job->options->seed, class_index, number,
                            job->options->size, &worker->canvas, &worker->image, &quality, err),
            err, "cannot draw a picture");
    tdmi_text_clear(&worker->file);
    TDM_TRY(tdmi_image_encode(&worker->image, job->format, quality, &worker->file, err), err,
            "cannot encode picture %lld of class %d", (long long)number, class_index);
    TDM_TRY(tdmi_synth_folder_write(&job->folder, class_index, number, job->ending,
                                    worker->file.bytes, worker->file.length_bytes, err),
            err, "picture %d of %d", index + 1, job->total);
    worker->bytes += (int64_t)worker->file.length_bytes;
    atomic_fetch_add(&job->done, 1);
    /* Worker 0 is the caller's thread, the only one that may talk to its sink. */
    if (worker_number == 0 && tdmi_clock_ns() - job->reported_ns >= report_every_ns) {
        job->reported_ns = tdmi_clock_ns();
        tell(job, TDM_EVENT_PROGRESS);
    }
    return TDM_OK;
}

static tdm_status draw_all(struct job *job, tdmi_pool *pool, tdm_error *err)
{
    tell(job, TDM_EVENT_PHASE_BEGIN);
    tdm_status status = tdmi_pool_run(pool, job->total, draw_picture, job, err);
    if (status == TDM_OK)
        status = tdmi_synth_folder_commit(&job->folder, err);
    tell(job, TDM_EVENT_PROGRESS); /* how far it came */
    tell(job, TDM_EVENT_PHASE_END);
    return status;
}

tdm_status tdm_synth(const struct tdm_synth_options *options, tdm_sink sink,
                     struct tdm_synth_result *result, tdm_error *err)
{
    TDMI_OPTIONS(tdm_synth_options, options, tdm_synth_options_default(), err);
    TDMI_RESULT(tdm_synth_result, result, err);
    struct job job = {.options = options, .sink = sink, .begin_ns = tdmi_clock_ns()};
    tdmi_pool *pool = NULL;
    int n_workers = 0;
    TDM_TRY(check_options(&job, err), err, "nothing was written");

    tdm_status status = tdmi_pool_new(options->threads, false, &pool, err);
    if (status != TDM_OK)
        goto out;
    n_workers = tdmi_pool_threads(pool);
    job.workers = tdmi_alloc((size_t)n_workers, sizeof *job.workers);
    if (!job.workers) {
        status = TDM_FAIL(err, TDM_E_MEMORY, "no memory for %d drawing threads", n_workers);
        goto out;
    }
    status = tdmi_synth_tables_new(options->seed, &job.tables, err);
    if (status != TDM_OK)
        goto out;
    status = tdmi_synth_folder_open(&job.folder, options->folder, options->classes, err);
    if (status != TDM_OK)
        goto out;
    status = draw_all(&job, pool, err);
    if (status != TDM_OK)
        goto out;

    int64_t bytes = 0;
    for (int i = 0; i < n_workers; i++)
        bytes += job.workers[i].bytes;
    *result = (struct tdm_synth_result){.images = job.total,
                                        .classes = options->classes,
                                        .bytes = bytes,
                                        .seconds = tdmi_clock_seconds_since(job.begin_ns)};
out:
    tdmi_synth_folder_close(&job.folder);
    tdmi_synth_tables_free(job.tables);
    for (int i = 0; i < n_workers && job.workers; i++) {
        tdmi_synth_canvas_release(&job.workers[i].canvas);
        tdmi_image_release(&job.workers[i].image);
        tdmi_text_release(&job.workers[i].file);
    }
    tdmi_free(job.workers);
    tdmi_pool_free(pool);
    return status == TDM_OK
               ? TDM_OK
               : TDM_WRAP(err, status, "no synthetic data set was made in %s", options->folder);
}
