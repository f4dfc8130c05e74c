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

/* On rank 0, whose failure ends all. */
static tdm_status check_twins(struct tdmi_session *session, tdm_error *err)
{
    const char *mine = session->compute.backend->device.identify(session->compute.device);
    const size_t length = strlen(mine) + 1; /* the same for all names; 1 for the newline */
    TDMI_AT_END(tdmi_text_release) tdmi_text names = {0};
    tdmi_text_printf(&names, "%s\n", mine);
    TDMI_TRY(tdmi_text_status(&names, err));
    TDMI_TRY(tdmi_ranks_gather_text(session, &names, err));
    const char *text = tdmi_text_string(&names);
    for (size_t b = 1; b < names.length_bytes / length; b++)
        for (size_t a = 0; a < b; a++)
            if (memcmp(text + a * length, text + b * length, length) == 0)
                return TDM_FAIL(err, TDM_E_ABSENT,
                                "--device %s: ranks %zu and %zu compute on the same GPU, and each "
                                "rank needs one of its own; start as many ranks as this machine "
                                "has GPUs, or list other GPUs: cuda:0,1",
                                session->config.options.device, a, b);
    return TDM_OK;
}

/* status and why: of this rank. All learn whether all have succeeded; rank 0 keeps the first
 * reason. */
static tdm_status agree(struct tdmi_session *session, tdm_status status, const tdm_error *why,
                        bool *can_all, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    if (status != TDM_OK)
        tdmi_text_printf(&text, " (rank %d: %s)\n", tdmi_comm_rank(session->compute.comm),
                         tdm_error_sentence(why, 0));
    TDMI_TRY(tdmi_text_status(&text, err));
    TDMI_TRY(tdmi_ranks_gather_text(session, &text, err));
    *can_all = text.length_bytes == 0;
    TDMI_TRY(tdmi_ranks_share(session, can_all, sizeof *can_all, err));
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
    const struct tdmi_peer_table *peers = compute->backend->peers;
    const int rank = tdmi_comm_rank(compute->comm), world = tdmi_ranks_world(session);
    struct tdmi_launch launch;
    struct tdmi_peers_id id = {{0}};
    tdm_error why = {0};
    bool can_all = false;
    if (world == 1 || compute->backend->device.is_host)
        return TDM_OK;
    TDMI_TRY(check_twins(session, err));
    TDMI_TRY(tdmi_launch_here(&launch, err));
    tdm_status status = peers->open(compute->device, rank == 0 ? &id : NULL, &compute->peers, &why);
    TDMI_TRY(agree(session, status, &why, &can_all, err));
    if (can_all) {
        const struct tdmi_peers_watch watch = {look, compute->comm, launch.deadline};
        TDMI_TRY(tdmi_ranks_share(session, &id, sizeof id, err));
        status = peers->join(compute->peers, &id, rank, world, watch, &why);
        TDMI_TRY(agree(session, status, &why, &can_all, err));
    }
    if (can_all)
        compute->ranks_meet = "from GPU to GPU by NCCL";
    else
        tdmi_compute_disconnect(compute);
    return TDM_OK;
}

/* ---- planning -------------------------------------------------------------------------------- */

/* Rank 0's choices and what they were made for, which the others take. */
static tdm_status share_choices(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_compute *compute = &session->compute;
    const struct tdmi_device_table *table = &compute->backend->device;
    TDMI_AT_END(tdmi_free_at) char *own = table->write_choices(compute->device);
    const char *text = own;
    int64_t planned[] = {session->config.shard, (int64_t)compute->most_workspace};
    TDMI_CHECK_MEMORY(own, err);
    TDMI_TRY(tdmi_ranks_share_text(session, &text, err));
    TDMI_TRY(tdmi_ranks_share(session, planned, sizeof planned, err));
    session->config.shard = session->network.host.shard = (int)planned[0];
    compute->most_workspace = (size_t)planned[1];
    if (tdmi_ranks_is_follower(session))
        table->read_choices(compute->device, text);
    return TDM_OK;
}

tdm_status tdmi_ranks_plan_memory(struct tdmi_session *session, tdm_error *err)
{
    const bool has_devices = session->compute.ranks_meet;
    const bool follows = has_devices && tdmi_ranks_is_follower(session);
    if (follows)
        TDMI_TRY(share_choices(session, err));
    const int shard = session->config.shard;
    const size_t most_workspace = session->compute.most_workspace;
    TDMI_TRY(tdmi_session_plan_memory(session, err));
    if (!follows)
        return has_devices ? share_choices(session, err) : TDM_OK;
    if (session->config.shard != shard)
        return TDM_FAIL(err, TDM_E_MEMORY,
                        "rank %d has less memory free on its GPU than rank 0: there is no room for "
                        "groups of %d images; --shard %d is accepted on all ranks",
                        tdmi_comm_rank(session->compute.comm), shard, session->config.shard);
    if (session->compute.most_workspace != most_workspace)
        return TDM_FAIL(err, TDM_E_MEMORY,
                        "rank %d has less memory free on its GPU than rank 0, too little for the "
                        "kernels that rank 0 chose: free some there, or use a smaller --shard than "
                        "%d on all ranks",
                        tdmi_comm_rank(session->compute.comm), shard);
    return TDM_OK;
}
