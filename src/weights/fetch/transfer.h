/*
 * One file over HTTP or HTTPS, by libcurl, which is opened on first use: linked, it and
 * its own libraries would add 8 to 16 ms to the start of every command. Proxies and certificates
 * are those that libcurl knows of the system and its environment.
 */
#pragma once

#include "tandem/error.h"
#include <stddef.h>
#include <stdint.h>

struct tdmi_transfer {
    const char *url;
    int64_t from;    /* bytes that are there already; the rest is requested */
    const char *tag; /* what it called the file then (its ETag): the rest only of that one; NULL */
    void *self;
    /* Once, before the first byte: where it really begins (from, or 0), the whole file's length
     * (-1: not said), what the server calls it ("" when nothing). */
    tdm_status (*begin)(void *self, int64_t from, int64_t total, const char *tag, tdm_error *err);
    tdm_status (*bytes)(void *self, const void *bytes, size_t length_bytes, tdm_error *err);
};

enum tdmi_transfer_end {
    TDMI_TRANSFER_DONE,
    TDMI_TRANSFER_BROKE,   /* in the middle, or the server was busy: worth another try */
    TDMI_TRANSFER_REFUSED, /* no such host, file, or right to it: not worth one */
    TDMI_TRANSFER_ENDED    /* a callback failed, or a stop was requested */
};

/* A connection is given half a minute to be made, and ended after a minute of silence. Of BROKE and
 * REFUSED err says why; of ENDED it is the callback's, or TDM_E_STOPPED. */
enum tdmi_transfer_end tdmi_transfer_run(const struct tdmi_transfer *transfer, tdm_error *err);
