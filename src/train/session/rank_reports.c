/*
 * Reports about ranks: what each does in a step, ranks.json, and the rank that the others waited
 * for in an epoch.
 *
 * ranks.json says what every rank was last at. Where another launcher started the ranks, its exit
 * status says no more than that one was killed; this file says which one, and where it was.
 *
 * Rank 0's training thread writes it between two steps, each time that the communicator has looked
 * at the ranks, so that it is there when rank 0 itself is killed. The communicator's thread does no
 * I/O: a file system that hangs would silence this rank's heartbeat. A job that ends well removes
 * the file.
 */
#include "base/clock.h"
#include "base/file/file.h"
#include "base/scope.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "dist/cut.h"
#include "train/session/session.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { format_version = 1 };

/* ---- at the beginning ----------------------------------------------------------------------- */

/* Open MPI does so by default where there are one or two ranks. */
static void report_binding(const struct tdmi_session *session)
{
    struct tdmi_launch launch;
    const struct tdmi_placement *placement = &session->compute.placement;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (tdmi_launch_here(&launch, NULL) == TDM_OK && launch.transport &&
        strcmp(launch.transport, "mpi") == 0 && tdmi_cpus_usable() == 1 &&
        placement->local.size > 0 && online / placement->local.size > 1)
        tdmi_record_note(&session->record,
                         "%s bound each rank to one of %ld CPUs: --bind-to none lets ranks use "
                         "all of them",
                         launch.launcher, online);
}

/* Sums follow the segments of the backward pass. */
static void report_sums(const struct tdmi_session *session)
{
    const tdmi_plan *plan = session->network.train_plan;
    int64_t least = 0, most = 0, all = 0;
    for (int s = 0; s < plan->n_segments; s++) {
        const int64_t n = plan->segments[s].n_values;
        least = s == 0 || n < least ? n : least;
        most = n > most ? n : most;
        all += n;
    }
    const double mb_of_value = session->config.options.fast ? 2e-6 : 4e-6; /* as they are sent */
    tdmi_record_note(&session->record,
                     "gradients, %.1f MB, leave in %d parts of %.2g to %.2g MB while the backward "
                     "pass goes on",
                     (double)all * mb_of_value, plan->n_segments, (double)least * mb_of_value,
                     (double)most * mb_of_value);
}

tdm_status tdmi_ranks_report(const struct tdmi_session *session, tdm_error *err)
{
    const int world = tdmi_ranks_world(session), size = session->config.shard;
    const int batch = session->data.max_batch, n_groups = (batch + size - 1) / size;
    TDMI_AT_END(tdmi_free_at) int *firsts = NULL;
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    int n_idle = 0;
    if (world == 1)
        return TDM_OK;
    report_binding(session);
    TDMI_TRY(TDMI_NEW(firsts, world + 1, err));
    TDMI_TRY(tdmi_cut_make(n_groups, world, firsts, err));
    for (int r = 0; r < world; r++) {
        const int first = firsts[r] * size, end = firsts[r + 1] * size;
        tdmi_text_printf(&text, "%s%d", r > 0 ? ", " : "",
                         (end < batch ? end : batch) - (first < batch ? first : batch));
        n_idle += firsts[r + 1] == firsts[r];
    }
    if (n_idle > 0 && n_groups < world)
        tdmi_text_printf(
            &text,
            "; a --batch of %d or more, or a smaller --shard, which gives other results, "
            "would give all some",
            world * size);
    else if (n_idle > 0)
        tdmi_text_printf(&text, "; %d would be as fast", world - n_idle);
    TDMI_TRY(tdmi_text_status(&text, err));
    tdmi_record_note(
        &session->record, "%d ranks: of %d images a step, in groups of %d, they compute %s%s",
        world, batch, size, tdmi_text_string(&text),
        session->cache.is_used ? "; rank 0 alone trains the head on stored features" : "");
    if (session->compute.ranks_meet)
        tdmi_record_note(&session->record, "gradients go %s", session->compute.ranks_meet);
    if (tdmi_ranks_share_steps(session) && session->network.train_plan->n_segments > 1)
        report_sums(session);
    return TDM_OK;
}

/* ---- ranks.json ------------------------------------------------------------------------------ */

static void rank_to_json(tdmi_comm *comm, int rank, tdm_json_writer *writer)
{
    struct tdmi_heartbeat heartbeat;
    tdmi_comm_heartbeat(comm, rank, &heartbeat);
    tdm_json_object_begin(writer, NULL);
    tdm_json_integer(writer, "rank", rank);
    tdm_json_string(writer, "host", heartbeat.host);
    tdm_json_string(writer, "at", heartbeat.at[0] ? heartbeat.at : NULL);
    tdm_json_number(writer, "silent_seconds", heartbeat.silent_seconds);
    tdm_json_object_end(writer);
}

/* failure: NULL while there is none. */
static tdm_status write_file(const struct tdmi_session *session, const char *path,
                             const char *failure, tdm_error *err)
{
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *writer = tdm_json_writer_new(2);
    const char *text;
    char now[21];
    size_t length;
    tdmi_clock_utc(now);
    tdm_json_object_begin(writer, NULL);
    tdm_json_integer(writer, "format_version", format_version);
    tdm_json_string(writer, "written", now);
    tdm_json_string(writer, "failure", failure);
    tdm_json_array_begin(writer, "ranks");
    for (int r = 0; r < tdmi_ranks_world(session); r++)
        rank_to_json(session->compute.comm, r, writer);
    tdm_json_array_end(writer);
    tdm_json_object_end(writer);
    TDMI_TRY(tdm_json_finish(writer, &text, &length, err));
    return tdmi_file_write_in_folder(path, text, length, err);
}

/* The file's path in a run that this process owns and that has a record; else NULL: a folder that
 * was removed is not made again, and a run that never began leaves nothing. */
static const char *find_file(const struct tdmi_session *session, tdmi_arena *scratch)
{
    const tdmi_run *run = session->record.run;
    if (!run || tdmi_run_is_followed(run) || tdmi_run_check(run, NULL) != TDM_OK)
        return NULL;
    const char *record = tdmi_path_join(scratch, tdmi_run_path(run), "run.json");
    if (!record || tdmi_file_kind_of(record) != TDMI_FILE_REGULAR)
        return NULL;
    return tdmi_path_join(scratch, tdmi_run_path(run), TDMI_RANKS_NAME);
}

/* A full disk ends no training here: the checkpoint reports it. */
static void keep(const struct tdmi_session *session, const char *failure)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    const char *path = find_file(session, &scratch);
    const tdm_status ignored = path ? write_file(session, path, failure, NULL) : TDM_OK;
    (void)ignored;
}

static void remove_file(const struct tdmi_session *session)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    const char *path = find_file(session, &scratch);
    if (path)
        (void)unlink(path);
}

void tdmi_ranks_keep_heartbeats(struct tdmi_session *session)
{
    if (tdmi_ranks_is_follower(session))
        return;
    const int64_t looks = tdmi_comm_looks(session->compute.comm);
    if (looks == session->record.looks)
        return;
    session->record.looks = looks;
    keep(session, NULL);
}

void tdmi_ranks_begin_heartbeats(struct tdmi_session *session)
{
    if (tdmi_ranks_world(session) == 1)
        remove_file(session); /* of an earlier session with several ranks */
    else if (!tdmi_ranks_is_follower(session))
        keep(session, NULL);
}

void tdmi_ranks_end_heartbeats(struct tdmi_session *session, tdm_status status,
                               const tdm_error *err)
{
    char text[TDM_ERROR_TEXT_BYTES];
    if (!session->compute.comm || tdmi_ranks_world(session) == 1 || tdmi_ranks_is_follower(session))
        return;
    if (status == TDM_OK || status == TDM_E_STOPPED) {
        remove_file(session);
        return;
    }
    snprintf(text, sizeof text, "%s", tdm_status_text(status));
    if (err && err->n_frames > 0)
        tdm_error_line(err, text, sizeof text);
    if (status != TDM_E_USAGE && status != TDM_E_ABSENT) /* a command that began nothing */
        keep(session, text);
}

/* ---- the slow rank --------------------------------------------------------------------------- */

/* Parts of an epoch that ranks with as much to do must have waited longer than the slow one. */
static const double least_part = 0.2, least_seconds = 1.0, as_much = 0.75;

void tdmi_ranks_take_time(const struct tdmi_session *session, struct tdmi_rank_time *time)
{
    struct tdmi_loader_rates rates = {0};
    if (session->data.train_feed)
        (void)tdmi_feed_rates(session->data.train_feed, &rates);
    *time = (struct tdmi_rank_time){.seconds = (double)tdmi_clock_ns() * 1e-9,
                                    .for_ranks = tdmi_comm_waited_seconds(session->compute.comm),
                                    .for_images = rates.consumer_waits,
                                    .images = (double)rates.pictures,
                                    .loads_per_second = rates.ceiling_per_second};
}

/* The one that waited least, and how much longer another one with as much to do waited for it. */
static int find_slow(const struct tdmi_rank_time *of, int world, double *waited)
{
    int slow = 0;
    *waited = 0.0;
    for (int r = 1; r < world; r++)
        if (of[r].images > 0.0 && of[r].for_ranks < of[slow].for_ranks)
            slow = r;
    for (int r = 0; r < world; r++) {
        const double longer = of[r].for_ranks - of[slow].for_ranks;
        if (of[r].images >= as_much * of[slow].images && longer > *waited)
            *waited = longer;
    }
    return slow;
}

static void report_slow(const struct tdmi_session *session, const struct tdmi_rank_time *of)
{
    struct tdmi_heartbeat heartbeat;
    double waited;
    const int slow = find_slow(of, tdmi_ranks_world(session), &waited);
    const struct tdmi_rank_time *it = &of[slow];
    if (waited < least_seconds || waited < least_part * it->seconds)
        return;
    const double computing = it->seconds - it->for_ranks - it->for_images;
    tdmi_comm_heartbeat(session->compute.comm, slow, &heartbeat);
    tdmi_record_note(&session->record,
                     "epoch %d: the ranks waited %.1f of %.1f s for rank %d on %s, which computed "
                     "%.0f images/s, could load %.0f, and waited %.1f s for images",
                     session->progress.epoch + 1, waited, it->seconds, slow, heartbeat.host,
                     computing > 0.0 ? it->images / computing : 0.0, it->loads_per_second,
                     it->for_images);
}

tdm_status tdmi_ranks_report_slow(struct tdmi_session *session, const struct tdmi_rank_time *began,
                                  tdm_error *err)
{
    const int world = tdmi_ranks_world(session);
    struct tdmi_rank_time mine;
    TDMI_AT_END(tdmi_free_at) struct tdmi_rank_time *of = NULL;
    TDMI_AT_END(tdmi_free_at) size_t *sizes = NULL;
    if (!tdmi_ranks_share_steps(session))
        return TDM_OK;
    TDMI_TRY(TDMI_NEW(of, world, err));
    TDMI_TRY(TDMI_NEW(sizes, world, err));
    for (int r = 0; r < world; r++)
        sizes[r] = sizeof mine;
    tdmi_ranks_take_time(session, &mine);
    mine.seconds -= began->seconds;
    mine.for_ranks -= began->for_ranks;
    mine.for_images -= began->for_images;
    mine.images -= began->images;
    TDMI_TRY(tdmi_comm_gather(session->compute.comm, &mine, sizes, of, err));
    if (!tdmi_ranks_is_follower(session))
        report_slow(session, of);
    return TDM_OK;
}
