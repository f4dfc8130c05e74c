/*
 * Object stores through Arrow's file systems: s3://, gs://, hdfs:// (and file://). The remote half
 * of storage.h, which is what other files use. Errors name the URI and what the store answered.
 */
#pragma once

#include "base/file/file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* TDM_E_INPUT: a scheme of no store known here; TDM_E_SYSTEM: the store refuses or cannot be
 * reached. *kind is missing, file or folder; size_bytes -1 for all but files. */
tdm_status tdmi_arrow_uri_stat(const char *uri, enum tdmi_file_kind *kind, int64_t *size_bytes,
                               tdm_error *err) TDM_MUST_USE;

/* Called for every file and folder directly in the folder, in the order of their names by bytes.
 * size_bytes as above. Any status but TDM_OK ends the listing. */
typedef tdm_status (*tdmi_arrow_visit)(void *self, const char *name, enum tdmi_file_kind kind,
                                       int64_t size_bytes, tdm_error *err);
tdm_status tdmi_arrow_uri_list(const char *uri, tdmi_arrow_visit visit, void *self,
                               tdm_error *err) TDM_MUST_USE;

/* A remote file, read from any thread. */
typedef struct tdmi_arrow_remote tdmi_arrow_remote;
/* listed_bytes: its size from a listing, which saves a request; -1: not known. */
tdm_status tdmi_arrow_remote_open(const char *uri, int64_t listed_bytes, tdmi_arrow_remote **file,
                                  tdm_error *err) TDM_MUST_USE;
void tdmi_arrow_remote_close(tdmi_arrow_remote *file);
int64_t tdmi_arrow_remote_size(const tdmi_arrow_remote *file);
/* *done of n_bytes from offset: fewer only at the end of the file. */
tdm_status tdmi_arrow_remote_read(const tdmi_arrow_remote *file, int64_t offset_bytes, void *bytes,
                                  size_t n_bytes, size_t *done, tdm_error *err) TDM_MUST_USE;

/* Writes a file that read hands out; it appears once it is whole. Not for hdfs://, where others see
 * a file grow: TDM_E_INPUT. */
typedef tdm_status (*tdmi_arrow_read)(void *self, int64_t offset_bytes, void *bytes, size_t n_bytes,
                                      tdm_error *err);
tdm_status tdmi_arrow_remote_put(const char *uri, void *self, tdmi_arrow_read read, int64_t n_bytes,
                                 tdm_error *err) TDM_MUST_USE;
/* Also where there is none. */
tdm_status tdmi_arrow_remote_remove(const char *uri, tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
