/*
 * allreduce_mpi BYTES SECONDS: MPI_Allreduce of an array of floats, in place, timed as `tandem
 * bench allreduce` times its sums: all begin together, the slowest rank's time counts, the median
 * is printed.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { most_rounds = 2000, warm_ups = 3 };

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static double seconds[most_rounds];
    if (argc != 3)
        return 2;
    MPI_Init(&argc, &argv);
    const int n = (int)(strtol(argv[1], NULL, 10) / (long)sizeof(float));
    const double limit = strtod(argv[2], NULL);
    float *values = malloc(sizeof *values * (size_t)n);
    int rank, rounds = 0, goes_on = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < n; i++)
        values[i] = 1e-30f * (float)i;
    const double began = MPI_Wtime();
    for (int i = 0; goes_on; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double own = MPI_Wtime(), slowest;
        MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        own = MPI_Wtime() - own;
        MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (i >= warm_ups)
            seconds[rounds++] = slowest;
        goes_on = rounds < most_rounds && (rounds == 0 || MPI_Wtime() - began < limit);
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    qsort(seconds, (size_t)rounds, sizeof *seconds, ascending);
    if (rank == 0)
        printf("{\"rounds\": %d, \"milliseconds\": %.6f}\n", rounds, 1e3 * seconds[rounds / 2]);
    free(values);
    MPI_Finalize();
    return 0;
}
