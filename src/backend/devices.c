/* Devices of several ranks by one name: "cuda:0,2", "cuda:all", and "cuda" where there are ranks.
 */
#include "backend/backend.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_listed = 64 };

/* GPUs that a name lists; n 0: "cuda" or "cuda:all". False: it is no name of GPUs. */
static bool read_listed(const char *name, int listed[most_listed], int *n)
{
    *n = 0;
    if (strcmp(name, "cuda") == 0 || strcmp(name, "cuda:all") == 0)
        return true;
    if (strncmp(name, "cuda:", 5) != 0)
        return false;
    for (const char *at = name + 5; *n < most_listed; at++) {
        const size_t length = strspn(at, "0123456789");
        listed[(*n)++] = (int)strtol(at, NULL, 10);
        at += length;
        if (length == 0 || length > 4 || *at != ',')
            return length > 0 && length <= 4 && *at == '\0';
    }
    return false;
}

bool tdmi_backend_is_list(const char *name)
{
    int listed[most_listed], n;
    return read_listed(name, listed, &n) && (n > 1 || strcmp(name, "cuda:all") == 0);
}

tdm_status tdmi_backend_ranks_for(const char *name, int *n, tdm_error *err)
{
    const struct tdmi_backend *cuda = NULL;
    int listed[most_listed];
    *n = 1;
    if (!tdmi_backend_is_list(name) || (read_listed(name, listed, n) && *n > 0))
        return TDM_OK;
    TDM_TRY(tdmi_cuda_backend(&cuda, err), err, "choosing a GPU for each rank");
    *n = cuda->device.count();
    *n = *n > 0 ? *n : 1; /* opening it says why there is none */
    return TDM_OK;
}

tdm_status tdmi_backend_of_rank(const char *name, int world, int local_rank,
                                char device[TDMI_DEVICE_NAME_BYTES], tdm_error *err)
{
    int listed[most_listed], n_listed = 0, n;
    snprintf(device, TDMI_DEVICE_NAME_BYTES, "%s", name);
    if (!read_listed(name, listed, &n_listed) || (world == 1 && !tdmi_backend_is_list(name)))
        return TDM_OK;
    TDMI_TRY(tdmi_backend_ranks_for(n_listed == 0 ? "cuda:all" : name, &n, err));
    if (world == 1 && n > 1)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "choosing the device '%s': it names %d GPUs, and one process computes on "
                        "one; 'tandem train' and 'tandem run -n %d -- train' start a process for "
                        "each",
                        name, n, n);
    local_rank %= n;
    snprintf(device, TDMI_DEVICE_NAME_BYTES, "cuda:%d",
             n_listed == 0 ? local_rank : listed[local_rank]);
    return TDM_OK;
}
