/*
 * The log of a Delta table: the input is its commits, each ended by byte 0x1e. It must be refused
 * with a sentence or give a table that is consistent in itself.
 */
#include "fuzz.h"
#include "data/delta/replay.h"
#include "data/delta/state.h"

enum { END_OF_COMMIT = 0x1e };

static void check(const struct tdmi_delta_table *table)
{
    int n_partitions = 0;
    for (int i = 0; i < table->n_fields; i++)
        n_partitions += table->fields[i].is_partition;
    if (table->n_fields < 1 || n_partitions != table->n_partition_columns)
        abort();
    for (int64_t i = 0; i < table->n_files; i++) {
        const struct tdmi_delta_file *file = &table->files[i];
        if (file->path[0] == '\0' || file->size_bytes < 0 || file->line < 1 ||
            (file->deleted.kind != 0 && file->deleted.size_bytes < 0) ||
            (i > 0 && strcmp(table->files[i - 1].path, file->path) >= 0))
            abort();
        for (int c = 0; c < n_partitions; c++) {
            int field = tdmi_delta_schema_find(table, table->partition_columns[c]);
            if (file->values[c] != NULL &&
                !tdmi_delta_value_fits(table->fields[field].type, file->values[c]))
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    tdmi_delta_replay *replay = NULL;
    tdm_error err = {0};
    tdm_status status = tdmi_delta_replay_new("input", &replay, &err);
    int64_t version = 0;
    for (size_t at = 0; at < length && status == TDM_OK; version++) {
        const uint8_t *end = memchr(bytes + at, END_OF_COMMIT, length - at);
        size_t n = end == NULL ? length - at : (size_t)(end - (bytes + at));
        status = tdmi_delta_replay_commit(replay, version % 2 ? "b.parquet" : "a.json",
                                          (const char *)bytes + at, n, &err);
        at += n + 1;
    }
    struct tdmi_delta_table table = {0};
    if (status == TDM_OK)
        status = tdmi_delta_replay_finish(replay, version, &table, &err);
    if (status == TDM_OK)
        check(&table);
    else if (err.n_frames == 0 || status != TDM_E_INPUT)
        abort();
    tdmi_delta_table_release(&table);
    tdmi_delta_replay_free(replay);
    return 0;
}
