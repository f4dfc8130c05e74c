/*
 * Interface to Arrow C++: Parquet files become the C data interface (arrow/abi.h), and facts about
 * the places of their pages. No exception and no C++ type crosses it. Arrow is loaded by the first
 * call (arrow/table.h). Without it every function that opens something fails with TDM_E_ABSENT and
 * names the missing package.
 *
 * Writing is in arrow/write.h, remote file systems are in arrow/storage.h.
 */
#pragma once

#include "io/arrow/abi.h"
#include "tandem/error.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* TDM_E_ABSENT without Arrow: for work that needs it later. */
tdm_status tdmi_arrow_require(tdm_error *err) TDM_MUST_USE;

/* ---- a Parquet file --------------------------------------------------------------------------
 * Any number of threads may use one file. Between calls no file descriptor is held. */
typedef struct tdmi_arrow_file tdmi_arrow_file;

/* A path, or a URI (arrow/storage.h says which). TDM_E_INPUT: missing, unreadable, no Parquet. */
tdm_status tdmi_arrow_file_open(const char *path, tdmi_arrow_file **file,
                                tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. Streams of the file live on without it. */
void tdmi_arrow_file_close(tdmi_arrow_file *file);

/* The columns as one struct ("+s") whose children they are. */
tdm_status tdmi_arrow_file_schema(const tdmi_arrow_file *file, struct ArrowSchema *schema,
                                  tdm_error *err) TDM_MUST_USE;
/* The value of a key of the file's metadata, terminated; NULL where it is not there. */
const char *tdmi_arrow_file_value(const tdmi_arrow_file *file, const char *key);
int64_t tdmi_arrow_file_bytes(const tdmi_arrow_file *file);
int64_t tdmi_arrow_file_rows(const tdmi_arrow_file *file);
int tdmi_arrow_file_groups(const tdmi_arrow_file *file);
int64_t tdmi_arrow_group_rows(const tdmi_arrow_file *file, int group);

/* Rows of n_groups row groups from first_group on, in order. columns: names of columns, or of
 * fields within ("image.bytes", "add.path"), of which only these are read; n_columns 0: everything.
 * A column that is not there is TDM_E_INPUT. n_groups -1: to the last one. */
tdm_status tdmi_arrow_file_stream(const tdmi_arrow_file *file, const char *const *columns,
                                  int n_columns, int first_group, int n_groups,
                                  struct ArrowArrayStream *stream, tdm_error *err) TDM_MUST_USE;
/* The next rows of a stream; array->release is NULL at the end. path is what messages name. */
tdm_status tdmi_arrow_stream_next(struct ArrowArrayStream *stream, const char *path,
                                  struct ArrowArray *array, tdm_error *err) TDM_MUST_USE;

/* ---- where one column lies --------------------------------------------------------------- */

/* Codecs that are known by their number here. */
enum { TDMI_CODEC_NONE = 0, TDMI_CODEC_SNAPPY = 1 };

/* One column of one row group. Places are those of the file, unchecked. */
struct tdmi_arrow_chunk {
    int64_t n_rows, n_values;           /* values: nulls included */
    int64_t first_byte, n_bytes;        /* its pages, a dictionary page first where there is one */
    int64_t n_unpacked_bytes;           /* the same after unpacking */
    int codec;                          /* for tdmi_arrow_decompress() */
    int max_definition, max_repetition; /* 0, 0: one value a row, never null */
    int fixed_bytes;                    /* of every value; 0: binary; -1: a number */
    bool is_simple;                     /* pages are plain or by dictionary, and nothing else */
    bool has_offset_index;              /* so that tdmi_arrow_chunk_pages() has an answer */
};

struct tdmi_arrow_page {
    int64_t offset_bytes, first_row; /* in the file; in the row group */
    int32_t n_bytes;                 /* header included */
};

/* column: the name of a leaf, as "image" or "image.bytes". */
tdm_status tdmi_arrow_chunk_facts(const tdmi_arrow_file *file, const char *column, int group,
                                  struct tdmi_arrow_chunk *chunk, tdm_error *err) TDM_MUST_USE;
/* From the offset index; *pages is of tdmi_alloc. Places are those of the file, unchecked. */
tdm_status tdmi_arrow_chunk_pages(const tdmi_arrow_file *file, const char *column, int group,
                                  struct tdmi_arrow_page **pages, int64_t *n_pages,
                                  tdm_error *err) TDM_MUST_USE;

/* The body of a page, exactly target_bytes when it comes out. */
tdm_status tdmi_arrow_decompress(int codec, const void *bytes, size_t n_bytes, void *target,
                                 size_t target_bytes, tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
