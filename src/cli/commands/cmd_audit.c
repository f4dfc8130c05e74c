/*
 * tandem audit SRC: what is in a data set, before anything is made of it.
 */
#include "cli/command.h"
#include "base/scope.h"
#include "tandem/prepare.h"
#include "tandem/log.h"
#include "tandem/model.h"
#include "cli/watch.h"

#include <math.h>

struct values {
    struct tdm_audit_options audit;
    int show;
};

static void defaults(void *values)
{
    *(struct values *)values = (struct values){.audit = tdm_audit_options_default(), .show = 20};
}

/* ---- JSON ---------------------------------------------------------------------------------------
 */

static const char *part_name(int part)
{
    static const char *const names[] = {
        [TDM_PART_TRAIN] = "train", [TDM_PART_VAL] = "val", [TDM_PART_TEST] = "test"};
    return part > TDM_PART_ALL && part <= TDM_PART_TEST ? names[part] : NULL;
}

static const char *class_name(const struct tdm_audit *audit, const struct tdm_audit_file *file)
{
    return file->label >= 0 ? audit->classes[file->label].name : NULL;
}

static void write_file(tdm_json_writer *json, const struct tdm_audit *audit,
                       const struct tdm_audit_file *file)
{
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "path", file->path);
    tdm_json_string(json, "class", class_name(audit, file));
    tdm_json_string(json, "split", part_name(file->part));
    tdm_json_string(json, "verdict", tdm_verdict_word(file->verdict));
    tdm_json_array_begin(json, "remarks");
    for (enum tdm_verdict v = 0; v < TDM_VERDICT_OK; v++)
        if (file->remarks >> v & 1)
            tdm_json_string(json, NULL, tdm_verdict_word(v));
    tdm_json_array_end(json);
    if (*file->reason)
        tdm_json_string(json, "reason", file->reason);
    tdm_json_integer(json, "width", file->width);
    tdm_json_integer(json, "height", file->height);
    tdm_json_integer(json, "bytes", file->bytes);
    tdm_json_object_end(json);
}

static void write_facts(tdm_json_writer *json, const struct tdm_audit *audit)
{
    tdm_json_integer(json, "images", audit->images);
    tdm_json_integer(json, "classes", audit->n_classes);
    tdm_json_integer(json, "ok", audit->ok);
    tdm_json_integer(json, "bad", audit->bad);
    tdm_json_integer(json, "others", audit->others);
    tdm_unread_to_json(&audit->unread, json);
    tdm_json_string(json, "kind", audit->kind);
    tdm_json_string(json, "refusal", audit->refusal);
    tdm_json_integer(json, "bytes", audit->bytes);
    tdm_json_number(json, "seconds", audit->seconds);
    tdm_json_integer(json, "with_icc", audit->with_icc);
    tdm_json_object_begin(json, "counts");
    for (enum tdm_verdict v = 0; v < TDM_VERDICTS; v++)
        tdm_json_integer(json, tdm_verdict_word(v), audit->counts[v]);
    tdm_json_object_end(json);
    tdm_json_object_begin(json, "size");
    tdm_json_integer(json, "min_width", audit->min_width);
    tdm_json_integer(json, "min_height", audit->min_height);
    tdm_json_integer(json, "max_width", audit->max_width);
    tdm_json_integer(json, "max_height", audit->max_height);
    tdm_json_array_begin(json, "short_sides");
    for (int i = 0; i < TDM_AUDIT_SIZES; i++)
        tdm_json_integer(json, NULL, audit->sizes[i]);
    tdm_json_array_end(json);
    tdm_json_object_end(json);
}

/* ---- people -------------------------------------------------------------------------------------
 */

static void print_bar(struct tdmi_output *out, int64_t n, int64_t most)
{
    const int64_t length = most > 0 ? (n * 30 + most - 1) / most : 0;
    for (int64_t i = 0; i < length; i++)
        tdmi_print(out, "#");
    tdmi_print(out, "\n");
}

/* How many of n lines are left out of a list; of: "" or what they are of, after a blank. */
static void print_rest(struct tdmi_output *out, int64_t n, int64_t shown, const char *of)
{
    if (n > shown)
        tdmi_print(out, "  … and %lld more%s (--show %lld lists them all)\n",
                   (long long)(n - shown), of, (long long)n);
}

/* Classes that train refuses, or could not learn. */
static void print_empty_classes(struct tdmi_output *out, const struct tdm_audit *audit, int show)
{
    int n = 0;
    for (int i = 0; i < audit->n_classes; i++) {
        const struct tdm_audit_class *class = &audit->classes[i];
        if (class->bad < class->n || n++ >= show)
            continue;
        if (class->n == 0)
            tdmi_print(out, "  class '%s' has no image", class->name);
        else
            tdmi_print(out, "  class '%s' has no image that can be read, of %lld", class->name,
                       (long long)class->n);
        tdmi_print(out, ": train cannot learn it; add images or remove the class\n");
    }
    if (n > show)
        tdmi_print(out, "  … and %d more %s without images\n", n - show,
                   n - show == 1 ? "class" : "classes");
}

static void report_classes(const struct tdmi_call *call, const struct tdm_audit *audit, int show)
{
    tdm_json_writer *json = call->json;
    struct tdmi_output *out = call->out;
    int64_t most = 0, least = INT64_MAX;
    int widest = 5;
    for (int i = 0; i < audit->n_classes; i++) {
        const struct tdm_audit_class *class = &audit->classes[i];
        most = class->n > most ? class->n : most;
        least = class->n < least ? class->n : least;
        widest = tdmi_widest(widest, class->name, 40);
    }
    if (audit->n_classes == 0)
        tdmi_print(out, "no class folders: the images are unlabelled\n");
    else
        tdmi_print(out, "\n  %-*s  %8s  %6s\n", widest, "class", "images", "bad");
    tdm_json_array_begin(json, "per_class");
    for (int i = 0; i < audit->n_classes; i++) {
        const struct tdm_audit_class *class = &audit->classes[i];
        tdm_json_object_begin(json, NULL);
        tdm_json_string(json, "label", class->name);
        tdm_json_integer(json, "n", class->n);
        tdm_json_integer(json, "bad", class->bad);
        tdm_json_object_end(json);
        if (i >= show)
            continue;
        tdmi_print(out, "  %-*s  %8lld  %6lld  ", widest, class->name, (long long)class->n,
                   (long long)class->bad);
        print_bar(out, class->n, most);
    }
    tdm_json_array_end(json);
    print_rest(out, audit->n_classes, show, "");
    print_empty_classes(out, audit, show);
    if (least > 0 && most >= 2 * least && audit->n_classes > 0)
        tdmi_print(out, "  the largest class has %.1f times the images of the smallest\n",
                   (double)most / (double)least);
}

static void print_sizes(struct tdmi_output *out, const struct tdm_audit *audit)
{
    int64_t most = 0;
    for (int i = 0; i < TDM_AUDIT_SIZES; i++)
        most = audit->sizes[i] > most ? audit->sizes[i] : most;
    if (most == 0)
        return;
    tdmi_print(out, "\n  short side      images   (%d x %d to %d x %d)\n", audit->min_width,
               audit->min_height, audit->max_width, audit->max_height);
    for (int i = 0; i < TDM_AUDIT_SIZES; i++) {
        char span[32];
        if (audit->sizes[i] == 0)
            continue;
        if (i == TDM_AUDIT_SIZES - 1)
            snprintf(span, sizeof span, "%d and more", 8 << i);
        else
            snprintf(span, sizeof span, "%d to %d", i == 0 ? 1 : 8 << i, (16 << i) - 1);
        tdmi_print(out, "  %-12s  %8lld  ", span, (long long)audit->sizes[i]);
        print_bar(out, audit->sizes[i], most);
    }
}

static void print_verdicts(struct tdmi_output *out, const struct tdm_audit *audit)
{
    tdmi_print(out, "\n  %-29s  %8s\n", "found", "images");
    for (enum tdm_verdict v = 0; v < TDM_VERDICT_OK; v++)
        if (audit->remarks[v] > 0)
            tdmi_print(out, "  %-29s  %8lld  %s\n", tdm_verdict_word(v),
                       (long long)audit->remarks[v], tdm_verdict_meaning(v));
    tdmi_print(out, "  %-29s  %8lld\n", "ok", (long long)audit->ok);
    if (audit->with_icc > 0)
        tdmi_print(out, "  %lld %s a colour profile, which is ignored.\n",
                   (long long)audit->with_icc, audit->with_icc == 1 ? "carries" : "carry");
}

static void print_bad(struct tdmi_output *out, const struct tdm_audit *audit, int show)
{
    int shown = 0;
    for (int64_t i = 0; i < audit->images && shown < show; i++) {
        const struct tdm_audit_file *file = &audit->files[i];
        if (!*file->reason)
            continue;
        if (shown++ == 0)
            tdmi_print(out, "\n  bad and damaged files\n");
        tdmi_print(out, "  %-10s  %s: %s\n", tdm_verdict_word(file->verdict), file->path,
                   file->reason);
    }
    const int64_t n = audit->bad + audit->counts[TDM_VERDICT_DAMAGED];
    print_rest(out, n, shown, "");
}

static void print_misnamed(struct tdmi_output *out, const struct tdm_audit *audit, int show)
{
    int shown = 0;
    for (int64_t i = 0; i < audit->images && shown < show; i++) {
        if (!(audit->files[i].remarks >> TDM_VERDICT_WRONG_EXTENSION & 1))
            continue;
        if (shown++ == 0)
            tdmi_print(out, "\n  files with a wrong extension\n");
        tdmi_print(out, "  %s\n", audit->files[i].path);
    }
    print_rest(out, audit->remarks[TDM_VERDICT_WRONG_EXTENSION], shown, "");
}

/* Pairs that would mislead training or validation; copies inside a class only take space. */
static bool is_grave(const struct tdm_audit *audit, const struct tdm_audit_pair *pair)
{
    const struct tdm_audit_file *a = &audit->files[pair->first], *b = &audit->files[pair->second];
    return a->label != b->label || a->part != b->part;
}

static void print_pairs(struct tdmi_output *out, const struct tdm_audit *audit, bool are_grave,
                        const char *heading, int show)
{
    int64_t n = 0;
    for (int64_t i = 0; i < audit->n_pairs; i++) {
        const struct tdm_audit_pair *pair = &audit->pairs[i];
        if (is_grave(audit, pair) != are_grave || n++ >= show)
            continue;
        if (n == 1)
            tdmi_print(out, "\n  %s\n", heading);
        tdmi_print(out, "  %-4s  %s  =  %s\n", pair->distance < 0 ? "same" : "near",
                   audit->files[pair->first].path, audit->files[pair->second].path);
    }
    print_rest(out, n, show, n - show == 1 ? " pair" : " pairs");
}

static void report_pairs(const struct tdmi_call *call, const struct tdm_audit *audit, int show)
{
    tdm_json_writer *json = call->json;
    tdm_json_array_begin(json, "duplicates");
    for (int64_t i = 0; i < audit->n_pairs; i++) {
        const struct tdm_audit_pair *pair = &audit->pairs[i];
        tdm_json_object_begin(json, NULL);
        tdm_json_string(json, "first", audit->files[pair->first].path);
        tdm_json_string(json, "second", audit->files[pair->second].path);
        tdm_json_bool(json, "same_bytes", pair->distance < 0);
        tdm_json_number(json, "distance", pair->distance < 0 ? NAN : (double)pair->distance);
        tdm_json_object_end(json);
    }
    tdm_json_array_end(json);
    tdm_json_bool(json, "duplicates_complete", !audit->is_near_cut);
    print_pairs(call->out, audit, true, "the same or a similar image in two classes or splits",
                show);
    print_pairs(call->out, audit, false,
                audit->n_classes > 0 ? "the same or a similar image twice in a class"
                                     : "the same or a similar image twice",
                show);
    if (audit->is_near_cut)
        tdmi_print(call->out, "  (so many images look alike that not all pairs were looked for)\n");
}

static void print_list(struct tdmi_output *out, const struct tdm_audit *audit,
                       const struct tdm_audit_options *options)
{
    const char *list = options->quarantine;
    const int64_t n = audit->bad + (options->strict ? audit->counts[TDM_VERDICT_DAMAGED] : 0);
    const char *kind = n > audit->bad ? "bad or damaged" : "bad";
    if (n == 0)
        tdmi_print(out, "\nNo file is bad: the list %s is empty\n", list);
    else {
        tdmi_print(out,
                   "\nThe %lld %s %s listed in %s; train and prepare leave %s out with "
                   "--quarantine ",
                   (long long)n, kind, n == 1 ? "file is" : "files are", list,
                   n == 1 ? "it" : "them");
        tdmi_print_word(out, list);
        tdmi_print(out, "\n");
    }
}

static void report(const struct tdmi_call *call, const struct tdm_audit *audit)
{
    const struct values *values = call->values;
    struct tdmi_output *out = call->out;
    char size[40];
    write_facts(call->json, audit);
    tdmi_print(out, "%lld %s of %d %s (%s), %s, %.1f s: %lld ok, %lld bad, %lld with remarks",
               (long long)audit->images, audit->images == 1 ? "image" : "images", audit->n_classes,
               audit->n_classes == 1 ? "class" : "classes", audit->kind,
               tdmi_format_amount((double)audit->bytes, "B", size, sizeof size), audit->seconds,
               (long long)audit->ok, (long long)audit->bad,
               (long long)(audit->images - audit->ok - audit->bad));
    if (audit->others > 0)
        tdmi_print(out, "; %lld other %s", (long long)audit->others,
                   audit->others == 1 ? "file" : "files");
    tdmi_print(out, "\n");
    print_verdicts(out, audit);
    report_classes(call, audit, values->show);
    print_sizes(out, audit);
    print_bad(out, audit, values->show);
    print_misnamed(out, audit, values->show);
    report_pairs(call, audit, values->show);
    tdm_json_array_begin(call->json, "verdicts");
    for (int64_t i = 0; i < audit->images; i++)
        write_file(call->json, audit, &audit->files[i]);
    tdm_json_array_end(call->json);
    if (values->audit.quarantine)
        print_list(out, audit, &values->audit);
}

/* Findings that --strict refuses: images that are lost or damaged, classes without any, and copies
 * that make a result untrue. */
static bool is_alarming(const struct tdm_audit *audit)
{
    for (int i = 0; i < audit->n_classes; i++)
        if (audit->classes[i].n == 0)
            return true;
    return audit->bad > 0 || audit->counts[TDM_VERDICT_DAMAGED] > 0 ||
           audit->remarks[TDM_VERDICT_CONFLICT] > 0 || audit->remarks[TDM_VERDICT_LEAK] > 0;
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct tdm_audit_options options = values->audit;
    TDMI_AT_END(tdm_audit_release) struct tdm_audit audit = {.struct_bytes = sizeof audit};
    options.source = call->arguments[0];
    TDMI_TRY(tdm_audit(&options, tdmi_watch_sink(call->watch), &audit, err));
    report(call, &audit);
    if (audit.refusal != NULL)
        tdm_log(TDM_LOG_ERROR, "%s", audit.refusal);
    if (audit.refusal != NULL || (values->audit.strict && is_alarming(&audit)))
        call->exit_status = tdm_status_exit(TDM_E_INPUT);
    return TDM_OK;
}

static const struct tdmi_argument arguments[] = {
    TDMI_ARGUMENT_SRC,
    {.name = NULL},
};

static const struct tdmi_option options[] = {
    TDMI_ROW(
        FLAG, "strict", audit.strict, "Verdicts",
        "exit with status 3 if a file is bad or damaged, a class has no image, or an image has "
        "a copy in another class or split; --out then lists damaged files too"),
    TDMI_ROW(FLAG, "near", audit.find_near, "Verdicts",
             "report only files of equal bytes as copies, not images that look alike"),
#define AT audit.how.
#define HOW(member) member
#define WITHOUT_QUARANTINE
#include "tandem/source.def"
#undef AT
    TDMI_ROW(PATH, "out", audit.quarantine, "Result",
             "write a list of bad files, for --quarantine of train and prepare", .letter = 'o',
             .value_name = "FILE", .default_words = "none", .old_name = "quarantine"),
    TDMI_ROW(INTEGER, "show", show, "Result", "most lines of each list; --json has all",
             .high = 1e9, .unit = "lines"),
    TDMI_ROW_THREADS(audit.threads, "all usable CPUs",
                     "number of threads; never changes the verdicts"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem audit photos",
    "what is in the folder, and what is wrong with it",
    "tandem audit photos -o bad.jsonl",
    "keep the list of files that cannot be read",
    "tandem audit photos --strict --json",
    "a gate for a script",
    NULL,
};

TDMI_COMMAND(audit, "check every image of a data set and find copies",
             "Reads and decodes every image and reports which are corrupt, truncated, "
             "wrongly named, rotated or copies across classes or splits. Changes nothing.");
