/*
 * The shim's scheduler: the threads of a block on fibres. A fibre takes threads one after another,
 * and only when its thread has to wait does the next thread get a fibre of its own. So a kernel
 * that meets nobody runs on one fibre, without a single switch. Whoever has to wait chooses the
 * next one and hands the turn to it; the launch itself goes on when nobody can.
 *
 * Blocks run one after another. What a launch holds lives in one `struct run`, which its fibres
 * find through the thread-local `current`: a kernel cannot be handed a pointer of ours. Fibres stay
 * for the next launch of the thread, since their stacks are pages that the system would have to
 * give and clear again.
 */
#include "backend/cuda/shim/shim_run.h"
#include "backend/cuda/shim/shim_switch.h"
#include "base/memory.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { warp_lanes = 32, most_threads = 1024, most_shared = 16, stack_bytes = 64 << 10 };
enum { most_warps = most_threads / warp_lanes };
/* cudaErrorInvalidValue is 1; these are what the runtime says of such launches. */
enum { invalid_configuration = 9, out_of_memory = 2, launch_failure = 719 };
enum { shared_bytes_most = 48 << 10 }; /* without asking for more */

enum state { FREE, RUNS, AT_BARRIER, IN_WARP };

struct fibre {
    struct tdmi_shim_context stand;
    enum state state;
    int thread;                   /* that it runs, counted in the block */
    struct tdmi_shim_place place; /* of the thread */
    int line;                     /* AT_BARRIER */
    uint32_t mask;                /* IN_WARP: who has to come */
    uint64_t value;               /* given, then got */
    int from;                     /* thread whose value is read; -1: this one gave a value */
};

/* State of a CPU thread, from its first launch to its end. */
struct crew {
    int n_stacks;         /* threads a block may have */
    struct fibre *fibres; /* one a stack */
    char *stacks;
    int queue[most_threads]; /* fibres that may go on, first come first served */
    int n_idle, idle[most_threads];
};

struct shared {
    const void *mark;
    void *memory;
    size_t bytes;
    bool is_in_use; /* by the block that runs */
};

struct run {
    const struct tdmi_shim_launch *launch;
    struct crew *crew;
    bool is_reversed;
    int n_threads, n_begun, n_ended;
    uint32_t ended[most_warps];            /* lanes that are gone, or never were */
    uint32_t waiting[most_warps];          /* lanes IN_WARP that are not released */
    struct fibre *of_thread[most_threads]; /* which runs it, or did */
    int n_queued, first_queued;
    struct shared shared[most_shared];
    int n_shared;
    size_t shared_bytes;
    struct tdmi_shim_context launcher;
    struct fibre *turn;
    char problem[200];
};

__thread struct tdmi_shim_place threadIdx, blockIdx, blockDim, gridDim;
static _Thread_local struct run *current;
static _Thread_local struct tdmi_shim_order the_way;
static _Thread_local struct tdmi_shim_facts the_facts;

void tdmi_shim_use(struct tdmi_shim_order way)
{
    the_way = way;
    the_facts = (struct tdmi_shim_facts){0};
}

struct tdmi_shim_facts tdmi_shim_facts(void)
{
    return the_facts;
}

__attribute__((format(printf, 2, 3))) static void complain(struct run *run, const char *format, ...)
{
    va_list arguments;
    if (run->problem[0] != '\0') /* what came first is the cause */
        return;
    va_start(arguments, format);
    vsnprintf(run->problem, sizeof run->problem, format, arguments);
    va_end(arguments);
}

/* ---- fibres ----------------------------------------------------------------------------- */

static struct tdmi_shim_place place_of(unsigned index, struct tdmi_shim_place size)
{
    return (struct tdmi_shim_place){index % size.x, index / size.x % size.y,
                                    index / size.x / size.y};
}

static void may_go_on(struct run *run, struct fibre *fibre)
{
    const int at = (run->first_queued + run->n_queued++) % most_threads;
    run->crew->queue[at] = (int)(fibre - run->crew->fibres);
}

/* One whose thread may go on, else a free one where threads are left to begin. */
static struct fibre *choose(struct run *run)
{
    struct crew *crew = run->crew;
    if (run->problem[0] != '\0')
        return NULL;
    if (run->n_queued > 0) {
        struct fibre *fibre = &crew->fibres[crew->queue[run->first_queued]];
        run->first_queued = (run->first_queued + 1) % most_threads;
        run->n_queued--;
        return fibre;
    }
    return run->n_begun < run->n_threads ? &crew->fibres[crew->idle[--crew->n_idle]] : NULL;
}

/* From `here` to whoever is next; NULL, the launch itself. */
static void hand_on(struct run *run, struct tdmi_shim_context *here, struct fibre *next)
{
    run->turn = next;
    if (!next) {
        tdmi_shim_switch(here, &run->launcher);
        return;
    }
    threadIdx = next->place;
    next->state = RUNS;
    if (here != &next->stand) /* who meets the last of all may go on at once */
        tdmi_shim_switch(here, &next->stand);
}

static void wait_turn(struct run *run, struct fibre *fibre)
{
    hand_on(run, &fibre->stand, choose(run));
}

static void work(void)
{
    for (;;) {
        struct run *run = current;
        struct fibre *fibre = run->turn;
        while (run->n_begun < run->n_threads) {
            const int k = run->n_begun++;
            fibre->thread = run->is_reversed ? run->n_threads - 1 - k : k;
            fibre->place = place_of((unsigned)fibre->thread, run->launch->block);
            run->of_thread[fibre->thread] = fibre;
            threadIdx = fibre->place;
            run->launch->run(run->launch->self);
            run->ended[fibre->thread / warp_lanes] |= (uint32_t)1 << fibre->thread % warp_lanes;
            run->n_ended++;
        }
        fibre->state = FREE;
        run->crew->idle[run->crew->n_idle++] = (int)(fibre - run->crew->fibres);
        wait_turn(run, fibre);
    }
}

/* ---- meeting ---------------------------------------------------------------------------- */

void tdmi_shim_sync(int line)
{
    struct run *run = current;
    struct fibre *fibre = run->turn;
    fibre->state = AT_BARRIER;
    fibre->line = line;
    wait_turn(run, fibre);
}

/* When nobody can go on: everyone left is at the barrier, which opens, or something is wrong. */
static bool open_barrier(struct run *run)
{
    int n_waiting = 0, line = 0;
    for (int i = 0; i < run->n_threads; i++) {
        struct fibre *fibre = run->of_thread[i];
        if (!fibre || fibre->thread != i)
            continue; /* it has ended, and its fibre has gone on */
        if (fibre->state == IN_WARP) {
            complain(run, "thread %d waits in its warp for lanes %08x, which do not all come", i,
                     (unsigned)fibre->mask);
            return false;
        }
        if (fibre->state != AT_BARRIER)
            continue;
        if (n_waiting++ > 0 && fibre->line != line) {
            complain(run, "threads of one block wait at the barriers of lines %d and %d", line,
                     fibre->line);
            return false;
        }
        line = fibre->line;
        may_go_on(run, fibre);
    }
    return n_waiting > 0;
}

/* Are all of them here, for this very meeting? */
static bool have_met(struct run *run, int first, uint32_t mask)
{
    if ((run->waiting[first / warp_lanes] & mask) != mask)
        return false;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
        if (run->of_thread[first + __builtin_ctz(rest)]->mask != mask)
            return false;
    return true;
}

/* Each gets what it asked for. */
static void exchange(struct run *run, int first, uint32_t mask)
{
    uint64_t given[warp_lanes];
    uint64_t set = 0;
    memset(given, 0xff, sizeof given); /* of lanes that are not among them: a NaN of either size */
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        given[lane] = run->of_thread[first + lane]->value;
        if (given[lane] != 0)
            set |= (uint64_t)1 << lane;
    }
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        struct fibre *fibre = run->of_thread[first + __builtin_ctz(rest)];
        fibre->value = fibre->from < 0 ? set : given[fibre->from];
        may_go_on(run, fibre);
    }
    run->waiting[first / warp_lanes] &= ~mask;
}

uint64_t tdmi_shim_meet(uint32_t mask, uint64_t value, int from)
{
    struct run *run = current;
    struct fibre *fibre = run->turn;
    const int warp = fibre->thread / warp_lanes, first = warp * warp_lanes;
    const uint32_t own = (uint32_t)1 << (fibre->thread - first), gone = mask & run->ended[warp];
    fibre->state = IN_WARP;
    fibre->mask = mask;
    fibre->value = value;
    fibre->from = from;
    run->waiting[warp] |= own;
    if (!(mask & own))
        complain(run, "thread %d meets lanes %08x, which it is none of", fibre->thread,
                 (unsigned)mask);
    if (gone)
        complain(run, "thread %d meets lanes %08x, and lane %d is gone", fibre->thread,
                 (unsigned)mask, __builtin_ctz(gone));
    else if (have_met(run, first, mask))
        exchange(run, first, mask);
    wait_turn(run, fibre);
    return fibre->value;
}

/* ---- shared memory ---------------------------------------------------------------------- */

/* For ever: the launch ends. */
static void stop_here(struct run *run)
{
    struct fibre *fibre = run->turn;
    for (;;)
        hand_on(run, &fibre->stand, NULL);
}

static struct shared *share(struct run *run, const void *mark, size_t bytes)
{
    if (run->n_shared == most_shared || run->shared_bytes + bytes > shared_bytes_most) {
        complain(run, "a block shares %zu bytes in %d pieces; %d in %d are what it may",
                 run->shared_bytes + bytes, run->n_shared + 1, shared_bytes_most, most_shared);
        stop_here(run);
    }
    struct shared *shared = &run->shared[run->n_shared++];
    shared->mark = mark;
    shared->bytes = bytes;
    shared->memory = tdmi_alloc_aligned(bytes);
    run->shared_bytes += bytes;
    if (!shared->memory) {
        complain(run, "there are no %zu bytes to share", bytes);
        stop_here(run);
    }
    return shared;
}

void *tdmi_shim_shared(const void *mark, size_t bytes)
{
    struct run *run = current;
    struct shared *shared = NULL;
    for (int i = 0; i < run->n_shared && !shared; i++)
        if (run->shared[i].mark == mark)
            shared = &run->shared[i];
    if (!shared)
        shared = share(run, mark, bytes);
    if (!shared->is_in_use) /* by nobody of this block yet */
        memset(shared->memory, 0xff, bytes);
    shared->is_in_use = true;
    return shared->memory;
}

static void free_shared(struct run *run)
{
    while (run->n_shared > 0)
        tdmi_free(run->shared[--run->n_shared].memory);
}

/* ---- blocks ----------------------------------------------------------------------------- */

/* Ends with all fibres FREE, or with a problem. */
static void run_block(struct run *run)
{
    struct fibre *next;
    run->n_begun = run->n_ended = 0;
    for (int warp = 0; warp * warp_lanes < run->n_threads; warp++) {
        const int lanes = run->n_threads - warp * warp_lanes;
        run->ended[warp] = lanes < warp_lanes ? UINT32_MAX << lanes : 0;
        run->waiting[warp] = 0;
    }
    memset(run->of_thread, 0, (size_t)run->n_threads * sizeof *run->of_thread);
    for (int i = 0; i < run->n_shared; i++)
        run->shared[i].is_in_use = false;
    while (run->problem[0] == '\0' && run->n_ended < run->n_threads) {
        next = choose(run);
        if (next)
            hand_on(run, &run->launcher, next);
        else if (!open_barrier(run))
            complain(run, "no thread of a block can go on");
    }
}

static int64_t size_of(struct tdmi_shim_place it)
{
    return (int64_t)it.x * it.y * it.z;
}

/* Limits of launches, which nvcc does not check. */
static bool is_possible(struct tdmi_shim_place grid, struct tdmi_shim_place block)
{
    return size_of(grid) > 0 && size_of(block) > 0 && size_of(block) <= most_threads &&
           block.z <= 64 && grid.x <= INT32_MAX && grid.y <= UINT16_MAX && grid.z <= UINT16_MAX;
}

static void run_blocks(struct run *run)
{
    const int64_t n = size_of(run->launch->grid), edge = the_way.edge_blocks;
    for (int64_t k = 0; k < n && run->problem[0] == '\0'; k++) {
        if (edge > 0 && k == edge && n - edge > k)
            k = n - edge;
        const int64_t at = run->is_reversed ? n - 1 - k : k;
        const struct tdmi_shim_place grid = run->launch->grid;
        blockIdx =
            (struct tdmi_shim_place){(unsigned)(at % grid.x), (unsigned)(at / grid.x % grid.y),
                                     (unsigned)(at / grid.x / grid.y)};
        run_block(run);
    }
}

static void note(const struct tdmi_shim_launch *launch)
{
    const int64_t grid = size_of(launch->grid), block = size_of(launch->block);
    the_facts.launches++;
    if (grid > the_facts.largest_grid)
        the_facts.largest_grid = grid;
    if (block > the_facts.largest_block)
        the_facts.largest_block = block;
    if (launch->grid.y > the_facts.largest_grid_y)
        the_facts.largest_grid_y = launch->grid.y;
}

/* ---- the crew --------------------------------------------------------------------------- */

static void dismiss(void *of)
{
    struct crew *crew = of;
    tdmi_free(crew->stacks);
    tdmi_free(crew->fibres);
    tdmi_free(crew);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t crew_key;

static void make_key(void)
{
    (void)pthread_key_create(&crew_key, dismiss);
}

static struct crew *gather(int n)
{
    struct crew *crew = tdmi_alloc(1, sizeof *crew);
    if (!crew)
        return NULL;
    crew->n_stacks = crew->n_idle = n;
    crew->fibres = tdmi_alloc((size_t)n, sizeof *crew->fibres);
    crew->stacks = tdmi_alloc((size_t)n, stack_bytes);
    if (!crew->fibres || !crew->stacks) {
        dismiss(crew);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        crew->idle[i] = n - 1 - i; /* the first is taken first */
        tdmi_shim_context_make(&crew->fibres[i].stand, crew->stacks + (size_t)i * stack_bytes,
                               stack_bytes, work);
    }
    return crew;
}

/* That of the calling thread, large enough for a block of n; NULL: there is no memory for it. */
static struct crew *crew_of(int n)
{
    pthread_once(&once, make_key);
    struct crew *crew = pthread_getspecific(crew_key);
    if (crew && crew->n_stacks >= n)
        return crew;
    if (crew)
        dismiss(crew);
    crew = gather(n);
    (void)pthread_setspecific(crew_key, crew);
    return crew;
}

/* After a problem fibres stand where they stood in the kernel. */
static void forget_crew(void)
{
    dismiss(pthread_getspecific(crew_key));
    (void)pthread_setspecific(crew_key, NULL);
}

/* ---- a launch --------------------------------------------------------------------------- */

static int refuse(const struct tdmi_shim_launch *launch)
{
    snprintf(the_facts.problem, sizeof the_facts.problem,
             "no GPU runs a grid of %u×%u×%u blocks of %u×%u×%u threads", launch->grid.x,
             launch->grid.y, launch->grid.z, launch->block.x, launch->block.y, launch->block.z);
    return invalid_configuration;
}

static int lack_crew(const struct tdmi_shim_launch *launch)
{
    snprintf(the_facts.problem, sizeof the_facts.problem, "no memory for %d threads",
             (int)size_of(launch->block));
    return out_of_memory;
}

int tdmi_shim_launch(const struct tdmi_shim_launch *launch)
{
    if (!is_possible(launch->grid, launch->block)) {
        note(launch);
        return refuse(launch);
    }
    if (!launch->queue)
        return tdmi_shim_run(launch);
    if (crew_of((int)size_of(launch->block)))
        return tdmi_shim_queue(launch);
    return lack_crew(launch);
}

int tdmi_shim_run(const struct tdmi_shim_launch *launch)
{
    note(launch);
    const int n = (int)size_of(launch->block);
    struct run run = {
        .launch = launch, .crew = crew_of(n), .is_reversed = the_way.is_reversed, .n_threads = n};
    if (!run.crew)
        return lack_crew(launch);
    current = &run;
    blockDim = launch->block;
    gridDim = launch->grid;
    run_blocks(&run);
    current = NULL;
    free_shared(&run);
    if (run.problem[0] == '\0')
        return 0;
    forget_crew();
    snprintf(the_facts.problem, sizeof the_facts.problem, "%.199s", run.problem);
    return launch_failure;
}
