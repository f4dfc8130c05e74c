/*
 * Whole synthetic data sets: what is written, what is refused, and what a run leaves behind when it
 * ends, fails, is stopped or is killed.
 */
#include "unit.h"
#include "data/tree.h"

#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/memory.h"
#include "synth/class.h"
#include "image/image.h"
#include "tandem/event.h"
#include "tandem/prepare.h"
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- whole data sets ----------------------------------------------------------------------- */

static struct tdm_synth_options small(const char *folder)
{
    struct tdm_synth_options options = tdm_synth_options_default();
    options.folder = folder;
    options.classes = 3;
    options.per_class = 4;
    options.size = 24;
    options.format = "ppm";
    return options;
}

static const tdm_sink nobody = {0};

static int n_entries(const char *path)
{
    DIR *list = opendir(path);
    if (!list)
        return -1;
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(list));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(list);
    return n;
}

static uint64_t file_hash(const char *folder, const char *name, int64_t *bytes)
{
    TDMI_AT_END(tdmi_free_at) void *content = NULL;
    size_t n = 0;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(tdmi_file_read(path, 1 << 16, &content, &n, NULL), TDM_OK);
    assert_true(n > 0);
    if (bytes)
        *bytes += (int64_t)n;
    return tdmi_xxh64_of(content, n, 0);
}

static void make(const struct tdm_synth_options *options, struct tdm_synth_result *result)
{
    tdm_error err = {0};
    assert_ok(tdm_synth(options, nobody, result, &err), &err);
}

TEST(threads_and_a_larger_set_change_no_picture)
{
    static const char *const names[] = {"000-striped-star/000000.ppm",
                                        "001-striped-disc/000003.ppm",
                                        "002-red-dotted-disc/000002.ppm"};
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char one[128], many[128], larger[128];
    snprintf(one, sizeof one, "%s/one", tree.root);
    snprintf(many, sizeof many, "%s/a/new/path", tree.root);
    snprintf(larger, sizeof larger, "%s/larger", tree.root);
    struct tdm_synth_options options = small(one);
    struct tdm_synth_result result = {.struct_bytes = sizeof result};
    options.threads = 1;
    make(&options, &result);
    assert_int_equal(result.images, 12);
    assert_int_equal(result.classes, 3);
    assert_int_equal(n_entries(one), 3);
    options.folder = many;
    options.threads = 5;
    make(&options, NULL);
    options.folder = larger;
    options.classes = 7;
    options.per_class = 9;
    make(&options, NULL);
    assert_int_equal(n_entries(larger), 7);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_true(file_hash(one, names[i], NULL) == file_hash(many, names[i], NULL));
        assert_true(file_hash(one, names[i], NULL) == file_hash(larger, names[i], NULL));
    }
    assert_true(file_hash(one, names[0], NULL) != file_hash(one, names[1], NULL));

    int64_t bytes = 0;
    for (int class_index = 0; class_index < 3; class_index++)
        for (int number = 0; number < 4; number++) {
            char class_name[TDMI_SYNTH_NAME_BYTES], name[128];
            tdmi_synth_class_name(class_index, class_name);
            snprintf(name, sizeof name, "%s/%06d.ppm", class_name, number);
            file_hash(one, name, &bytes);
        }
    assert_int_equal(bytes, result.bytes);

    options.folder = tree_path(&tree, "seed");
    options.seed = 43;
    make(&options, NULL);
    assert_true(file_hash(options.folder, names[0], NULL) != file_hash(one, names[0], NULL));
}

TEST(every_writable_format_is_written_and_any_case_is_accepted)
{
    static const struct {
        const char *format, *name;
        enum tdmi_image_format kind;
    } cases[] = {
        {"JPEG", "000-striped-star/000000.jpg", TDMI_IMAGE_JPEG},
        {"png", "000-striped-star/000000.png", TDMI_IMAGE_PNG},
        {"Bmp", "000-striped-star/000000.bmp", TDMI_IMAGE_BMP},
        {"ppm", "000-striped-star/000000.ppm", TDMI_IMAGE_PPM},
    };
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_error err = {0};
        char folder[128];
        snprintf(folder, sizeof folder, "%s/%zu", tree.root, i);
        struct tdm_synth_options options = small(folder);
        options.format = cases[i].format;
        tdm_status status = tdm_synth(&options, nobody, NULL, &err);
        if (tdmi_image_can_encode(cases[i].kind)) {
            assert_int_equal(status, TDM_OK);
            file_hash(folder, cases[i].name, NULL);
        } else {
            assert_int_equal(status, TDM_E_ABSENT);
            assert_non_null(strstr(tdm_error_sentence(&err, 0), "it can write"));
            assert_int_equal(n_entries(folder), -1);
        }
    }
}

/* ---- what is refused ----------------------------------------------------------------------- */

TEST(arguments_out_of_range_are_named_with_what_is_accepted)
{
    static const struct {
        int classes, per_class, size, threads;
        const char *format, *says;
    } cases[] = {
        {1, 4, 24, 0, "ppm", "classes is 1, which is not in 2 to 1000"},
        {1001, 4, 24, 0, "ppm", "classes is 1001"},
        {3, 0, 24, 0, "ppm", "per class is 0, which is not in 1 to 1000000"},
        {3, 1000001, 24, 0, "ppm", "per class is 1000001"},
        {3, 4, 15, 0, "ppm", "size in pixels is 15, which is not in 16 to 2048"},
        {3, 4, 2049, 0, "ppm", "size in pixels is 2049"},
        {3, 4, 24, -1, "ppm", "threads is -1, which is not in 0 to 4096"},
        {3, 4, 24, 0, "tiff", "cannot write tiff images: tandem reads them alone; this build can"},
        {3, 4, 24, 0, "webq", "\"webq\": unknown format; this build can write"},
        {3, 4, 24, 0, "", "unknown format"},
        {3, 4, 24, 0, NULL, "no image format was given"},
    };
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char folder[128];
    snprintf(folder, sizeof folder, "%s/out", tree.root);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_error err = {0};
        struct tdm_synth_options options = small(folder);
        options.classes = cases[i].classes;
        options.per_class = cases[i].per_class;
        options.size = cases[i].size;
        options.threads = cases[i].threads;
        options.format = cases[i].format;
        assert_failure(tdm_synth(&options, nobody, NULL, &err), TDM_E_USAGE, &err, cases[i].says);
        assert_int_equal(n_entries(folder), -1);
    }
    tdm_error err = {0};
    struct tdm_synth_options options = small(NULL);
    assert_int_equal(tdm_synth(&options, nobody, NULL, &err), TDM_E_USAGE);
    options.folder = "";
    assert_int_equal(tdm_synth(&options, nobody, NULL, &err), TDM_E_USAGE);
}

TEST(a_folder_that_holds_something_is_refused_and_left_alone)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char folder[128], file[128];
    tree_file(&tree, "full/mine.txt", "x", 1);
    snprintf(folder, sizeof folder, "%s/full", tree.root);
    snprintf(file, sizeof file, "%s/full/mine.txt", tree.root);
    tdm_error err = {0};
    struct tdm_synth_options options = small(folder);
    assert_failure(tdm_synth(&options, nobody, NULL, &err), TDM_E_USAGE, &err, folder);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "it holds mine.txt; name a folder"));
    assert_int_equal(n_entries(folder), 1);

    options.folder = file;
    assert_failure(tdm_synth(&options, nobody, NULL, &err), TDM_E_USAGE, &err, "it is a file");

    /* Nothing can be made below a file, whoever runs the test. */
    char below[160];
    snprintf(below, sizeof below, "%s/out", file);
    options.folder = below;
    assert_int_equal(tdm_synth(&options, nobody, NULL, &err), TDM_E_SYSTEM);
}

/* ---- what is left behind ------------------------------------------------------------------- */

struct listener {
    int n_begin, n_progress, n_end;
    int64_t done, total;
    bool is_stopping, is_killing;
};

static void hear(void *self, const tdm_event *event)
{
    struct listener *listener = self;
    assert_true(event->done >= listener->done);
    listener->done = event->done;
    listener->total = event->total;
    listener->n_begin += event->kind == TDM_EVENT_PHASE_BEGIN;
    listener->n_progress += event->kind == TDM_EVENT_PROGRESS;
    listener->n_end += event->kind == TDM_EVENT_PHASE_END;
    if (listener->is_stopping)
        tdm_stop_request();
    if (listener->is_killing && event->kind == TDM_EVENT_PROGRESS)
        raise(SIGKILL);
}

TEST(progress_is_told_from_begin_to_end)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct listener listener = {0};
    tdm_error err = {0};
    struct tdm_synth_options options = small(tree.root); /* an empty folder that exists */
    options.per_class = 300;
    options.size = 128;
    options.threads = 1; /* some 400 ms of work, told every 50 */
    assert_ok(tdm_synth(&options, (tdm_sink){&listener, hear}, NULL, &err), &err);
    assert_int_equal(listener.n_begin, 1);
    assert_int_equal(listener.n_end, 1);
    assert_true(listener.n_progress >= 1);
    assert_int_equal(listener.done, 900);
    assert_int_equal(listener.total, 900);
}

TEST(a_stop_takes_everything_away_again)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct listener listener = {.is_stopping = true};
    tdm_error err = {0};
    char made[128];
    snprintf(made, sizeof made, "%s/made", tree.root);
    struct tdm_synth_options options = small(made);
    assert_int_equal(tdm_synth(&options, (tdm_sink){&listener, hear}, NULL, &err), TDM_E_STOPPED);
    assert_int_equal(n_entries(made), -1);
    assert_int_equal(listener.n_end, 1);
    options.folder = tree.root; /* was there before: stays, empty */
    assert_int_equal(tdm_synth(&options, (tdm_sink){&listener, hear}, NULL, &err), TDM_E_STOPPED);
    assert_int_equal(n_entries(tree.root), 0);
    tdm_stop_clear();
    make(&options, NULL);
}

/* A limit on file sizes fails in write like a full disk does. */
TEST(a_write_that_fails_names_the_picture_and_leaves_nothing)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char folder[128];
    snprintf(folder, sizeof folder, "%s/out", tree.root);
    struct rlimit old, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    tight = old;
    tight.rlim_cur = 8192; /* less than any picture of 96 pixels */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    tdm_error err = {0};
    struct tdm_synth_options options = small(folder);
    options.size = 96;
    options.threads = 3;
    tdm_status status = tdm_synth(&options, nobody, NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, TDM_E_SYSTEM);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "cannot write the image"));
    assert_non_null(strstr(tdm_error_sentence(&err, 0), folder));
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "File too large"));
    assert_int_equal(n_entries(folder), -1);
}

TEST(a_killed_run_leaves_no_picture_under_a_final_name)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct tdm_synth_options options = small(tree.root);
    options.per_class = 2000;
    options.size = 96;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct listener listener = {.is_killing = true};
        tdm_error err = {0};
        _exit(tdm_synth(&options, (tdm_sink){&listener, hear}, NULL, &err) == TDM_OK ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(n_entries(tree.root), 1);
    assert_true(n_entries(tree_path(&tree, ".unfinished")) == 3);
    tdm_error err = {0};
    options.per_class = 4;
    assert_failure(tdm_synth(&options, nobody, NULL, &err), TDM_E_USAGE, &err,
                   "was killed and left .unfinished");
}

TEST(each_failing_allocation_is_reported_and_leaves_nothing)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char folder[128];
    snprintf(folder, sizeof folder, "%s/out", tree.root);
    struct tdm_synth_options options = small(folder);
    options.threads = 2;
    tdm_status status = TDM_E_MEMORY;
    int n = 0;
    while (status != TDM_OK && n < 1000) {
        tdm_error err = {0};
        tdmi_memory_fail_from(++n);
        status = tdm_synth(&options, nobody, NULL, &err);
        tdmi_memory_fail_from(0);
        if (status != TDM_OK) {
            assert_int_equal(status, TDM_E_MEMORY);
            assert_int_equal(n_entries(folder), -1);
        }
    }
    assert_in_range(n, 5, 999);
}

TEST_MAIN(NULL, NULL)
