/*
 * Files of choices: {"problem":"…","choice":…}, one object a file, named after the problem's hash.
 * Nothing is parsed here: what stands around the choice is known to the byte.
 */
#include "backend/cuda/vendor/choices.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { most_bytes = 4 << 20 };

static const char before_problem[] = "{\"problem\":\"", before_choice[] = "\",\"choice\":";
static const char at_end[] = "}\n";

static char *path_of(tdmi_arena *arena, const char *folder, const char *problem)
{
    return tdmi_arena_printf(arena, "%s/%016" PRIx64 ".json", folder,
                             tdmi_xxh64_of(problem, strlen(problem), 0));
}

/* Text begins with what, which is left behind. */
static bool skip(const char **text, const char *what)
{
    const size_t n = strlen(what);
    if (strncmp(*text, what, n) != 0)
        return false;
    *text += n;
    return true;
}

/* The choice within the file's text, or NULL. */
static char *choice_in(const char *text, size_t length, const char *problem)
{
    const char *at = text;
    const size_t end = strlen(at_end);
    if (strlen(text) != length || length < end || strcmp(text + length - end, at_end) != 0 ||
        !skip(&at, before_problem) || !skip(&at, problem) || !skip(&at, before_choice) ||
        at + end > text + length)
        return NULL;
    const size_t n = (size_t)(text + length - at) - end;
    char *choice = tdmi_alloc(n + 1, 1);
    if (choice)
        memcpy(choice, at, n);
    return choice;
}

tdm_status tdmi_cuda_choice_read(const char *folder, const char *problem, char **json,
                                 tdm_error *err)
{
    tdmi_arena arena;
    void *text = NULL;
    size_t length = 0;
    *json = NULL;
    tdmi_arena_init(&arena, 0);
    const char *path = path_of(&arena, folder, problem);
    tdm_status status = path ? tdmi_file_read(path, most_bytes, &text, &length, err) : TDM_E_MEMORY;
    if (status == TDM_OK) {
        *json = choice_in(text, length, problem);
        if (!*json)
            status = TDM_FAIL(err, TDM_E_INPUT, "%s: it is no choice for '%s'", path, problem);
    }
    tdmi_free(text);
    tdmi_arena_release(&arena);
    return status;
}

tdm_status tdmi_cuda_choice_write(const char *folder, const char *problem, const char *json,
                                  tdm_error *err)
{
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    const char *path = path_of(&arena, folder, problem);
    char *text = tdmi_arena_printf(&arena, "%s%s%s%s%s", before_problem, problem, before_choice,
                                   json, at_end);
    tdm_status status = path && text ? TDM_OK : TDM_FAIL(err, TDM_E_MEMORY, "out of memory");
    if (status == TDM_OK)
        status = tdmi_file_write(path, text, strlen(text), err);
    tdmi_arena_release(&arena);
    return TDM_WRAP(err, status, "keeping the choice for '%s'", problem);
}
