/*
 * The shim's scheduler: the threads of a block on fibres. A fibre takes threads one after another,
 * and only when its thread has to wait does the next thread get a fibre of its own. So a kernel
 * that meets nobody runs on one fibre, without a single switch.
 *
 * Blocks run one after another. What a launch holds lives in one `struct run`, which its fibres
 * find through the thread-local `current`: a kernel cannot be handed a pointer of ours.
 */
#include "backend/cuda/shim_run.h"
#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

enum { warp_lanes = 32, most_threads = 1024, most_shared = 16, stack_bytes = 64 << 10 };
/* cudaErrorInvalidValue is 1; these are what the runtime says of such launches. */
enum { invalid_configuration = 9, out_of_memory = 2, launch_failure = 719 };
enum { shared_bytes_most = 48 << 10 }; /* without asking for more */

enum state { FREE, RUNS, AT_BARRIER, IN_WARP };

struct fibre {
    ucontext_t context;
    char *stack;
    enum state state;
    int thread;       /* that it runs, counted in the block */
    int line;         /* AT_BARRIER */
    uint32_t mask;    /* IN_WARP: who has to come */
    uint64_t value;   /* given, then got */
    int from;         /* whose value is wanted; -1: who gave one */
    bool is_released; /* may go on */
};

struct shared {
    const void *mark;
    void *memory;
    size_t bytes;
};

struct run {
    const struct tdmi_shim_launch *launch;
    bool is_reversed;
    int n_threads, n_begun, n_ended;
    bool has_ended[most_threads];
    struct fibre *of_thread[most_threads]; /* which runs it, or did */
    struct fibre *fibres;                  /* n_threads at most */
    int n_fibres;                          /* that have a stack */
    char *stacks;
    struct shared shared[most_shared];
    int n_shared;
    size_t shared_bytes;
    ucontext_t scheduler;
    struct fibre *turn;
    char problem[200];
};

__thread struct tdmi_shim_place threadIdx, blockIdx, blockDim, gridDim;
static _Thread_local struct run *current;
static _Thread_local struct tdmi_shim_way the_way;
static _Thread_local struct tdmi_shim_facts the_facts;

static _Thread_local void (*the_visit)(int is_inside);

void tdmi_shim_around(void (*visit)(int is_inside))
{
    the_visit = visit;
}

void tdmi_shim_use(struct tdmi_shim_way way)
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

/* Back to the scheduler, until it is this fibre's turn again. */
static void wait_turn(struct run *run, struct fibre *fibre)
{
    swapcontext(&fibre->context, &run->scheduler);
}

static void work(void)
{
    struct run *run = current;
    struct fibre *fibre = run->turn;
    for (;;) {
        while (run->n_begun < run->n_threads) {
            const int k = run->n_begun++;
            fibre->thread = run->is_reversed ? run->n_threads - 1 - k : k;
            run->of_thread[fibre->thread] = fibre;
            threadIdx = place_of((unsigned)fibre->thread, run->launch->block);
            run->launch->run(run->launch->self);
            run->has_ended[fibre->thread] = true;
            run->n_ended++;
        }
        fibre->state = FREE;
        wait_turn(run, fibre);
    }
}

static void give_turn(struct run *run, struct fibre *fibre)
{
    if (fibre->state != FREE)
        threadIdx = place_of((unsigned)fibre->thread, run->launch->block);
    fibre->state = RUNS;
    fibre->is_released = false;
    run->turn = fibre;
    swapcontext(&run->scheduler, &fibre->context);
}

/* One whose thread may go on, else a free one where threads are left to begin. */
static struct fibre *choose(struct run *run)
{
    struct fibre *unused = NULL;
    for (int i = 0; i < run->n_fibres; i++) {
        if (run->fibres[i].is_released)
            return &run->fibres[i];
        if (run->fibres[i].state == FREE)
            unused = &run->fibres[i];
    }
    if (run->n_begun == run->n_threads)
        return NULL;
    if (!unused) {
        unused = &run->fibres[run->n_fibres];
        getcontext(&unused->context);
        unused->context.uc_stack.ss_sp = run->stacks + (size_t)run->n_fibres * stack_bytes;
        unused->context.uc_stack.ss_size = stack_bytes;
        unused->context.uc_link = NULL;
        unused->state = FREE;
        makecontext(&unused->context, work, 0);
        run->n_fibres++;
    }
    return unused;
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
    for (int i = 0; i < run->n_fibres; i++) {
        const struct fibre *fibre = &run->fibres[i];
        if (fibre->state == IN_WARP) {
            complain(run, "thread %d waits in its warp for lanes %08x, which do not all come",
                     fibre->thread, (unsigned)fibre->mask);
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
    }
    for (int i = 0; i < run->n_fibres; i++)
        run->fibres[i].is_released = run->fibres[i].state == AT_BARRIER;
    return n_waiting > 0;
}

/* The fibre that waits in a warp for this very meeting, as this thread; NULL: not here yet. */
static struct fibre *met(struct run *run, int thread, uint32_t mask)
{
    struct fibre *fibre = run->of_thread[thread];
    const bool is_here = fibre && fibre->thread == thread && fibre->state == IN_WARP &&
                         !fibre->is_released && fibre->mask == mask;
    return is_here ? fibre : NULL;
}

/* All are here: each gets what it asked for. */
static void exchange(struct fibre *const lanes[warp_lanes])
{
    uint64_t given[warp_lanes];
    uint64_t set = 0;
    for (int lane = 0; lane < warp_lanes; lane++) {
        given[lane] = lanes[lane] ? lanes[lane]->value : UINT64_MAX; /* a NaN of either size */
        if (lanes[lane] && given[lane] != 0)
            set |= (uint64_t)1 << lane;
    }
    for (int lane = 0; lane < warp_lanes; lane++) {
        if (!lanes[lane])
            continue;
        lanes[lane]->value = lanes[lane]->from < 0 ? set : given[lanes[lane]->from];
        lanes[lane]->is_released = true;
    }
}

uint64_t tdmi_shim_meet(uint32_t mask, uint64_t value, int from)
{
    struct run *run = current;
    struct fibre *fibre = run->turn;
    struct fibre *lanes[warp_lanes] = {NULL};
    const int first = fibre->thread / warp_lanes * warp_lanes;
    bool is_complete = true;
    fibre->state = IN_WARP;
    fibre->mask = mask;
    fibre->value = value;
    fibre->from = from;
    if (!(mask >> (fibre->thread - first) & 1))
        complain(run, "thread %d meets lanes %08x, which it is none of", fibre->thread,
                 (unsigned)mask);
    for (int lane = 0; lane < warp_lanes && is_complete; lane++) {
        if (!(mask >> lane & 1))
            continue;
        const bool is_gone = first + lane >= run->n_threads || run->has_ended[first + lane];
        if (is_gone)
            complain(run, "thread %d meets lanes %08x, and lane %d is gone", fibre->thread,
                     (unsigned)mask, lane);
        else
            lanes[lane] = met(run, first + lane, mask);
        is_complete = lanes[lane] != NULL;
    }
    if (is_complete)
        exchange(lanes);
    wait_turn(run, fibre);
    return fibre->value;
}

/* ---- shared memory ---------------------------------------------------------------------- */

void *tdmi_shim_shared(const void *mark, size_t bytes)
{
    struct run *run = current;
    for (int i = 0; i < run->n_shared; i++)
        if (run->shared[i].mark == mark)
            return run->shared[i].memory;
    if (run->n_shared == most_shared || run->shared_bytes + bytes > shared_bytes_most) {
        complain(run, "a block shares %zu bytes in %d pieces; %d in %d are what it may",
                 run->shared_bytes + bytes, run->n_shared + 1, shared_bytes_most, most_shared);
        wait_turn(run, run->turn); /* for ever: the launch ends */
    }
    struct shared *shared = &run->shared[run->n_shared++];
    shared->mark = mark;
    shared->bytes = bytes;
    shared->memory = tdmi_alloc_aligned(bytes);
    run->shared_bytes += bytes;
    if (!shared->memory) {
        complain(run, "there are no %zu bytes to share", bytes);
        wait_turn(run, run->turn);
    }
    memset(shared->memory, 0xff, bytes);
    return shared->memory;
}

static void forget_shared(struct run *run)
{
    while (run->n_shared > 0)
        tdmi_free(run->shared[--run->n_shared].memory);
    run->shared_bytes = 0;
}

/* ---- blocks ----------------------------------------------------------------------------- */

static void run_block(struct run *run)
{
    struct fibre *next;
    run->n_begun = run->n_ended = 0;
    memset(run->has_ended, 0, (size_t)run->n_threads * sizeof *run->has_ended);
    memset(run->of_thread, 0, (size_t)run->n_threads * sizeof(struct fibre *));
    while (run->problem[0] == '\0' && run->n_ended < run->n_threads) {
        next = choose(run);
        if (next)
            give_turn(run, next);
        else if (!open_barrier(run))
            complain(run, "no thread of a block can go on");
    }
    forget_shared(run);
}

static int64_t size_of(struct tdmi_shim_place it)
{
    return (int64_t)it.x * it.y * it.z;
}

/* What a card takes; its compiler does not look. */
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

int tdmi_shim_launch(const struct tdmi_shim_launch *launch)
{
    note(launch);
    if (!is_possible(launch->grid, launch->block)) {
        snprintf(the_facts.problem, sizeof the_facts.problem,
                 "no card runs a grid of %u×%u×%u blocks of %u×%u×%u threads", launch->grid.x,
                 launch->grid.y, launch->grid.z, launch->block.x, launch->block.y, launch->block.z);
        return invalid_configuration;
    }
    struct run run = {.launch = launch,
                      .is_reversed = the_way.is_reversed,
                      .n_threads = (int)size_of(launch->block)};
    run.fibres = tdmi_alloc((size_t)run.n_threads, sizeof *run.fibres);
    run.stacks = tdmi_alloc((size_t)run.n_threads, stack_bytes);
    int code = out_of_memory;
    if (run.fibres && run.stacks) {
        current = &run;
        blockDim = launch->block;
        gridDim = launch->grid;
        if (the_visit)
            the_visit(1);
        run_blocks(&run);
        if (the_visit)
            the_visit(0);
        current = NULL;
        code = run.problem[0] != '\0' ? launch_failure : 0;
        if (code != 0)
            snprintf(the_facts.problem, sizeof the_facts.problem, "%.199s", run.problem);
    }
    tdmi_free(run.stacks);
    tdmi_free(run.fibres);
    return code;
}
