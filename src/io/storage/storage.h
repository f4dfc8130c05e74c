/*
 * Storage: where data lies, behind one small table. Look at a place, list a folder, read a file at
 * an offset, put a file there whole. Local files are one table; places written with a scheme
 * ("s3://bucket/pets") go to the table of object stores, where the build has one. Everything that
 * opens a path of the user's for reading data goes through these functions, so every kind of data
 * set reads from every store.
 *
 * A place is a local path, "file://…", or a URI whose path is written as it is, without
 * percent-encoding. tdmi_path_join makes places from places.
 */
#pragma once

#include "base/file/file.h"
#include "base/scope.h"
#include "base/text/text.h"

/* ---- looking ------------------------------------------------------------------------------ */

struct tdmi_place {
    enum tdmi_file_kind kind; /* missing and not allowed to look (forbidden) are two answers */
    int64_t size_bytes;       /* of a file; else 0 */
    int64_t modified_ns;      /* when a local file was last written to, since 1970; else 0 */
    uint64_t identity[2]; /* equal for one folder reached twice; zeros: the store has no links */
};
/* Links are followed. Fails only where the store cannot answer at all (no such store in this build,
 * network down); missing, forbidden and other kinds are results. */
tdm_status tdmi_storage_look(const char *path, struct tdmi_place *place,
                             tdm_error *err) TDM_MUST_USE;
/* The kind alone, for probes; missing where the store fails. */
enum tdmi_file_kind tdmi_storage_kind(const char *path);
/* Begins with "scheme://", other than file. */
bool tdmi_storage_is_uri(const char *path);
/* Path without "file://" before it. */
const char *tdmi_storage_local(const char *path);
/* Path without the "?query" of a URI. The query says how to reach the store, which remembers it
 * once looked at, so paths can be joined and cut without care. In the arena, or NULL. */
const char *tdmi_storage_plain(const char *path, tdmi_arena *arena);
/* TDM_E_INPUT with a message about the thing at path that is not `expected` ("a folder of images"):
 * missing, not accessible, or of another kind. */
tdm_status tdmi_storage_refuse(const char *path, enum tdmi_file_kind kind, const char *expected,
                               tdm_error *err);

/* ---- listing ------------------------------------------------------------------------------ */

struct tdmi_place_entry {
    const char *name;
    enum tdmi_file_kind kind;
    int64_t size_bytes; /* of files; -1: not known without a request */
    bool is_loop;       /* a missing one is a link that leads in a circle */
};
/* Names sorted by bytes, without "." and "..", in the arena. has_sizes costs a look at every file
 * of a local folder. TDM_E_INPUT where it is no folder that can be listed. */
tdm_status tdmi_storage_list(const char *path, bool has_sizes, tdmi_arena *arena,
                             struct tdmi_place_entry **entries, size_t *n_entries,
                             tdm_error *err) TDM_MUST_USE;

/* ---- reading ------------------------------------------------------------------------------ */

typedef struct tdmi_storage_file tdmi_storage_file;

/* TDM_E_INPUT: no regular file, or not to be opened. Never waits for a pipe. */
tdm_status tdmi_storage_open(const char *path, tdmi_storage_file **file,
                             tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
void tdmi_storage_close(tdmi_storage_file *file);
TDMI_POINTER_RELEASE(tdmi_storage_file, tdmi_storage_close)
const char *tdmi_storage_path(const tdmi_storage_file *file);
/* As it was when opened. */
int64_t tdmi_storage_size(const tdmi_storage_file *file);
/* Exactly length_bytes from offset, or TDM_E_INPUT with path and offset. Any thread. */
tdm_status tdmi_storage_read(const tdmi_storage_file *file, int64_t offset, void *bytes,
                             size_t length_bytes, tdm_error *err) TDM_MUST_USE;
/* open, read, close in one, without any allocation but the growth of bytes: the whole file replaces
 * what bytes held; refused above limit_bytes. */
tdm_status tdmi_storage_read_file(const char *path, int64_t limit_bytes, tdmi_text *bytes,
                                  tdm_error *err) TDM_MUST_USE;

/* The same for a file whose size a listing gave (-1: none), which saves an object store a request.
 * A file that has grown since is read up to the listed size. */
tdm_status tdmi_storage_read_listed(const char *path, int64_t listed_bytes, int64_t limit_bytes,
                                    tdmi_text *bytes, tdm_error *err) TDM_MUST_USE;

/* ---- writing ------------------------------------------------------------------------------ */

/* The bytes of a file to be: exactly length_bytes from offset into bytes. */
struct tdmi_byte_source {
    void *self;
    tdm_status (*read)(void *self, int64_t offset, void *bytes, size_t length_bytes,
                       tdm_error *err);
};
/* A file of size_bytes, whole or not at all: until this returns TDM_OK, what lay there before does.
 * TDM_E_SYSTEM: no room, no permission, or the store refuses or cannot be reached; TDM_E_INPUT: a
 * store that cannot do this. */
tdm_status tdmi_storage_put(const char *path, const struct tdmi_byte_source *source,
                            int64_t size_bytes, tdm_error *err) TDM_MUST_USE;
/* A file that is not there is removed, too. */
tdm_status tdmi_storage_remove(const char *path, tdm_error *err) TDM_MUST_USE;

/* ---- the table of a store ----------------------------------------------------------------- */

struct tdmi_storage_table {
    const char *name; /* "local" */
    tdm_status (*look)(const char *path, struct tdmi_place *place, tdm_error *err);
    tdm_status (*list)(const char *path, bool has_sizes, tdmi_arena *arena,
                       struct tdmi_place_entry **entries, size_t *n_entries, tdm_error *err);
    /* path outlives the file. *size_bytes: the size from a listing or -1; set to the actual one. */
    tdm_status (*open)(const char *path, void **self, int64_t *size_bytes, tdm_error *err);
    void (*close)(void *self);
    /* At least 1 and at most length_bytes bytes into *done, 0 at the end; any thread. */
    tdm_status (*read)(const void *self, const char *path, int64_t offset, void *bytes,
                       size_t length_bytes, size_t *done, tdm_error *err);
    tdm_status (*put)(const char *path, const struct tdmi_byte_source *source, int64_t size_bytes,
                      tdm_error *err);
    tdm_status (*remove)(const char *path, tdm_error *err);
};

/* The table for URIs, NULL in a build without one: src/data/source/registry.c. */
const struct tdmi_storage_table *tdmi_storage_of_uris(void);
