/*
 * Files that are there whole or not at all, and the few path and folder calls the rooms share.
 */
#pragma once

#include "base/arena.h"
#include "base/scope.h"
#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- atomic writing ----------------------------------------------------------------------
 * A file is written under a temporary name beside its final one (".<name>.<pid>.tmp", numbered
 * when that is taken), fsynced,
 * renamed, and its folder fsynced. Until commit returns TDM_OK the old file stays as it was; abort
 * removes the temporary one. Existing files keep their mode, links stay links, missing parents are
 * made. A folder, device or pipe of that name is TDM_E_USAGE; what the system refuses (no space,
 * quota, permission, read-only) is TDM_E_SYSTEM with path and reason. */
typedef struct tdmi_atomic_file tdmi_atomic_file;

tdm_status tdmi_atomic_open(const char *path, tdmi_atomic_file **file, tdm_error *err) TDM_MUST_USE;
/* The same in a folder that must be there: a missing one is TDM_E_SYSTEM, so that a folder that
 * another process removes or renames is not made again. */
tdm_status tdmi_atomic_open_in_folder(const char *path, tdmi_atomic_file **file,
                                      tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_atomic_write(tdmi_atomic_file *file, const void *bytes, size_t length_bytes,
                             tdm_error *err) TDM_MUST_USE;
/* Overwrite bytes already written (a checksum that is known last). */
tdm_status tdmi_atomic_write_at(tdmi_atomic_file *file, uint64_t offset, const void *bytes,
                                size_t length_bytes, tdm_error *err) TDM_MUST_USE;
/* Let commit give it another final name, on the same file system: one that the bytes decide. Its
 * folder must be there. */
tdm_status tdmi_atomic_rename(tdmi_atomic_file *file, const char *path,
                              tdm_error *err) TDM_MUST_USE;
/* Frees file whatever the result. */
tdm_status tdmi_atomic_commit(tdmi_atomic_file *file, tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
void tdmi_atomic_abort(tdmi_atomic_file *file);
TDMI_POINTER_RELEASE(tdmi_atomic_file, tdmi_atomic_abort)

/* open, write, commit in one. */
tdm_status tdmi_file_write(const char *path, const void *bytes, size_t length_bytes,
                           tdm_error *err) TDM_MUST_USE;
/* The same where no file of that name is there, even if another process makes one at the same
 * moment: then TDM_E_SYSTEM ("File exists"). */
tdm_status tdmi_file_write_new(const char *path, const void *bytes, size_t length_bytes,
                               tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_file_write_in_folder(const char *path, const void *bytes, size_t length_bytes,
                                     tdm_error *err) TDM_MUST_USE;

/* ---- reading ----------------------------------------------------------------------------- */

/* The whole file into memory of tdmi_alloc (one extra zero byte follows), refused above
 * limit_bytes. A missing or unreadable file is TDM_E_INPUT, and so is a pipe, whose writer may
 * never come. */
tdm_status tdmi_file_read(const char *path, size_t limit_bytes, void **bytes, size_t *length_bytes,
                          tdm_error *err) TDM_MUST_USE;

/* ---- folders and paths ------------------------------------------------------------------- */

/* Bytes of a path with the zero at its end: the system refuses a longer one. */
enum { TDMI_PATH_BYTES = 4096 };

enum tdmi_file_kind {
    TDMI_FILE_MISSING,
    TDMI_FILE_REGULAR,
    TDMI_FILE_FOLDER,
    TDMI_FILE_OTHER,    /* a device, pipe or socket */
    TDMI_FILE_FORBIDDEN /* may not be looked at (permission), or the system cannot say */
};
/* Follows symbolic links; one that leads nowhere or in a circle is missing. */
enum tdmi_file_kind tdmi_file_kind_of(const char *path);
/* Size of a regular file; -1 for anything else. */
int64_t tdmi_file_bytes(const char *path);

tdm_status tdmi_folder_make(const char *path, tdm_error *err) TDM_MUST_USE; /* and its parents */
/* fsync a folder, so that renames in it last. */
tdm_status tdmi_folder_sync(const char *path, tdm_error *err) TDM_MUST_USE;

struct tdmi_folder_entry {
    const char *name;
    enum tdmi_file_kind kind;
    bool is_loop; /* a missing one is a link that leads in a circle */
};
/* Names sorted by bytes, without "." and "..", in the arena. */
tdm_status tdmi_folder_list(const char *path, tdmi_arena *arena, struct tdmi_folder_entry **entries,
                            size_t *n_entries, tdm_error *err) TDM_MUST_USE;

/* Bytes that the disk below path gives to caches: a GiB, or a tenth of a smaller disk, stays free
 * for others. INT64_MAX where it does not say. */
int64_t tdmi_disk_spare_bytes(const char *path);

/* "folder/name" in the arena ("name" when folder is "" or name is absolute; a URI's "?query" stays
 * at the end). */
char *tdmi_path_join(tdmi_arena *arena, const char *folder, const char *name);
/* The part after the last slash. */
const char *tdmi_path_name(const char *path);
