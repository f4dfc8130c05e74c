/*
 * NCCL's functions as tandem calls them: a communicator that does not block. What is sent lies in a
 * mailbox until its receiver asks for it; a receiver whose message is missing is "in progress".
 */
#include "backend/cuda/fakes/fake_nccl.h"
#include "backend/cuda/vendor/nccl_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define X(field, symbol, result, parameters) result symbol parameters;
TDMI_NCCL_CALLS(X)
#undef X

enum { most_pending = 64, usage_error = 5 };

struct fake_nccl fake_nccl;

struct mail {
    struct mail *next;
    int from, to, is_sum;
    size_t n;
    float values[];
};

/* The sum of the messages of these ranks, which are still missing. */
struct pending {
    float *to, *sum;
    size_t n;
    unsigned missing;
    int is_sum;
};

struct comm {
    int rank, world, n_pending;
    struct pending pending[most_pending];
    struct CUstream_st *queue;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mail *mails;
static unsigned joined;
static _Thread_local struct comm *grouped;

struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

static void run_copy(void *self)
{
    const struct copy *it = self;
    memcpy(it->to, it->from, it->bytes);
}

static void copy(struct CUstream_st *queue, void *to, const void *from, size_t n)
{
    struct copy it = {to, from, n * sizeof(float)};
    (void)fake_nccl.launch(queue, run_copy, &it, sizeof it, 0);
    (void)fake_nccl.synchronize(queue);
}

static void post(const struct comm *comm, int to, int is_sum, const float *values, size_t n)
{
    struct mail *mail = calloc(1, sizeof *mail + n * sizeof(float)), **end = &mails;
    *mail = (struct mail){NULL, comm->rank, fake_nccl.breaks[comm->rank] ? -1 : to, is_sum, n};
    copy(comm->queue, mail->values, values, n);
    pthread_mutex_lock(&lock);
    while (*end)
        end = &(*end)->next;
    *end = mail;
    pthread_mutex_unlock(&lock);
}

static struct mail *take(int from, int to, int is_sum)
{
    pthread_mutex_lock(&lock);
    struct mail **at = &mails, *mail;
    while (*at && ((*at)->from != from || (*at)->to != to || (*at)->is_sum != is_sum))
        at = &(*at)->next;
    if ((mail = *at) != NULL)
        *at = mail->next;
    pthread_mutex_unlock(&lock);
    return mail;
}

/* awaited: ranks of which an earlier receiver still waits for a message. The next one is its. */
static void receive(const struct comm *comm, unsigned awaited, struct pending *it)
{
    for (int r = 0; r < comm->world; r++) {
        const bool may_take = (it->missing & ~awaited) >> r & 1;
        struct mail *mail = may_take ? take(r, comm->rank, it->is_sum) : NULL;
        if (mail && mail->n != it->n)
            abort(); /* both sides must give the same number */
        for (size_t i = 0; mail && i < it->n; i++)
            it->sum[i] += mail->values[i];
        it->missing &= mail ? ~(1u << r) : ~0u;
        free(mail);
    }
    if (it->missing == 0)
        copy(comm->queue, it->to, it->sum, it->n);
}

static int progress(struct comm *comm)
{
    int n_left = 0;
    unsigned awaited = 0;
    for (int i = 0; i < comm->n_pending; i++) {
        struct pending *it = &comm->pending[i];
        receive(comm, awaited, it);
        awaited |= it->missing;
        if (it->missing == 0)
            free(it->sum);
        else
            comm->pending[n_left++] = *it;
    }
    comm->n_pending = n_left;
    return n_left > 0 ? TDMI_NCCL_IN_PROGRESS : 0;
}

static int expect(struct comm *comm, float *to, size_t n, unsigned missing, int is_sum)
{
    struct pending it = {to, malloc(n * sizeof(float)), n, missing, is_sum};
    for (size_t i = 0; i < n; i++)
        it.sum[i] = -0.0f; /* to which nothing is lost */
    if (comm->n_pending == most_pending)
        abort();
    comm->pending[comm->n_pending++] = it;
    return 0;
}

static void count(int *counter, int by)
{
    pthread_mutex_lock(&lock);
    *counter += by;
    pthread_mutex_unlock(&lock);
}

/* ---- NCCL's functions ------------------------------------------------------------------------ */

int ncclGetVersion(int *version)
{
    *version = 22809;
    return 0;
}

const char *ncclGetErrorString(int code)
{
    return code == usage_error ? "invalid usage" : "another error";
}

int ncclGetUniqueId(struct tdmi_peers_id *id)
{
    memset(id->bytes, 7, sizeof id->bytes);
    return 0;
}

int ncclCommInitRankConfig(void **comm, int world, struct tdmi_peers_id id, int rank,
                           struct tdmi_nccl_config *config)
{
    struct comm *made = calloc(1, sizeof *made);
    if (id.bytes[127] != 7 || config->blocking != 0 || config->size != sizeof *config)
        abort();
    made->rank = rank;
    made->world = world;
    *comm = made;
    count(&fake_nccl.alive, 1);
    pthread_mutex_lock(&lock);
    joined |= fake_nccl.refuses[rank] ? 0 : 1u << rank;
    pthread_mutex_unlock(&lock);
    return fake_nccl.refuses[rank] ? usage_error : TDMI_NCCL_IN_PROGRESS;
}

int ncclCommAbort(void *self)
{
    struct comm *comm = self;
    pthread_mutex_lock(&lock);
    fake_nccl.alive--;
    for (struct mail *next; fake_nccl.alive == 0 && mails; mails = next) {
        next = mails->next;
        free(mails);
    }
    joined = fake_nccl.alive == 0 ? 0 : joined;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < comm->n_pending; i++)
        free(comm->pending[i].sum);
    free(comm);
    return 0;
}

int ncclCommGetAsyncError(void *self, int *state)
{
    struct comm *comm = self;
    pthread_mutex_lock(&lock);
    const int are_there = joined == (1u << comm->world) - 1;
    pthread_mutex_unlock(&lock);
    *state = are_there ? progress(comm) : TDMI_NCCL_IN_PROGRESS;
    return 0;
}

int ncclGroupStart(void)
{
    grouped = NULL;
    return 0;
}

int ncclGroupEnd(void)
{
    count(&fake_nccl.groups, 1);
    if (!grouped)
        return 0;
    return fake_nccl.breaks[grouped->rank] ? usage_error : progress(grouped);
}

int ncclSend(const void *values, size_t n, int type, int to, void *self, struct CUstream_st *queue)
{
    grouped = self;
    grouped->queue = queue;
    post(grouped, to, 0, values, n);
    return type == TDMI_NCCL_FLOAT ? 0 : usage_error;
}

int ncclRecv(void *values, size_t n, int type, int from, void *self, struct CUstream_st *queue)
{
    grouped = self;
    grouped->queue = queue;
    return type == TDMI_NCCL_FLOAT ? expect(grouped, values, n, 1u << from, 0) : usage_error;
}

int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *self,
                  struct CUstream_st *queue)
{
    struct comm *comm = self;
    if (type != TDMI_NCCL_FLOAT || op != TDMI_NCCL_SUM)
        return usage_error;
    comm->queue = queue;
    count(&fake_nccl.sums, 1);
    for (int r = 0; r < comm->world; r++)
        post(comm, r, 1, from, n);
    return expect(comm, to, n, (1u << comm->world) - 1, 1) ? usage_error : progress(comm);
}
