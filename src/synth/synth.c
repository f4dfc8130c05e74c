/*
 * tdm_synth: checks the options, draws the images on all threads and writes them. Which thread
 * draws which image does not matter, because an image depends on nothing but the seed, its class,
 * its number and the size (synth/scene.h).
 */
#include "tandem/prepare.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/sized.h"
#include "synth/class.h"
#include "synth/folder.h"
#include "synth/scene.h"
#include "tandem/event.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_PER_CLASS = 1000000, MIN_SIZE = 16, MAX_SIZE = 2048, MAX_THREADS = 4096 };

/* Progress is reported at most this often: a sink may draw on a terminal. */
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
    int total, n_workers;
    atomic_int done;
    struct tdmi_synth_tables *tables;
    struct tdmi_synth_folder folder;
    struct worker *workers;
    tdmi_pool *pool;
};

static void release(struct job *job)
{
    tdmi_synth_folder_close(&job->folder);
    tdmi_free(job->tables);
    for (int i = 0; i < job->n_workers; i++) {
        tdmi_synth_canvas_release(&job->workers[i].canvas);
        tdmi_image_release(&job->workers[i].image);
        tdmi_text_release(&job->workers[i].file);
    }
    tdmi_free(job->workers);
    tdmi_pool_free(job->pool);
}

void tdm_synth_options_init(struct tdm_synth_options *options, size_t struct_bytes)
{
    static const struct tdm_synth_options usual = {
        .classes = 5, .per_class = 200, .size = 160, .seed = 42, .format = "jpeg"};
    tdmi_options_init(options, struct_bytes, &usual, sizeof usual);
}

/* ---- options -------------------------------------------------------------------- */

static const struct {
    const char *endings; /* ".jpg.jpeg", the first is used */
    const char *package; /* of the library; "" for none */
} formats[TDMI_IMAGE_FORMATS] = {
#define X(name, extensions, package) [TDMI_IMAGE_##name] = {extensions, package},
#include "image/formats/formats.def"
#undef X
};

/* "jpeg, png, bmp": the formats that this build can write. */
static tdm_status list_formats(tdmi_text *text, tdm_error *err)
{
    for (int f = TDMI_IMAGE_UNKNOWN + 1; f < TDMI_IMAGE_FORMATS; f++)
        if (tdmi_image_can_encode((enum tdmi_image_format)f))
            tdmi_text_printf(text, "%s%s", text->length_bytes > 0 ? ", " : "",
                             tdmi_image_format_name((enum tdmi_image_format)f));
    TDMI_TRY(tdmi_text_status(text, err));
    for (char *at = text->bytes; *at != '\0'; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
    return TDM_OK;
}

static tdm_status choose_format(struct job *job, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text writable = {0};
    const char *name = job->options->format;
    int f = TDMI_IMAGE_UNKNOWN + 1;
    TDMI_TRY(list_formats(&writable, err));
    if (!name)
        return TDM_FAIL(err, TDM_E_USAGE, "no image format was given; this build can write %s",
                        writable.bytes);
    while (f < TDMI_IMAGE_FORMATS &&
           strcasecmp(name, tdmi_image_format_name((enum tdmi_image_format)f)) != 0)
        f++;
    if (f == TDMI_IMAGE_FORMATS)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot write images as \"%s\": unknown format; this build "
                        "can write %s",
                        name, writable.bytes);
    const char *package = formats[f].package, *endings = formats[f].endings;
    job->format = (enum tdmi_image_format)f;
    if (!tdmi_image_is_written(job->format))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot write %s images: tandem reads them alone; this build can write %s",
                        name, writable.bytes);
    if (!tdmi_image_can_encode(job->format))
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "cannot write %s images: this build has no encoder for them%s%s%s; it "
                        "can write %s",
                        name, *package ? " (install " : "", package,
                        *package ? " and build again)" : "", writable.bytes);
    snprintf(job->ending, sizeof job->ending, "%.*s", 1 + (int)strcspn(endings + 1, "."), endings);
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
        {"the number of images per class", options->per_class, 1, MAX_PER_CLASS},
        {"the size in pixels", options->size, MIN_SIZE, MAX_SIZE},
        {"the number of threads", options->threads, 0, MAX_THREADS},
    };
    if (!options->folder || !*options->folder)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "no folder was given for the synthetic data set; name "
                        "one that is empty or does not exist");
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (ranges[i].value < ranges[i].low || ranges[i].value > ranges[i].high)
            return TDM_FAIL(err, TDM_E_USAGE, "%s is %d, which is not in %d to %d", ranges[i].what,
                            ranges[i].value, ranges[i].low, ranges[i].high);
    job->total = options->classes * options->per_class; /* at most 10^9 */
    return choose_format(job, err);
}

/* ---- the work ------------------------------------------------------------------------------ */

static void report(const struct job *job, tdm_event_kind kind)
{
    if (!job->sink.event)
        return;
    tdm_event event = {
        .kind = kind,
        .done = atomic_load(&job->done),
        .total = job->total,
        .seconds = tdmi_clock_seconds_since(job->begin_ns),
        .text = "drawing images",
    };
    job->sink.event(job->sink.self, &event);
}

/* One image. Neighbouring tasks go to different class folders, so that threads do not wait for
 * each other's lock on a folder. */
static tdm_status draw_picture(void *self, int index, int worker_number, tdm_error *err)
{
    struct job *job = self;
    struct worker *worker = &job->workers[worker_number];
    int class_index = index % job->options->classes;
    int64_t number = index / job->options->classes;
    if (tdm_stop_is_requested())
        return TDM_FAIL(err, TDM_E_STOPPED, "stopped after %d of %d images",
                        atomic_load(&job->done), job->total);
    int quality = 0;
    TDM_TRY(tdmi_synth_draw(job->tables, job->options->seed, class_index, number,
                            job->options->size, &worker->canvas, &worker->image, &quality, err),
            err, "cannot draw image %lld of class %d", (long long)number, class_index);
    tdmi_text_clear(&worker->file);
    TDM_TRY(tdmi_image_encode(&worker->image, job->format, quality, &worker->file, err), err,
            "cannot encode image %lld of class %d", (long long)number, class_index);
    TDMI_TRY(tdmi_synth_folder_write(&job->folder, class_index, number, job->ending,
                                     worker->file.bytes, worker->file.length_bytes, err));
    worker->bytes += (int64_t)worker->file.length_bytes;
    atomic_fetch_add(&job->done, 1);
    /* Worker 0 is the caller's thread, the only one that may talk to its sink. */
    if (worker_number == 0 && tdmi_clock_ns() - job->reported_ns >= report_every_ns) {
        job->reported_ns = tdmi_clock_ns();
        report(job, TDM_EVENT_PROGRESS);
    }
    return TDM_OK;
}

static tdm_status draw_all(struct job *job, tdm_error *err)
{
    report(job, TDM_EVENT_PHASE_BEGIN);
    tdm_status status = tdmi_pool_run(job->pool, job->total, draw_picture, job, err);
    if (status == TDM_OK)
        status = tdmi_synth_folder_commit(&job->folder, err);
    report(job, TDM_EVENT_PROGRESS); /* how far it came */
    report(job, TDM_EVENT_PHASE_END);
    return status;
}

static tdm_status make(struct job *job, tdm_error *err)
{
    const struct tdm_synth_options *options = job->options;
    TDMI_TRY(tdmi_pool_new(options->threads, NULL, &job->pool, err));
    TDMI_TRY(TDMI_NEW(job->workers, tdmi_pool_threads(job->pool), err));
    job->n_workers = tdmi_pool_threads(job->pool);
    TDMI_TRY(tdmi_synth_tables_new(options->seed, &job->tables, err));
    TDMI_TRY(tdmi_synth_folder_open(&job->folder, options->folder, options->classes, err));
    return draw_all(job, err);
}

tdm_status tdm_synth(const struct tdm_synth_options *options, tdm_sink sink,
                     struct tdm_synth_result *result, tdm_error *err)
{
    TDMI_OPTIONS(tdm_synth_options, options, tdm_synth_options_default(), err);
    TDMI_RESULT(tdm_synth_result, result, err);
    TDMI_AT_END(release)
    struct job job = {.options = options, .sink = sink, .begin_ns = tdmi_clock_ns()};
    TDM_TRY(check_options(&job, err), err, "nothing was written");
    TDM_TRY(make(&job, err), err, "no synthetic data set was made in %s", options->folder);
    *result = (struct tdm_synth_result){.images = job.total,
                                        .classes = options->classes,
                                        .seconds = tdmi_clock_seconds_since(job.begin_ns)};
    for (int i = 0; i < job.n_workers; i++)
        result->bytes += job.workers[i].bytes;
    return TDM_OK;
}
