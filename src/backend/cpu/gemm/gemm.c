/* Packing, sharing products among threads, and which instruction set's products a CPU runs. */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/pieces.h"

TDMI_TABLE_OF(const struct tdmi_gemm_kernels *tdmi_gemm_kernels_of, tdmi_gemm)

/* A panel is (depth, vectors of the panel · lanes), zero behind the last column; one and a half
 * vectors have the half twice (gemm_half_body.h). */
void tdmi_gemm_pack(const struct tdmi_gemm_matrix *matrix, int lanes, int wide, int depth,
                    int first, float *packed)
{
    int left = (matrix->columns + lanes - 1) / lanes, column = 0;
    while (left > 0) {
        int vectors = tdmi_gemm_panel(left, wide), width = vectors * lanes;
        const bool is_half = vectors == 2 && matrix->columns - column == lanes + lanes / 2;
        float *to = packed + (int64_t)first * width;
        for (int row = 0; row < matrix->rows; row++, to += width) {
            const float *from =
                matrix->from + row * matrix->row_step + column * matrix->column_step;
            int n = matrix->columns - column < width ? matrix->columns - column : width;
            if (matrix->column_step == 1 && !matrix->scale)
                memcpy(to, from, sizeof *to * (size_t)n);
            else
                for (int i = 0; i < n; i++)
                    to[i] = from[i * matrix->column_step] *
                            (matrix->scale ? matrix->scale[column + i] : 1.0f);
            for (int i = n; i < width; i++)
                to[i] = is_half ? to[i - lanes / 2] : 0.0f;
        }
        packed += (int64_t)depth * width;
        column += width;
        left -= vectors;
    }
}

/* ---- pieces ---- */

/* A panel has blocks of its own height. */
void tdmi_gemm_add_pieces(const struct tdmi_gemm_kernels *kernels, const struct tdmi_gemm_rows *job,
                          int64_t first, int64_t end)
{
    const int64_t lines = (int64_t)job->n_images * job->n_lines;
    int left = (job->columns + kernels->lanes - 1) / kernels->lanes, wide;
    for (int64_t at = 0; left > 0; at += wide * kernels->lanes, left -= wide) {
        wide = tdmi_gemm_panel(left, job->wide);
        const int64_t panel_end = at + wide * kernels->lanes, tall = kernels->talls[wide];
        const struct tdmi_share of = {at > first ? at : first, panel_end < end ? panel_end : end};
        tdmi_pieces_add(job->pieces, lines * ((job->n_rows + tall - 1) / tall),
                        tdmi_gemm_round(job->columns), of, job->sum, job->square);
    }
}

/* ---- outer products by a team ---- */

/* C as a grid of blocks, numbered along its shorter side. */
struct grid {
    int tall, wide; /* of a block */
    int64_t down, across;
    bool is_down_first;
};

static int64_t parts(int64_t n, int64_t part)
{
    return (n + part - 1) / part;
}

/* Blocks as large as the registers allow, and smaller ones where these would not keep all members
 * busy for nearly the same time. */
static struct grid grid_of(const struct tdmi_gemm_kernels *kernels,
                           const struct tdmi_gemm_outer *job, int members)
{
    enum { blocks_a_member = 6, least_tall = 3 };
    struct grid grid = {.tall = kernels->talls[2],
                        .wide = 2 * kernels->lanes,
                        .is_down_first = job->rows < job->columns};
    grid.across = parts(job->columns, grid.wide);
    while (grid.tall / 2 >= least_tall &&
           parts(job->rows, grid.tall) * grid.across < (int64_t)blocks_a_member * members)
        grid.tall /= 2;
    grid.down = parts(job->rows, grid.tall);
    return grid;
}

/* The first call reads ahead for all. */
static void multiply_blocks(const struct tdmi_gemm_kernels *kernels, struct tdmi_gemm_outer *job,
                            const struct grid *grid, int64_t row, int64_t rows, int64_t column,
                            int64_t columns)
{
    struct tdmi_gemm_outer part = *job;
    const int64_t first_row = row * grid->tall, first_column = column * grid->wide;
    const int64_t rows_left = job->rows - first_row, columns_left = job->columns - first_column;
    part.rows = (int)(rows * grid->tall < rows_left ? rows * grid->tall : rows_left);
    part.columns = (int)(columns * grid->wide < columns_left ? columns * grid->wide : columns_left);
    part.a += first_row;
    part.b += first_column;
    part.c += first_row * job->c_row + first_column;
    kernels->outer(&part);
    memset(job->ahead, 0, sizeof job->ahead);
}

void tdmi_gemm_outer_shared(const struct tdmi_gemm_kernels *kernels,
                            const struct tdmi_gemm_outer *job, const struct tdmi_member *member)
{
    if (!member) {
        kernels->outer(job);
        return;
    }
    struct tdmi_gemm_outer own = *job;
    const struct grid grid = grid_of(kernels, job, member->size);
    const int64_t line = grid.is_down_first ? grid.down : grid.across;
    const struct tdmi_share mine = tdmi_member_share(member, grid.down * grid.across);
    /* Part of a line, whole lines, part of a line. */
    for (int64_t at = mine.first, n; at < mine.end; at += n) {
        const int64_t begin = at % line;
        n = mine.end - at;
        if (begin > 0 || n < line)
            n = n < line - begin ? n : line - begin;
        else
            n -= n % line;
        const int64_t lines = parts(n, line), within = n < line ? n : line;
        if (grid.is_down_first)
            multiply_blocks(kernels, &own, &grid, begin, within, at / line, lines);
        else
            multiply_blocks(kernels, &own, &grid, at / line, lines, begin, within);
    }
}
