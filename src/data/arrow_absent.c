/*
 * The door in a build without Arrow (with it, this file is left out): whatever opens something says
 * what is missing and what brings it. The rest is never reached, since nothing was opened.
 */
#include "data/arrow_bridge.h"
#include "data/arrow_storage.h"
#include "data/arrow_write.h"

#define WHAT_BRINGS_IT                                                                  \
    "this build has no Apache Arrow, which Parquet and object stores need; plain make " \
    "(tools/deps) fetches it, with a C++ compiler at hand"

#define ABSENT(attempt, object) \
    TDM_FAIL(err, TDM_E_ABSENT, "cannot " attempt " '%s': " WHAT_BRINGS_IT, object)

const char *tdmi_arrow_version(void)
{
    return "";
}

tdm_status tdmi_arrow_file_open(const char *path, tdmi_arrow_file **file, tdm_error *err)
{
    *file = NULL;
    return ABSENT("read", path);
}

tdm_status tdmi_arrow_writer_open(const struct tdmi_byte_sink *sink,
                                  const struct tdmi_arrow_write_options *options,
                                  tdmi_arrow_writer **writer, tdm_error *err)
{
    (void)sink, (void)options;
    *writer = NULL;
    return TDM_FAIL(err, TDM_E_ABSENT, "cannot write Parquet: " WHAT_BRINGS_IT);
}

tdm_status tdmi_arrow_uri_stat(const char *uri, enum tdmi_arrow_uri_kind *kind, int64_t *size_bytes,
                               tdm_error *err)
{
    *kind = TDMI_ARROW_URI_MISSING;
    *size_bytes = -1;
    return ABSENT("look at", uri);
}

tdm_status tdmi_arrow_uri_list(const char *uri, tdmi_arrow_visit visit, void *self, tdm_error *err)
{
    (void)visit, (void)self;
    return ABSENT("list", uri);
}

tdm_status tdmi_arrow_remote_open(const char *uri, int64_t listed_bytes, tdmi_arrow_remote **file,
                                  tdm_error *err)
{
    (void)listed_bytes;
    *file = NULL;
    return ABSENT("read", uri);
}

/* ---- closing accepts NULL ---------------------------------------------------------------- */

void tdmi_arrow_file_close(tdmi_arrow_file *file)
{
    (void)file;
}

void tdmi_arrow_writer_free(tdmi_arrow_writer *writer)
{
    (void)writer;
}

void tdmi_arrow_remote_close(tdmi_arrow_remote *file)
{
    (void)file;
}

/* ---- needs what could not be opened ------------------------------------------------------ */

static tdm_status never_opened(tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_BUG, "something was used that a build without Arrow cannot open");
}

tdm_status tdmi_arrow_file_schema(const tdmi_arrow_file *file, struct ArrowSchema *schema,
                                  tdm_error *err)
{
    (void)file, (void)schema;
    return never_opened(err);
}

const char *tdmi_arrow_file_value(const tdmi_arrow_file *file, const char *key)
{
    (void)file, (void)key;
    return NULL;
}

int64_t tdmi_arrow_file_bytes(const tdmi_arrow_file *file)
{
    (void)file;
    return 0;
}

int64_t tdmi_arrow_file_rows(const tdmi_arrow_file *file)
{
    (void)file;
    return 0;
}

int tdmi_arrow_file_groups(const tdmi_arrow_file *file)
{
    (void)file;
    return 0;
}

int64_t tdmi_arrow_group_rows(const tdmi_arrow_file *file, int group)
{
    (void)file, (void)group;
    return 0;
}

tdm_status tdmi_arrow_file_stream(const tdmi_arrow_file *file, const char *const *columns,
                                  int n_columns, int first_group, int n_groups,
                                  struct ArrowArrayStream *stream, tdm_error *err)
{
    (void)file, (void)columns, (void)n_columns, (void)first_group, (void)n_groups, (void)stream;
    return never_opened(err);
}

tdm_status tdmi_arrow_chunk_facts(const tdmi_arrow_file *file, const char *column, int group,
                                  struct tdmi_arrow_chunk *chunk, tdm_error *err)
{
    (void)file, (void)column, (void)group, (void)chunk;
    return never_opened(err);
}

tdm_status tdmi_arrow_chunk_pages(const tdmi_arrow_file *file, const char *column, int group,
                                  struct tdmi_arrow_page **pages, int64_t *n_pages, tdm_error *err)
{
    (void)file, (void)column, (void)group, (void)pages, (void)n_pages;
    return never_opened(err);
}

tdm_status tdmi_arrow_decompress(int codec, const void *bytes, size_t n_bytes, void *target,
                                 size_t target_bytes, tdm_error *err)
{
    (void)codec, (void)bytes, (void)n_bytes, (void)target, (void)target_bytes;
    return never_opened(err);
}

tdm_status tdmi_arrow_writer_picture(tdmi_arrow_writer *writer, const void *bytes, size_t n_bytes,
                                     tdm_error *err)
{
    (void)writer, (void)bytes, (void)n_bytes;
    return never_opened(err);
}

tdm_status tdmi_arrow_writer_end_group(tdmi_arrow_writer *writer,
                                       const struct tdmi_arrow_values *values, tdm_error *err)
{
    (void)writer, (void)values;
    return never_opened(err);
}

tdm_status tdmi_arrow_writer_finish(tdmi_arrow_writer *writer, tdm_error *err)
{
    (void)writer;
    return never_opened(err);
}

int64_t tdmi_arrow_remote_size(const tdmi_arrow_remote *file)
{
    (void)file;
    return 0;
}

tdm_status tdmi_arrow_remote_read(const tdmi_arrow_remote *file, int64_t offset_bytes, void *bytes,
                                  size_t n_bytes, size_t *done, tdm_error *err)
{
    (void)file, (void)offset_bytes, (void)bytes, (void)n_bytes;
    *done = 0;
    return never_opened(err);
}
