/*
 * The devices of the ranks: each has its own, they are connected where they can be, and kernels
 * choose the algorithms of rank 0 everywhere. Every function here is called by all ranks alike.
 */
#include "base/scope.h"
#include "base/sized.h"
#include "base/text/text.h"
#include "train/session/session.h"

#include <stdio.h>
#include <string.h>

/* Is there another device beside the host's memory in this run of several ranks? */
static bool has_devices(const struct tdmi_session *session)
{
    return tdmi_ranks_world(session) > 1 && !session->compute.backend->device.is_host &&
           session->compute.backend->device.identify;
}

tdm_status tdm_train_processes(const struct tdm_train_options *options, int *n, tdm_error *err)
{
    struct tdmi_launch launch;
    *n = 1;
    TDMI_OPTIONS(tdm_train_options, options, tdm_train_options_default(), err);
    TDMI_TRY(tdmi_launch_here(&launch, err));
    if (launch.launcher || !options->device)
        return TDM_OK;
    return tdmi_backend_ranks_for(options->device, n, err);
}

/* ---- connecting ------------------------------------------------------------------------------ */

static tdm_status check_twins(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_compute *compute = &session->compute;
    const int world = tdmi_ranks_world(session);
    TDMI_AT_END(tdmi_free_at) char(*names)[TDMI_DEVICE_NAME_BYTES] = NULL;
    TDMI_AT_END(tdmi_free_at) size_t *sizes = NULL;
    char mine[TDMI_DEVICE_NAME_BYTES] = "";
    int twins[] = {-1, -1};
    TDMI_TRY(TDMI_NEW(names, world, err));
    TDMI_TRY(TDMI_NEW(sizes, world, err));
    for (int r = 0; r < world; r++)
        sizes[r] = sizeof mine;
    compute->backend->device.identify(compute->device, mine);
    memcpy(names[0], mine, sizeof mine);
    TDMI_TRY(tdmi_comm_gather(compute->comm, mine, sizes, names, err));
    for (int a = 0; a < world && !tdmi_ranks_is_follower(session); a++)
        for (int b = a + 1; b < world && twins[0] < 0; b++)
            if (strcmp(names[a], names[b]) == 0) {
                twins[0] = a;
                twins[1] = b;
            }
    TDMI_TRY(tdmi_ranks_share(session, twins, sizeof twins, err));
    if (twins[0] < 0)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "--device %s: ranks %d and %d compute on the same GPU, and each rank needs one "
                    "of its own; start as many ranks as this machine has GPUs, or list other GPUs: "
                    "cuda:0,1",
                    session->config.options.device, twins[0], twins[1]);
}

/* problem: why this rank cannot connect, or "". All learn whether all can; rank 0 keeps the first
 * reason. */
static tdm_status agree(struct tdmi_session *session, const char *problem, bool *can_all,
                        tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    if (*problem)
        tdmi_text_printf(&text, " (rank %d: %s)\n", tdmi_comm_rank(session->compute.comm), problem);
    TDMI_TRY(tdmi_text_status(&text, err));
    TDMI_TRY(tdmi_ranks_gather_text(session, &text, err));
    *can_all = text.length_bytes == 0;
    TDMI_TRY(tdmi_ranks_share(session, can_all, sizeof *can_all, err));
    if (*can_all)
        return TDM_OK;
    const char *first = tdmi_text_string(&text);
    session->compute.ranks_meet = tdmi_arena_printf(&session->arena, "through the CPU's memory%.*s",
                                                    (int)strcspn(first, "\n"), first);
    TDMI_CHECK_MEMORY(session->compute.ranks_meet, err);
    return TDM_OK;
}

static tdm_status look(void *self, tdm_error *err)
{
    return tdmi_comm_check(self, err);
}

tdm_status tdmi_ranks_connect(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_compute *compute = &session->compute;
    const struct tdmi_device_table *table = &compute->backend->device;
    const struct tdmi_peer_table *peers = compute->backend->peers;
    const int rank = tdmi_comm_rank(compute->comm), world = tdmi_ranks_world(session);
    struct tdmi_backend_library library = {.problem = "this backend has no peers"};
    struct tdmi_launch launch;
    struct tdmi_peers_id id = {{0}};
    tdm_error why = {0};
    bool can_all = false;
    if (!has_devices(session))
        return TDM_OK;
    TDMI_TRY(check_twins(session, err));
    TDMI_TRY(tdmi_launch_here(&launch, err));
    for (int i = 0; peers && table->library(i, &library); i++)
        if (strcmp(library.name, peers->library) == 0)
            break;
    if (rank == 0 && library.is_found && peers->make_id(compute->device, &id, &why) != TDM_OK)
        snprintf(library.problem, sizeof library.problem, "%.200s", tdm_error_sentence(&why, 0));
    TDMI_TRY(agree(session, library.problem, &can_all, err));
    if (!can_all)
        return TDM_OK;
    compute->ranks_meet = tdmi_arena_printf(&session->arena, "from GPU to GPU by %s %s",
                                            library.name, library.version);
    TDMI_CHECK_MEMORY(compute->ranks_meet, err);
    TDMI_TRY(tdmi_ranks_share(session, &id, sizeof id, err));
    const struct tdmi_peers_watch watch = {look, compute->comm, launch.deadline};
    const tdm_status status =
        peers->open(compute->device, &id, rank, world, watch, &compute->peers, &why);
    TDMI_TRY(agree(session, status == TDM_OK ? "" : tdm_error_sentence(&why, 0), &can_all, err));
    if (!can_all)
        tdmi_ranks_disconnect(session);
    return TDM_OK;
}

void tdmi_ranks_disconnect(struct tdmi_session *session)
{
    struct tdmi_compute *compute = &session->compute;
    if (compute->peers)
        compute->backend->peers->close(compute->peers);
    compute->peers = NULL;
}

/* ---- planning -------------------------------------------------------------------------------- */

/* Rank 0's choices, and what they were made for. */
static tdm_status take_choices(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_device_table *table = &session->compute.backend->device;
    TDMI_AT_END(tdmi_free_at) void *text = NULL;
    size_t n = 0;
    int64_t planned[] = {session->config.shard, (int64_t)session->compute.most_workspace};
    if (!tdmi_ranks_is_follower(session)) {
        text = table->write_choices(session->compute.device);
        TDMI_CHECK_MEMORY(text, err);
        n = strlen(text) + 1;
    }
    TDMI_TRY(tdmi_ranks_share(session, planned, sizeof planned, err));
    TDMI_TRY(tdmi_comm_spread(session->compute.comm, &text, &n, err));
    session->config.shard = session->network.host.shard = (int)planned[0];
    session->compute.most_workspace = (size_t)planned[1];
    if (tdmi_ranks_is_follower(session) && n > 0)
        table->read_choices(session->compute.device, text);
    return TDM_OK;
}

tdm_status tdmi_ranks_plan_memory(struct tdmi_session *session, tdm_error *err)
{
    if (!has_devices(session))
        return tdmi_session_plan_memory(session, err);
    if (!tdmi_ranks_is_follower(session)) {
        TDMI_TRY(tdmi_session_plan_memory(session, err));
        return take_choices(session, err);
    }
    TDMI_TRY(take_choices(session, err));
    const int shard = session->config.shard;
    TDMI_TRY(tdmi_session_plan_memory(session, err));
    if (session->config.shard == shard)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_MEMORY,
                    "rank %d has less memory free on its GPU than rank 0: there is no room for "
                    "groups of %d images; --shard %d is accepted on all ranks",
                    tdmi_comm_rank(session->compute.comm), shard, session->config.shard);
}
