/*
 * Archives: zip and tar (plain, or compressed whole by gzip) as a list of entries, each read by any
 * number of threads at once. The list is made when the archive is opened; a read is one request to
 * storage and shares nothing. Names are just names: nothing is ever written under them.
 */
#pragma once

#include "base/scope.h"
#include "base/text/text.h"

enum tdmi_archive_form { TDMI_ARCHIVE_NONE, TDMI_ARCHIVE_ZIP, TDMI_ARCHIVE_TAR };

struct tdmi_archive_entry {
    const char *name; /* as it stands there, folders without their last slash */
    bool is_folder;
    int64_t size_bytes; /* when read */
    /* The readers' own. */
    int64_t offset;       /* zip: of the local head; tar: of the bytes */
    int64_t stored_bytes; /* in the file */
    int64_t room_bytes;   /* zip only: from offset to the next entry or the directory */
    uint32_t crc32;       /* zip only */
    uint16_t method;      /* zip only: 0 stored, 8 deflated */
    const char *link;     /* tar only: a hard link's target, until the list is whole */
};

typedef struct tdmi_archive tdmi_archive;

/* By content, and by name where the content is damaged; NONE: another kind of file, missing, or not
 * to be read. */
enum tdmi_archive_form tdmi_archive_form_of(const char *path);

/* TDM_E_INPUT, with path and offset: damaged, cut short, of a kind that is not read (encrypted,
 * split over several files, sparse, another compression), or a zip whose entries share bytes. */
tdm_status tdmi_archive_open(const char *path, tdmi_archive **archive, tdm_error *err) TDM_MUST_USE;
/* For probes: of a tar only the first n_most entries, and what is missing at the end of a
 * compressed one is no error. */
tdm_status tdmi_archive_open_beginning(const char *path, int64_t n_most, tdmi_archive **archive,
                                       tdm_error *err) TDM_MUST_USE;
/* The same over bytes of the caller's, which are lent until close; name is what messages call them.
 * gzip around a tar is for files. */
tdm_status tdmi_archive_open_bytes(const void *bytes, size_t length_bytes, const char *name,
                                   tdmi_archive **archive, tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
void tdmi_archive_close(tdmi_archive *archive);
TDMI_POINTER_RELEASE(tdmi_archive, tdmi_archive_close)

/* Files and folders, in the order of the archive; links, devices and their like are left out. */
int64_t tdmi_archive_entries(const tdmi_archive *archive);
const struct tdmi_archive_entry *tdmi_archive_entry(const tdmi_archive *archive, int64_t index);
/* The last file of that name, which is the one that unpacking would leave; -1: none. O(log n). */
int64_t tdmi_archive_find(const tdmi_archive *archive, const char *name);
/* The entry's bytes, replacing what text held, refused above limit_bytes (a small archive may
 * promise much); checksums are compared. Any thread. */
tdm_status tdmi_archive_read(const tdmi_archive *archive, int64_t index, int64_t limit_bytes,
                             tdmi_text *bytes, tdm_error *err) TDM_MUST_USE;
/* The same without a copy where the entry stands in lent bytes as it is (not compressed): *at then
 * points into them, else into text, and text->length_bytes says which. */
tdm_status tdmi_archive_view(const tdmi_archive *archive, int64_t index, int64_t limit_bytes,
                             tdmi_text *text, const void **at, tdm_error *err) TDM_MUST_USE;
/* Above the size of any image. */
#define TDMI_ARCHIVE_PICTURE_BYTES ((int64_t)1 << 30)
