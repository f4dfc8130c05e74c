/* Batches of feature rows on their way to rank 0. */
#include "train/features/parcel.h"
#include "train/session/session.h"

tdm_status tdmi_parcel_open(const struct tdmi_session *session, struct tdmi_parcel *parcel,
                            tdm_error *err)
{
    const size_t world = (size_t)tdmi_ranks_world(session), n = TDMI_FEATURES_BATCH * world;
    TDMI_TRY(TDMI_NEW(parcel->rows, n * (size_t)session->cache.width, err));
    TDMI_TRY(TDMI_NEW(parcel->labels, n, err));
    TDMI_TRY(TDMI_NEW(parcel->stops, world, err));
    return TDMI_NEW(parcel->sizes, 3 * world, err);
}

void tdmi_parcel_release(struct tdmi_parcel *parcel)
{
    tdmi_free(parcel->rows);
    tdmi_free(parcel->labels);
    tdmi_free(parcel->stops);
    tdmi_free(parcel->sizes);
    *parcel = (struct tdmi_parcel){0};
}

tdm_status tdmi_parcel_send(const struct tdmi_session *session, struct tdmi_parcel *parcel,
                            tdm_error *err)
{
    tdmi_comm *comm = session->compute.comm;
    const int world = tdmi_comm_world(comm);
    const size_t row_bytes = sizeof *parcel->rows * (size_t)session->cache.width;
    size_t *rows = parcel->sizes, *labels = rows + world, *stops = labels + world;
    for (int r = 0; r < world; r++) {
        int first, end;
        tdmi_ranks_part_of_batch(parcel->n, r, world, &first, &end);
        rows[r] = row_bytes * (size_t)(end - first);
        labels[r] = sizeof *parcel->labels * (size_t)(end - first);
        stops[r] = sizeof *parcel->stops;
    }
    parcel->stops[0] = tdm_stop_is_requested(); /* this rank's own is sent from there */
    TDMI_TRY(tdmi_comm_begin_gather(comm, parcel->stops, stops, parcel->stops, err));
    TDMI_TRY(tdmi_comm_begin_gather(comm, parcel->labels, labels, parcel->labels, err));
    TDMI_TRY(tdmi_comm_begin_gather(comm, parcel->rows, rows, parcel->rows, err));
    return tdmi_comm_begin_broadcast(comm, &parcel->agreed, sizeof parcel->agreed, err);
}
