/*
 * tandem trace summary FILE: where the time of a training went, by the file that `train --trace`
 * wrote.
 */
#include "cli/command.h"
#include "base/scope.h"
#include "tandem/trace.h"

#include <math.h>

TDMI_POINTER_RELEASE(tdm_trace, tdm_trace_close)

struct values {
    int64_t from, to;
};

static void defaults(void *values)
{
    *(struct values *)values = (struct values){0};
}

static void write_rank(tdm_json_writer *json, const struct tdm_trace_rank *rank)
{
    tdm_json_object_begin(json, NULL);
    tdm_json_integer(json, "rank", rank->rank);
    tdm_json_integer(json, "steps", rank->steps);
    tdm_json_number(json, "seconds", rank->seconds);
    tdm_json_number(json, "computing", rank->computing);
    tdm_json_number(json, "images", rank->images);
    tdm_json_number(json, "sums", rank->sums);
    tdm_json_number(json, "messages", rank->messages);
    tdm_json_number(json, "other", rank->other);
    tdm_json_number(json, "communication", rank->communication);
    if (rank->waited_for < 0)
        tdm_json_null(json, "waited_for");
    else
        tdm_json_integer(json, "waited_for", rank->waited_for);
    tdm_json_number(json, "waited", rank->waited);
    tdm_json_object_end(json);
}

static void write_sums(tdm_json_writer *json, const struct tdm_trace_sums *sums)
{
    tdm_json_integer(json, "first_step", sums->first_step);
    tdm_json_integer(json, "last_step", sums->last_step);
    tdm_json_integer(json, "events", sums->n_events);
    tdm_json_integer(json, "dropped", sums->n_dropped);
    tdm_json_array_begin(json, "ranks");
    for (size_t r = 0; r < sums->n_ranks; r++)
        write_rank(json, &sums->ranks[r]);
    tdm_json_array_end(json);
    tdm_json_number(json, "communication", sums->communication);
    tdm_json_number(json, "exposed", sums->exposed);
    if (sums->communication > 0.0)
        tdm_json_number(json, "hidden", sums->hidden);
    else
        tdm_json_null(json, "hidden");
    if (sums->straggler < 0)
        tdm_json_null(json, "straggler");
    else
        tdm_json_integer(json, "straggler", sums->straggler);
    tdm_json_number(json, "straggler_seconds", sums->straggler_seconds);
}

static void print_sums(struct tdmi_output *out, const struct tdm_trace_sums *sums)
{
    tdmi_print(out, "steps %lld to %lld, seconds of each rank\n", (long long)sums->first_step,
               (long long)sums->last_step);
    tdmi_print(out, "  %4s  %9s  %9s  %9s  %9s  %9s  %9s\n", "rank", "total", "computing", "images",
               "sums", "messages", "other");
    for (size_t r = 0; r < sums->n_ranks; r++) {
        const struct tdm_trace_rank *rank = &sums->ranks[r];
        tdmi_print(out, "  %4d  %9.3f  %9.3f  %9.3f  %9.3f  %9.3f  %9.3f\n", rank->rank,
                   rank->seconds, rank->computing, rank->images, rank->sums, rank->messages,
                   rank->other);
    }
    if (sums->communication > 0.0)
        tdmi_print(out,
                   "communication: %.3f s in all, %.3f s of it waited for: %.1f %% was hidden "
                   "behind the backward pass\n",
                   sums->communication, sums->exposed, 100.0 * sums->hidden);
    for (size_t r = 0; r < sums->n_ranks; r++)
        if (sums->ranks[r].waited_for >= 0)
            tdmi_print(out, "  rank %d waited for rank %d most: %.3f s of %.3f s\n",
                       sums->ranks[r].rank, sums->ranks[r].waited_for, sums->ranks[r].waited,
                       sums->ranks[r].sums);
    if (sums->straggler >= 0)
        tdmi_print(out, "the others waited for rank %d most: %.3f s\n", sums->straggler,
                   sums->straggler_seconds);
    if (sums->n_dropped > 0)
        tdmi_print(out, "earlier steps did not fit in the trace\n");
}

static tdm_status summary(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    TDMI_AT_END(tdm_trace_close_at) tdm_trace *trace = NULL;
    if (values->to > 0 && values->from > values->to)
        return TDM_FAIL(err, TDM_E_USAGE, "--from %lld is after --to %lld", (long long)values->from,
                        (long long)values->to);
    TDMI_TRY(tdm_trace_read(call->arguments[1], values->from, values->to, &trace, err));
    write_sums(call->json, tdm_trace_sums_of(trace));
    print_sums(call->out, tdm_trace_sums_of(trace));
    return TDM_OK;
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    static const struct tdmi_verb verbs[] = {{"summary", "one FILE", 2, 2, summary},
                                             {.name = NULL}};
    const struct tdmi_verb *verb;
    TDMI_TRY(tdmi_verb_find(call, verbs, &verb, err));
    return verb->run(call, err);
}

static const struct tdmi_argument arguments[] = {
    {.name = "WHAT", .help = "summary", .choices = "summary"},
    {.name = "FILE", .help = "file that train --trace wrote"},
    {.name = NULL},
};

static const struct tdmi_option options[] = {
    TDMI_ROW(LONG, "from", from, "Steps", "the first step to add up", .low = 1, .high = INFINITY,
             .default_words = "the first of the file"),
    TDMI_ROW(LONG, "to", to, "Steps", "the last step to add up", .low = 1, .high = INFINITY,
             .default_words = "the last of the file"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem trace summary trace.json",
    "where the time of every rank went",
    "tandem trace summary trace.json --from 10 --json",
    "without the first steps, for a program",
    NULL,
};

TDMI_COMMAND(trace, "show where the time of a training went",
             "Adds up the file that train --trace wrote: what every rank computed and waited for, "
             "how much of the communication was hidden behind the backward pass, and which rank "
             "the others waited for. Perfetto (ui.perfetto.dev) shows the file itself.");
