/*
 * The transport over MPI is a plugin for each MPI (src/dist/mpi), because a program that is linked
 * with one MPI runs under that one's launcher only. The launcher decides which one is opened.
 */
#include "base/scope.h"
#include "base/system/plugin.h"
#include "dist/transport.h"

#include <stdio.h>
#include <time.h>

/* start, srun: what starts its ranks; install: what its headers are called on Debian. */
struct mpi {
    const char *name, *plugin, *title, *start, *srun, *install;
};

static const struct mpi mpis[] = {
    {"openmpi", "mpi_openmpi", "Open MPI", "mpirun.openmpi", "srun --mpi=pmix", "libopenmpi-dev"},
    {"mpich", "mpi_mpich", "MPICH", "mpirun.mpich", "srun --mpi=pmi2", "libmpich-dev"},
};
enum { n_mpis = sizeof mpis / sizeof mpis[0] };

static const struct mpi *find(const char *name)
{
    for (int i = 0; name && i < n_mpis; i++)
        if (strcmp(mpis[i].name, name) == 0)
            return &mpis[i];
    return NULL;
}

static tdm_status open_plugin(const struct mpi *mpi, const struct tdmi_transport_table **table,
                              tdm_error *err)
{
    char what[64];
    const void *found = NULL;
    snprintf(what, sizeof what, "the part of tandem that talks to ranks over %s", mpi->title);
    const tdm_status status = tdmi_plugin_open(mpi->plugin, what, sizeof **table, 0, &found, err);
    *table = status == TDM_OK ? found : *table;
    return status;
}

bool tdmi_mpi_is_built(const char *name)
{
    const struct tdmi_transport_table *table = NULL;
    const struct mpi *mpi = find(name);
    return mpi && open_plugin(mpi, &table, NULL) == TDM_OK;
}

/* Is the plugin itself missing? Otherwise the loader's text says what is wrong with it. */
static bool is_missing(const struct mpi *mpi, const tdm_error *err)
{
    char text[64];
    snprintf(text, sizeof text, "'libtandem_%s.so: cannot open", mpi->plugin);
    return strstr(tdm_error_sentence(err, 0), text) != NULL;
}

/* The sentence for a launcher whose MPI is not there. */
static tdm_status report_absent(const struct tdmi_launch *launch, const struct mpi *mpi,
                                tdm_error *err)
{
    const struct tdmi_transport_table *table = NULL;
    const struct mpi *other = NULL;
    const bool is_srun = strncmp(launch->launcher, "srun", strlen("srun")) == 0;
    for (int i = 0; i < n_mpis && !other; i++)
        if (&mpis[i] != mpi && open_plugin(&mpis[i], &table, NULL) == TDM_OK)
            other = &mpis[i];
    if (other)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "%s started %d ranks, but this tandem talks over %s (libtandem_%s.so) and "
                        "has no libtandem_%s.so: '%s -n %d' starts it, or install %s and build "
                        "again",
                        launch->launcher, launch->world, other->title, other->plugin, mpi->plugin,
                        is_srun ? other->srun : other->start, launch->world, mpi->install);
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "%s started %d ranks, but this tandem has no part for any MPI "
                    "(libtandem_%s.so): install %s and build again, or start it by torchrun",
                    launch->launcher, launch->world, mpi->plugin, mpi->install);
}

static tdm_status load_mpi(const struct tdmi_launch *launch,
                           const struct tdmi_transport_table **table, tdm_error *err)
{
    const struct mpi *first = find(launch->mpis[0]), *second = find(launch->mpis[1]);
    tdm_error why = {0};
    if (open_plugin(first, table, &why) == TDM_OK)
        return TDM_OK;
    if (second && open_plugin(second, table, NULL) == TDM_OK)
        return TDM_OK;
    if (launch->rank > 0) /* rank 0 prints why, before a launcher kills it */
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    if (is_missing(first, &why))
        return report_absent(launch, first, err);
    if (err)
        *err = why;
    return TDM_WRAP(err, TDM_E_ABSENT, "%s started %d ranks, which talk over %s", launch->launcher,
                    launch->world, first->title);
}

const struct tdmi_transport_table tdmi_transport_mpi = {.name = "mpi", .load = load_mpi};
