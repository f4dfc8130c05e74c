/*
 * The shim in the place of libtandem_cuda.so (base/plugin.h): `tandem train --device cuda` computes
 * with the kernels of cards on a machine that has none, in memory that only they may touch. For
 * tests/cli/test_train_card.sh, which asks for a card that records nothing (TANDEM_CARD_RECORDS=0),
 * and for a byte a replay in a file (TANDEM_CARD_REPLAYS).
 */
#include "shim_backend.h"
#include "base/plugin.h"
#include "tandem/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TDM_API const void *tdmi_plugin(const struct tdmi_plugin_host *host, const char **made_by,
                                size_t *table_bytes);

static tdm_status replay(tdmi_stream *stream, tdmi_recording *recording, tdm_error *err)
{
    const char *path = getenv("TANDEM_CARD_REPLAYS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        (void)fputc('.', file);
        (void)fclose(file);
    }
    return tdmi_backend_shim.stream.replay(stream, recording, err);
}

const void *tdmi_plugin(const struct tdmi_plugin_host *host, const char **made_by,
                        size_t *table_bytes)
{
    const char *records = getenv("TANDEM_CARD_RECORDS");
    static struct tdmi_backend card; /* written with the same value each time */
    (void)host;                      /* all of libtandem is linked again */
    card = tdmi_backend_shim;
    card.name = "cuda";
    card.stream.replay = replay;
    if (records && strcmp(records, "0") == 0) {
        card.stream.capture_begin = NULL;
        card.stream.capture_end = NULL;
        card.stream.replay = NULL;
        card.stream.recording_close = NULL;
    }
    tdmi_shim_guard(true);
    *made_by = tdm_version();
    *table_bytes = sizeof card;
    return &card;
}
