/*
 * The pictures of a training, and which of them train, which judge and which test.
 */
#include "base/hash/hash.h"
#include "base/text/text.h"
#include "train/config/options.h"
#include "train/session/session.h"

#include <stdio.h>
#include <string.h>

static uint64_t *sorted_hashes(tdmi_arena *arena, const uint64_t *hashes, const int64_t *items,
                               int64_t n)
{
    uint64_t *sorted = tdmi_arena_alloc(arena, (size_t)n + 1, sizeof *sorted);
    if (sorted) {
        for (int64_t i = 0; i < n; i++)
            sorted[i] = hashes[items[i]];
        tdmi_hashes_sort(sorted, n);
    }
    return sorted;
}

/* What judges, in one list; and whether there is a test, whose pictures are the source's own where
 * it has some. */
static tdm_status list_evaluated(struct tdmi_session *session, tdm_error *err)
{
    const tdmi_split *split = &session->split;
    session->has_test = session->options.test_fraction > 0.0;
    const int64_t n_test = session->has_test ? split->n_test : 0;
    session->evaluated = tdmi_arena_alloc(&session->arena, (size_t)(split->n_val + n_test),
                                          sizeof *session->evaluated);
    if (!session->evaluated)
        return TDM_FAIL(err, TDM_E_MEMORY, "listing the pictures that judge: out of memory");
    for (int64_t v = 0, t = 0; v < split->n_val || t < n_test;) {
        const bool is_val = t == n_test || (v < split->n_val && split->val[v] < split->test[t]);
        session->evaluated[session->n_evaluated++] = is_val ? split->val[v++] : split->test[t++];
    }
    session->test_hashes =
        sorted_hashes(&session->arena, session->contents.hashes, split->test, n_test);
    return session->test_hashes
               ? TDM_OK
               : TDM_FAIL(err, TDM_E_MEMORY, "remembering %lld pictures: out of memory",
                          (long long)n_test);
}

/* What an audit would say, as far as it is known from splitting. */
static void report_copies(struct tdmi_session *session)
{
    const tdmi_split *split = &session->split;
    if (split->n_torn > 0)
        tdmi_session_note(session, "%lld %s under more than one class (tandem audit names them)",
                          (long long)split->n_torn,
                          split->n_torn == 1 ? "picture stands" : "pictures stand");
    if (split->n_copies > 0)
        tdmi_session_note(session,
                          "%lld %s of another of the same class; copies stay on one side of the "
                          "split",
                          (long long)split->n_copies,
                          split->n_copies == 1 ? "picture is a copy" : "pictures are copies");
}

/* Of such a class nobody learns whether it was learnt. */
static tdm_status report_unjudged(struct tdmi_session *session, tdm_error *err)
{
    const int n_classes = tdmi_source_classes(session->source);
    const tdmi_split *split = &session->split;
    int n_without = n_classes;
    bool *is_evaluated = tdmi_arena_alloc(&session->arena, (size_t)n_classes, sizeof *is_evaluated);
    if (!is_evaluated)
        return TDM_FAIL(err, TDM_E_MEMORY, "counting the pictures of %d classes: out of memory",
                        n_classes);
    for (int64_t i = 0; i < split->n_val; i++) {
        bool *it = &is_evaluated[tdmi_source_item(session->source, split->val[i]).label];
        n_without -= !*it;
        *it = true;
    }
    if (n_without > 0)
        tdmi_session_note(session,
                          "%d of %d classes %s no picture that judges: whether %s learnt is not "
                          "measured",
                          n_without, n_classes, n_without == 1 ? "has" : "have",
                          n_without == 1 ? "it is" : "they are");
    return TDM_OK;
}

/* A model file is JSON, so it can name only what is UTF-8; another spelling would not be found
 * again. */
static bool is_utf8(const char *text)
{
    size_t rest = strlen(text);
    while (rest > 0) {
        size_t n = tdmi_utf8_length(text, rest);
        if (n == 0)
            return false;
        text += n;
        rest -= n;
    }
    return true;
}

tdm_status tdmi_session_open_source(struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->options;
    TDM_TRY(tdmi_augment_read(options->augment ? options->augment : "", &session->augment, err),
            err, "preparing to change pictures");
    struct tdm_source_options how = options->how;
    if (how.cache_bytes == 0)
        how.cache_bytes = options->memory / 4;
    TDM_TRY(tdmi_source_open(options->source, &how, &session->source, err), err,
            "opening the pictures to train on");
    if (tdmi_source_classes(session->source) < 2)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s has %s class of pictures; at least two are wanted: class folders, or a "
                        "list or table with a column of labels",
                        options->source, tdmi_source_classes(session->source) ? "one" : "no");
    for (int c = 0; c < tdmi_source_classes(session->source); c++)
        if (!is_utf8(tdmi_source_class(session->source, c)))
            return TDM_FAIL(
                err, TDM_E_INPUT,
                "the name of class %d, '%s', is not UTF-8; a folder renamed in UTF-8 is "
                "wanted",
                c, tdmi_source_class(session->source, c));
    return TDM_OK;
}

tdm_status tdmi_session_split(struct tdmi_session *session, struct tdmi_split_stored stored,
                              tdm_error *err)
{
    const struct tdm_train_options *options = &session->options;
    TDM_TRY(tdmi_contents_read(session->source, session->pool,
                               "reading every picture once to split by content",
                               tdmi_track_as_sink(session->track), &session->contents, err),
            err, "splitting %s", options->source);
    TDM_TRY(tdmi_split_make(session->source, &session->contents,
                            (struct tdmi_split_options){
                                .train_fraction = options->train_fraction,
                                .val_fraction = options->val_fraction,
                                .test_fraction = options->test_fraction,
                                .fraction = options->fraction,
                                .per_class = options->per_class,
                                .seed = options->seed,
                            },
                            stored, &session->split, err),
            err, "splitting %s", options->source);
    const tdmi_split *split = &session->split;
    const bool is_idle = split->is_given && tdmi_options_ask_for_split(options);
    TDM_TRY(list_evaluated(session, err), err, "splitting %s", options->source);
    char test[60] = "";
    if (session->has_test)
        snprintf(test, sizeof test, ", %lld test", (long long)split->n_test);
    session->train_hashes =
        sorted_hashes(&session->arena, session->contents.hashes, split->train, split->n_train);
    session->val_hashes =
        sorted_hashes(&session->arena, session->contents.hashes, split->val, split->n_val);
    if (!session->train_hashes || !session->val_hashes)
        return TDM_FAIL(err, TDM_E_MEMORY, "remembering %lld pictures: out of memory",
                        (long long)session->contents.n_items);
    tdmi_session_begin_batch(session);
    if (tdmi_run_found(session->run) == TDMI_RUN_NONE)
        TDM_TRY(tdmi_session_check_unfreezing(session, err), err, "deciding when layers thaw");
    if (tdmi_run_found(session->run) == TDMI_RUN_NONE)
        tdmi_session_note(
            session, "%lld pictures of %d classes train, %lld judge%s%s%s",
            (long long)split->n_train, tdmi_source_classes(session->source),
            (long long)split->n_val, test, split->is_given ? ", as the source says" : "",
            !is_idle            ? ""
            : session->has_test ? ": --split decides only that its test is taken at the end"
                                : ": --split decides nothing");
    if (tdmi_run_found(session->run) == TDMI_RUN_NONE)
        report_copies(session);
    if (tdmi_run_found(session->run) == TDMI_RUN_NONE)
        TDM_TRY(report_unjudged(session, err), err, "splitting %s", options->source);
    if (session->contents.n_unreadable > 0 && options->strict)
        return TDM_FAIL(
            err, TDM_E_INPUT,
            "%lld picture%s of %s cannot be read, and --strict is on; the warnings above "
            "name %s",
            (long long)session->contents.n_unreadable,
            session->contents.n_unreadable == 1 ? "" : "s", options->source,
            session->contents.n_unreadable == 1 ? "it" : "them");
    if (session->contents.n_unreadable > 0)
        tdmi_session_note(session, "%lld %s could not be read and %s left out",
                          (long long)session->contents.n_unreadable,
                          session->contents.n_unreadable == 1 ? "picture" : "pictures",
                          session->contents.n_unreadable == 1 ? "is" : "are");
    return TDM_OK;
}
