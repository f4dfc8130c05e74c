/* Bytes of a communicator: from rank 0 to all, from all to rank 0, and from each to all. */
#include "base/scope.h"
#include "dist/comm_internal.h"

#include <string.h>

/* Along a binomial tree: rank r gets them from r without its lowest bit. */
static tdm_status broadcast(tdmi_comm *comm, const struct tdmi_comm_job *job, tdm_error *err)
{
    const int rank = comm->launch.rank, world = comm->launch.world;
    struct tdmi_message *messages = comm->messages;
    int n = 0, low = 1;
    while (low < world && (rank & low) == 0)
        low *= 2;
    if (rank > 0) {
        messages[n++] = (struct tdmi_message){
            .peer = rank & ~low, .channel = TDMI_BYTES, .bytes = job->bytes, .n = job->n_bytes};
        TDMI_TRY(comm->table->receive(comm->transport, &messages[0], err));
        TDMI_TRY(tdmi_comm_wait(comm, &messages, &n, 1, "what rank 0 sends to all", err));
        n = 0;
    }
    for (int step = low / 2; step > 0; step /= 2) {
        if (rank + step >= world)
            continue;
        messages[n] = (struct tdmi_message){
            .peer = rank + step, .channel = TDMI_BYTES, .bytes = job->bytes, .n = job->n_bytes};
        TDMI_TRY(comm->table->send(comm->transport, &messages[n++], err));
    }
    return tdmi_comm_wait(comm, &messages, &n, 1, "what rank 0 sends to all", err);
}

static tdm_status complete(tdmi_comm *comm, const struct tdmi_comm_job *job, tdm_error *err)
{
    const int rank = comm->launch.rank, world = comm->launch.world;
    const size_t *firsts = job->sizes;
    struct tdmi_message *messages = comm->messages;
    int n = 0;
    for (int step = 1; step < world; step++) {
        const int to = (rank + step) % world, from = (rank + world - step) % world;
        messages[n] = (struct tdmi_message){.peer = to,
                                            .channel = TDMI_BYTES,
                                            .bytes = (char *)job->bytes + firsts[rank],
                                            .n = firsts[rank + 1] - firsts[rank]};
        TDMI_TRY(comm->table->send(comm->transport, &messages[n++], err));
        messages[n] = (struct tdmi_message){.peer = from,
                                            .channel = TDMI_BYTES,
                                            .bytes = (char *)job->bytes + firsts[from],
                                            .n = firsts[from + 1] - firsts[from]};
        TDMI_TRY(comm->table->receive(comm->transport, &messages[n++], err));
    }
    return tdmi_comm_wait(comm, &messages, &n, 1, "what all ranks tell each other", err);
}

static tdm_status gather(tdmi_comm *comm, const struct tdmi_comm_job *job, tdm_error *err)
{
    const int rank = comm->launch.rank, world = comm->launch.world;
    struct tdmi_message *messages = comm->messages;
    size_t at = job->sizes[0];
    int n = 0;
    if (rank > 0) {
        struct tdmi_message *message = &messages[n++];
        *message = (struct tdmi_message){.channel = TDMI_BYTES, .n = job->sizes[rank]};
        memcpy(&message->bytes, &job->mine, sizeof message->bytes); /* without its const */
        TDMI_TRY(comm->table->send(comm->transport, message, err));
    } else if (job->bytes != job->mine)
        memcpy(job->bytes, job->mine, job->sizes[0]);
    for (int r = 1; r < world && rank == 0; at += job->sizes[r++]) {
        messages[n] = (struct tdmi_message){
            .peer = r, .channel = TDMI_BYTES, .bytes = (char *)job->bytes + at, .n = job->sizes[r]};
        TDMI_TRY(comm->table->receive(comm->transport, &messages[n++], err));
    }
    return tdmi_comm_wait(comm, &messages, &n, 1, "what all ranks send to rank 0", err);
}

tdm_status tdmi_comm_begin_broadcast(tdmi_comm *comm, void *bytes, size_t n, tdm_error *err)
{
    if (!comm->table)
        return TDM_OK;
    return tdmi_comm_begin(
        comm, &(struct tdmi_comm_job){.run = broadcast, .bytes = bytes, .n_bytes = n}, err);
}

tdm_status tdmi_comm_broadcast(tdmi_comm *comm, void *bytes, size_t n, tdm_error *err)
{
    TDMI_TRY(tdmi_comm_begin_broadcast(comm, bytes, n, err));
    return tdmi_comm_finish(comm, err);
}

tdm_status tdmi_comm_spread(tdmi_comm *comm, void **bytes, size_t *n, tdm_error *err)
{
    uint64_t size = *n;
    char *block = *bytes;
    if (!comm->table)
        return TDM_OK;
    TDMI_TRY(tdmi_comm_broadcast(comm, &size, sizeof size, err));
    if (comm->launch.rank > 0)
        TDMI_TRY(TDMI_NEW(block, size > 0 ? size : 1, err));
    const tdm_status status = tdmi_comm_broadcast(comm, block, (size_t)size, err);
    if (status != TDM_OK && comm->launch.rank > 0)
        tdmi_free(block);
    if (status != TDM_OK)
        return status;
    *bytes = block;
    *n = (size_t)size;
    return TDM_OK;
}

tdm_status tdmi_comm_complete(tdmi_comm *comm, void *all, const size_t *firsts, tdm_error *err)
{
    if (!comm->table)
        return TDM_OK;
    return tdmi_comm_run(
        comm, &(struct tdmi_comm_job){.run = complete, .bytes = all, .sizes = firsts}, err);
}

tdm_status tdmi_comm_begin_gather(tdmi_comm *comm, const void *mine, const size_t *sizes, void *all,
                                  tdm_error *err)
{
    if (!comm->table) {
        if (all != mine)
            memcpy(all, mine, sizes[0]);
        return TDM_OK;
    }
    return tdmi_comm_begin(
        comm, &(struct tdmi_comm_job){.run = gather, .mine = mine, .sizes = sizes, .bytes = all},
        err);
}

tdm_status tdmi_comm_gather(tdmi_comm *comm, const void *mine, const size_t *sizes, void *all,
                            tdm_error *err)
{
    TDMI_TRY(tdmi_comm_begin_gather(comm, mine, sizes, all, err));
    return tdmi_comm_finish(comm, err);
}
