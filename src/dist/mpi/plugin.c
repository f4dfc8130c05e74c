/*
 * The transport over MPI: starts MPI, compares the ranks, and ends MPI when all have said goodbye.
 *
 * MPI_Init_thread is called by the thread that opens the communicator, everything until close by
 * the communicator's own: one thread at a time, which is MPI_THREAD_SERIALIZED.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "dist/mpi/mpi_internal.h"
#include "tandem/api.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum { second_ns = 1000000000, version_bytes = 64 };

/* How Open MPI or MPICH starts ranks; TDMI_MPI is what this file is compiled for. */
#ifdef OPEN_MPI
static const char file_name[] = "libtandem_mpi_openmpi.so";
static const char right_launcher[] =
    "Open MPI's mpirun (mpirun.openmpi on Debian) or srun --mpi=pmix";
#else
static const char file_name[] = "libtandem_mpi_mpich.so";
static const char right_launcher[] = "MPICH's mpiexec (mpirun.mpich on Debian) or srun --mpi=pmi2";
#endif

void tdmi_mpi_nap(int64_t ns)
{
    const struct timespec time = {ns / second_ns, ns % second_ns};
    nanosleep(&time, NULL);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void explain(int code, char text[MPI_MAX_ERROR_STRING + 1])
{
    int n = 0;
    text[0] = '\0';
    MPI_Error_string(code, text, &n);
    text[n < MPI_MAX_ERROR_STRING ? n : MPI_MAX_ERROR_STRING] = '\0';
}

tdm_status tdmi_mpi_check(const tdmi_transport *transport, int code, const char *action, int peer,
                          tdm_error *err)
{
    const struct tdmi_mpi *mpi = transport;
    char text[MPI_MAX_ERROR_STRING + 1];
    if (code == MPI_SUCCESS)
        return TDM_OK;
    explain(code, text);
    return TDM_FAIL(err, TDM_E_PEER, "%s rank %d on %s failed: MPI reports '%s'", action, peer,
                    mpi->hosts[peer], text);
}

/* A failing call in which all ranks take part. */
static tdm_status check_joint(int code, const char *action, tdm_error *err)
{
    char text[MPI_MAX_ERROR_STRING + 1];
    if (code == MPI_SUCCESS)
        return TDM_OK;
    explain(code, text);
    return TDM_FAIL(err, TDM_E_PEER, "%s failed: MPI reports '%s'", action, text);
}

/* "Open MPI v4.1.4", "MPICH Version: 4.0.2" */
static void describe_library(char name[version_bytes])
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
    int n = 0, at = 0;
    MPI_Get_library_version(text, &n);
    for (int i = 0; text[i] && text[i] != ',' && text[i] != '\n' && at < version_bytes - 1; i++)
        if (!isspace((unsigned char)text[i]))
            name[at++] = text[i];
        else if (at > 0 && name[at - 1] != ' ')
            name[at++] = ' ';
    name[at] = '\0';
}

static tdm_status note_failure(tdmi_transport *transport, tdm_status status)
{
    struct tdmi_mpi *mpi = transport;
    if (status != TDM_OK) {
        mpi->failed_ns = tdmi_clock_ns();
        tdmi_mpi_let_go(transport);
    }
    return status;
}

/* ---- open ------------------------------------------------------------------------------------ */

static tdm_status start_mpi(tdmi_transport *transport, tdm_error *err)
{
    struct tdmi_mpi *mpi = transport;
    int is_started = 0, is_ended = 0, level = MPI_THREAD_SINGLE;
    char library[version_bytes];
    describe_library(library);
    MPI_Finalized(&is_ended);
    if (is_ended)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "starting %s: it has ended in this process, and MPI starts only once; a "
                        "process for each training is accepted",
                        library);
    MPI_Initialized(&is_started);
    if (is_started)
        MPI_Query_thread(&level);
    else
        TDMI_TRY(check_joint(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level),
                             "starting MPI", err));
    mpi->has_started = !is_started;
    if (mpi->has_started) /* a launcher that is killed leaves its ranks running */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (level < MPI_THREAD_SERIALIZED)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "starting %s: it grants thread level %d, and %d (MPI_THREAD_SERIALIZED) is "
                        "needed, because a thread of tandem calls it",
                        library, level, MPI_THREAD_SERIALIZED);
    return TDM_OK;
}

/* Under another MPI's launcher every rank is a world of its own. */
static tdm_status check_world(const struct tdmi_launch *launch, tdm_error *err)
{
    int world = 0, rank = 0;
    char library[version_bytes];
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (world == launch->world && rank == launch->rank)
        return TDM_OK;
    describe_library(library);
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "%s started rank %d of %d, but %s (%s) finds itself rank %d of %d: it is "
                    "another MPI's launcher; %s starts it with -n %d",
                    launch->launcher, launch->rank, launch->world, library, file_name, rank, world,
                    right_launcher, launch->world);
}

static tdm_status make_comm(tdmi_transport *transport, tdm_error *err)
{
    struct tdmi_mpi *mpi = transport;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    TDMI_TRY(check_joint(MPI_Comm_dup(MPI_COMM_WORLD, &mpi->comm),
                         "making a communicator of all ranks", err));
    MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
    return TDM_OK;
}

static tdm_status gather_hosts(tdmi_transport *transport, tdm_error *err)
{
    struct tdmi_mpi *mpi = transport;
    char mine[MPI_MAX_PROCESSOR_NAME] = "";
    int n = 0;
    MPI_Get_processor_name(mine, &n);
    return check_joint(
        MPI_Allgather(mine, sizeof mine, MPI_CHAR, mpi->hosts, sizeof mine, MPI_CHAR, mpi->comm),
        "exchanging the names of hosts", err);
}

static tdm_status compare_versions(tdmi_transport *transport, tdm_error *err)
{
    struct tdmi_mpi *mpi = transport;
    char mine[version_bytes] = "";
    TDMI_AT_END(tdmi_free_at) char(*all)[version_bytes] = NULL;
    TDMI_TRY(TDMI_NEW(all, mpi->world, err));
    snprintf(mine, sizeof mine, "%s", tdm_version());
    TDMI_TRY(check_joint(
        MPI_Allgather(mine, sizeof mine, MPI_CHAR, all, sizeof mine, MPI_CHAR, mpi->comm),
        "exchanging the versions of tandem", err));
    for (int rank = 0; rank < mpi->world; rank++)
        if (strcmp(all[rank], all[0]) != 0)
            return TDM_FAIL(err, TDM_E_PEER,
                            "comparing the ranks: rank %d on %s runs tandem %s and rank 0 on %s "
                            "runs tandem %s; all ranks need the same",
                            rank, mpi->hosts[rank], all[rank], mpi->hosts[0], all[0]);
    return TDM_OK;
}

static void end_mpi(tdmi_transport *transport)
{
    struct tdmi_mpi *mpi = transport;
    int is_ended = 0;
    if (mpi->comm != MPI_COMM_NULL)
        MPI_Comm_free(&mpi->comm);
    MPI_Finalized(&is_ended);
    if (mpi->has_started && !is_ended)
        MPI_Finalize();
}

/* When the job failed; 0: it has not. */
static int64_t process_failed_ns;

/* Launchers kill all ranks once one has gone without ending MPI, so a rank of a failed job ends a
 * second later, in which all save what they have and say why. */
static void linger(void)
{
    const int64_t left_ns = process_failed_ns + second_ns - tdmi_clock_ns();
    if (left_ns > 0)
        tdmi_mpi_nap(left_ns);
}

static void linger_at_exit(const tdmi_transport *transport)
{
    const struct tdmi_mpi *mpi = transport;
    if (process_failed_ns == 0)
        (void)atexit(linger);
    process_failed_ns = mpi->failed_ns;
}

/* After a failure MPI is left to the end of the process: MPI_Finalize would wait for the others. */
static void close_mpi(tdmi_transport *transport)
{
    struct tdmi_mpi *mpi = transport;
    if (!transport)
        return;
    if (mpi->is_joined && mpi->failed_ns != 0)
        linger_at_exit(transport);
    else if (mpi->is_joined && !mpi->open && tdmi_mpi_part(transport))
        end_mpi(transport);
    /* MPI may still write to it. */
    if (mpi->is_joined && mpi->comm != MPI_COMM_NULL)
        return;
    tdmi_free(mpi->peers);
    tdmi_free(mpi->hosts);
    tdmi_free(transport);
}

static void close_at(struct tdmi_mpi **mpi)
{
    close_mpi(*mpi);
}

/* Errors that all ranks find alike leave nobody waiting. */
static tdm_status join(const struct tdmi_launch *launch, tdmi_transport *transport, tdm_error *err)
{
    tdm_status status = check_world(launch, err);
    if (status == TDM_OK) {
        TDMI_TRY(make_comm(transport, err));
        TDMI_TRY(gather_hosts(transport, err));
        status = compare_versions(transport, err);
    }
    if (status != TDM_OK) {
        end_mpi(transport);
        if (launch->rank > 0) /* rank 0 prints why, before a launcher kills it */
            tdmi_mpi_nap(second_ns / 2);
        return status;
    }
    return note_failure(transport, tdmi_mpi_listen(transport, err));
}

static tdm_status open_mpi(const struct tdmi_launch *launch, tdmi_transport **transport,
                           tdm_error *err)
{
    TDMI_AT_END(close_at) struct tdmi_mpi *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->comm = MPI_COMM_NULL;
    made->rank = launch->rank;
    made->world = launch->world;
    made->deadline = launch->deadline;
    TDMI_TRY(TDMI_NEW(made->peers, launch->world, err));
    TDMI_TRY(TDMI_NEW(made->hosts, launch->world, err));
    TDMI_TRY(start_mpi(made, err));
    TDMI_TRY(join(launch, made, err));
    *transport = tdmi_take(&made);
    return TDM_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

static tdm_status send_mpi(tdmi_transport *transport, struct tdmi_message *message, tdm_error *err)
{
    return note_failure(transport, tdmi_mpi_start(transport, message, false, err));
}

static tdm_status receive_mpi(tdmi_transport *transport, struct tdmi_message *message,
                              tdm_error *err)
{
    return note_failure(transport, tdmi_mpi_start(transport, message, true, err));
}

static tdm_status progress_mpi(tdmi_transport *transport, bool needs_all, tdm_error *err)
{
    (void)needs_all; /* MPI does not say that a rank is gone: it is silent from then on */
    tdm_status status = tdmi_mpi_hear(transport, err);
    if (status == TDM_OK)
        status = tdmi_mpi_move(transport, err);
    return note_failure(transport, status);
}

static void let_go_mpi(tdmi_transport *transport)
{
    note_failure(transport, TDM_E_PEER);
}

/* MPI has nothing that a thread could wait for with a limit. */
static void sleep_mpi(tdmi_transport *transport, int64_t ns)
{
    (void)transport;
    tdmi_mpi_nap(ns);
}

static const char *host_of_mpi(const tdmi_transport *transport, int rank)
{
    const struct tdmi_mpi *mpi = transport;
    return mpi->hosts[rank];
}

static int64_t heard_ns_mpi(const tdmi_transport *transport, int rank)
{
    const struct tdmi_mpi *mpi = transport;
    return mpi->peers[rank].heard_ns;
}

static const char *said_mpi(const tdmi_transport *transport, int rank)
{
    const struct tdmi_mpi *mpi = transport;
    return mpi->peers[rank].said;
}

const void *tdmi_plugin_table(size_t *table_bytes);

const void *tdmi_plugin_table(size_t *table_bytes)
{
    static const struct tdmi_transport_table table = {
        .name = "mpi",
        .open = open_mpi,
        .close = close_mpi,
        .send = send_mpi,
        .receive = receive_mpi,
        .progress = progress_mpi,
        .let_go = let_go_mpi,
        .sleep = sleep_mpi,
        .host_of = host_of_mpi,
        .beat = tdmi_mpi_beat,
        .heard_ns = heard_ns_mpi,
        .said = said_mpi,
        .ended_by = tdmi_mpi_ended_by,
        .abandon = tdmi_mpi_abort,
    };
    *table_bytes = sizeof table;
    return &table;
}
