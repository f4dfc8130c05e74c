/* Percent-encoding, which paths are absolute, and which leave the table. */
#include "data/delta/path.h"

#include "io/storage/storage.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* Bytes of a URI's scheme before ":/", 0 where there is none. One letter would be a drive of
 * Windows, and a colon without a slash after it is part of an ordinary name ("time=10:30"). */
static size_t scheme_bytes(const char *path)
{
    size_t n = strspn(path, LETTERS "0123456789+.-");
    return n >= 2 && is_one_of(path[0], LETTERS) && path[n] == ':' && path[n + 1] == '/' ? n : 0;
}

static int hex_value(char digit)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    return is_one_of(digit, digits) ? (int)(strchr(digits, digit) - digits) % 16 : -1;
}

static const char *decoded(tdmi_arena *arena, const char *text, const char **why)
{
    char *path = tdmi_arena_alloc(arena, strlen(text) + 1, 1), *out = path;
    *why = NULL;
    if (path == NULL)
        return NULL;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at != '%') {
            *out++ = *at;
            continue;
        }
        int high = hex_value(at[1]), low = high < 0 ? -1 : hex_value(at[2]);
        if (low < 0)
            *why = "a % in it is not followed by two hex digits";
        else if (high == 0 && low == 0)
            *why = "it holds a zero byte (%00)";
        if (*why != NULL)
            return NULL;
        *out++ = (char)(high << 4 | low);
        at += 2;
    }
    *out = '\0';
    return path;
}

/* After "file:": "/x", "///x" and "//localhost/x" are all the local path /x. */
static const char *local_part(const char *text)
{
    if (text[0] != '/' || text[1] != '/')
        return text;
    text += 2;
    if (strncmp(text, "localhost/", 10) == 0)
        text += 9;
    return text[0] == '/' ? text : NULL;
}

const char *tdmi_delta_path_read(tdmi_arena *arena, const char *text, const char **why)
{
    *why = NULL;
    if (text[0] == '\0') {
        *why = "it is empty";
    } else if (scheme_bytes(text) == 4 && strncmp(text, "file", 4) == 0) {
        text = local_part(text + 5);
        *why = text == NULL ? "it lies on another machine" : NULL;
    } else if (scheme_bytes(text) == 3 &&
               (strncmp(text, "s3a", 3) == 0 || strncmp(text, "s3n", 3) == 0)) {
        text = tdmi_arena_printf(arena, "s3%s", text + 3);
    }
    return *why != NULL || text == NULL ? NULL : decoded(arena, text, why);
}

/* ---- where files lie ------------------------------------------------------------------------- */

static bool has_parent(const char *path)
{
    for (; *path != '\0'; path += strspn(path, "/")) {
        size_t length = strcspn(path, "/");
        if (length == 2 && memcmp(path, "..", 2) == 0)
            return true;
        path += length;
    }
    return false;
}

/* A missing file leaves nothing; opening it reports that. */
static bool leaves_by_link(const char *table, const char *place)
{
    char folder[PATH_MAX], file[PATH_MAX];
    if (realpath(table, folder) == NULL || realpath(place, file) == NULL)
        return false;
    size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    return strncmp(file, folder, length) != 0 || file[length] != '/';
}

/* In which respect the path leaves the table, as the end of a sentence; NULL: it does not. */
static const char *leaves(const char *table, const char *path, const char *place)
{
    if (tdmi_storage_is_uri(table))
        return tdmi_storage_is_uri(place) ? NULL
                                          : ", on this machine, and the table lies in a store";
    if (scheme_bytes(path) > 0)
        return ", which is remote, and the table lies on this machine";
    if (path[0] == '/')
        return " by an absolute path";
    if (has_parent(path))
        return " by a path with '..'";
    return leaves_by_link(table, place) ? " through a link that leaves the table's folder" : NULL;
}

tdm_status tdmi_delta_path_place(tdmi_arena *arena, const char *table, const char *path,
                                 bool follows, const char **place, tdm_error *err)
{
    const bool is_alone = path[0] == '/' || scheme_bytes(path) > 0;
    *place = is_alone ? path : (const char *)tdmi_path_join(arena, table, path);
    TDMI_CHECK_MEMORY(*place, err);
    const char *how = follows ? NULL : leaves(table, path, *place);
    if (how == NULL)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_INPUT,
                    "the log of '%s' names '%.200s'%s: --follow reads it all the same", table, path,
                    how);
}

/* ---- writing --------------------------------------------------------------------------------- */

const char *tdmi_delta_path_write(tdmi_arena *arena, const char *path)
{
    static const char hex[] = "0123456789ABCDEF";
    char *text = tdmi_arena_alloc(arena, 3 * strlen(path) + 1, 1), *out = text;
    if (text == NULL)
        return NULL;
    for (; *path != '\0'; path++) {
        unsigned char byte = (unsigned char)*path;
        if (is_one_of(*path, LETTERS "0123456789-._~/=+@")) {
            *out++ = *path;
        } else {
            *out++ = '%';
            *out++ = hex[byte >> 4];
            *out++ = hex[byte & 15];
        }
    }
    *out = '\0';
    return text;
}
