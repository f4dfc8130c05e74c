/*
 * The text of an engine with values in their places, and words quoted for the language of the text.
 */
#include "launch/emit.h"
#include "base/text/quote.h"
#include "base/text/shell.h"
#include "launch/emit/texts.h"

#include <stdio.h>
#include <string.h>

/* ---- words in an engine's language --------------------------------------------------------------
 */

/* U+FEFF, U+FFFE and U+FFFF, which YAML does not take as they are. */
static const char *spell_mark(const char *at)
{
    static const char *const marks[][2] = {
        {"\xef\xbb\xbf", "\\ufeff"}, {"\xef\xbf\xbe", "\\ufffe"}, {"\xef\xbf\xbf", "\\uffff"}};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (strncmp(at, marks[i][0], 3) == 0)
            return marks[i][1];
    return NULL;
}

/* A character inside double quotes, as YAML and Python read it: \x and \u mean the same in both. A
 * byte that is no UTF-8 is spelled as Python names it in arguments. Returns its bytes. */
static size_t add_character(tdmi_text *text, const char *at)
{
    char spelled[TDMI_SPELLED_BYTES];
    bool is_plain;
    const size_t n = tdmi_character(at, strnlen(at, 4), &is_plain);
    const char *mark = spell_mark(at);
    if (mark)
        tdmi_text_printf(text, "%s", mark);
    else if (*at == '"' || *at == '\\')
        tdmi_text_printf(text, "\\%c", *at);
    else if (!is_plain && n == 1 && (unsigned char)*at >= 0x80)
        tdmi_text_printf(text, "\\udc%02x", (unsigned)(unsigned char)*at);
    else {
        (void)tdmi_spell(at, n, spelled);
        tdmi_text_printf(text, "%s", spelled);
    }
    return n;
}

static void add_string(tdmi_text *text, const char *word)
{
    tdmi_text_add(text, "\"", 1);
    while (*word)
        word += add_character(text, word);
    tdmi_text_add(text, "\"", 1);
}

/* Kubernetes replaces $(NAME) in arguments, and $$ by $. */
static void add_argument(tdmi_text *text, const char *word)
{
    tdmi_text_add(text, "\"", 1);
    while (*word) {
        tdmi_text_add(text, "$", *word == '$');
        word += add_character(text, word);
    }
    tdmi_text_add(text, "\"", 1);
}

/* ---- engines ------------------------------------------------------------------------------------
 */

struct engine {
    const char *name, *text;
    void (*add_word)(tdmi_text *text, const char *word);
    const char *between; /* words */
    bool has_container;  /* and YAML, which is UTF-8 */
};

static const struct engine engines[] = {
    {"slurm", tdmi_emit_slurm, tdmi_shell_add, " ", false},
    {"k8s", tdmi_emit_jobset, add_argument, "\n              - ", true},
    {"mpijob", tdmi_emit_mpijob, add_argument, "\n            - ", true},
    {"spark", tdmi_emit_spark, add_string, ",\n    ", false},
};

static const struct engine *find(const char *name)
{
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++)
        if (strcmp(engines[i].name, name) == 0)
            return &engines[i];
    return NULL;
}

bool tdmi_emit_has_container(const char *name)
{
    const struct engine *engine = find(name);
    return engine && engine->has_container;
}

/* ---- values -------------------------------------------------------------------------------------
 */

/* A label of DNS, from the name of the run's folder: its pods are hosts. At most 40 characters,
 * because more is appended to it. */
static void add_name(tdmi_text *text, const char *run)
{
    enum { most = 40 };
    char name[most + 1];
    int n = 0;
    size_t length = strlen(run);
    while (length > 0 && run[length - 1] == '/')
        length--;
    const char *at = run;
    for (size_t i = 0; i < length; i++)
        at = run[i] == '/' ? run + i + 1 : at;
    for (; at < run + length && n < most; at++) {
        const bool is_upper = *at >= 'A' && *at <= 'Z';
        const char letter = (char)(is_upper ? *at - 'A' + 'a' : *at);
        if (letter >= 'a' && letter <= 'z')
            name[n++] = letter;
        else if (n > 0 && letter >= '0' && letter <= '9')
            name[n++] = letter;
        else if (n > 0 && name[n - 1] != '-')
            name[n++] = '-';
    }
    while (n > 0 && name[n - 1] == '-')
        n--;
    tdmi_text_printf(text, "%.*s", n > 0 ? n : 6, n > 0 ? name : "tandem");
}

static void add_words(tdmi_text *text, const struct engine *engine,
                      const struct tdmi_emit_options *options)
{
    for (int i = 0; i < options->n_words; i++) {
        tdmi_text_printf(text, "%s", i > 0 ? engine->between : "");
        engine->add_word(text, options->words[i]);
    }
}

/* The value of a name; false: there is none. */
static bool add_value(tdmi_text *text, const char *name, size_t length, const struct engine *engine,
                      const struct tdmi_emit_options *options)
{
    if (tdmi_text_is(name, length, "ranks"))
        tdmi_text_printf(text, "%d", options->ranks);
    else if (tdmi_text_is(name, length, "nodes"))
        tdmi_text_printf(text, "%d-%d", options->min_ranks, options->ranks);
    else if (tdmi_text_is(name, length, "restarts"))
        tdmi_text_printf(text, "%d", options->restarts);
    else if (tdmi_text_is(name, length, "deadline"))
        tdmi_text_printf(text, "%g", options->deadline);
    else if (tdmi_text_is(name, length, "mpi"))
        tdmi_text_printf(text, "%s", options->mpi);
    else if (tdmi_text_is(name, length, "name"))
        add_name(text, options->run);
    else if (tdmi_text_is(name, length, "run"))
        engine->add_word(text, options->run);
    else if (tdmi_text_is(name, length, "words"))
        add_words(text, engine, options);
    else if (tdmi_text_is(name, length, "image"))
        add_string(text, options->image ? options->image : "tandem");
    else if (tdmi_text_is(name, length, "claim"))
        add_string(text, options->claim ? options->claim : "tandem");
    else
        return false;
    return true;
}

static tdm_status check_words(const struct engine *engine, const struct tdmi_emit_options *options,
                              tdm_error *err)
{
    for (int i = 0; engine->has_container && i < options->n_words; i++)
        for (const char *at = options->words[i]; *at;) {
            const size_t n = tdmi_utf8_length(at, strnlen(at, 4));
            if (n == 0)
                return TDM_FAIL(err, TDM_E_USAGE,
                                "the argument '%s' is no UTF-8, which is all that a manifest of "
                                "Kubernetes can hold",
                                options->words[i]);
            at += n;
        }
    return TDM_OK;
}

tdm_status tdmi_emit(const struct tdmi_emit_options *options, tdmi_text *text, tdm_error *err)
{
    const struct engine *engine = find(options->engine);
    if (!engine)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "there is no engine '%s'; slurm, k8s, mpijob and spark are accepted",
                        options->engine);
    TDMI_TRY(check_words(engine, options, err));
    for (const char *at = engine->text; *at;) {
        const size_t length = *at == '@' ? strspn(at + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
        const bool is_name = length > 0 && at[length + 1] == '@';
        if (is_name && add_value(text, at + 1, length, engine, options)) {
            at += length + 2;
        } else {
            tdmi_text_add(text, at, 1);
            at++;
        }
    }
    return tdmi_text_status(text, err);
}
