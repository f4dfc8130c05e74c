/*
 * The facts for the one next step that is advised at the end (train/advice.h).
 */
#include "base/scope.h"
#include "graph/norms.h"
#include "train/advice.h"
#include "train/report/review.h"
#include "train/session/session.h"

#include <math.h>

static enum tdmi_advice_base base_of(const struct tdmi_train_config *config,
                                     const struct tdmi_feature_cache *cache)
{
    if (cache->is_used || tdmi_augment_has_mix(&config->augment))
        return TDMI_BASE_IS_KEPT;
    if (config->features == TDMI_FEATURES_NONE)
        return TDMI_BASE_IS_UNWANTED;
    if (cache->is_unavailable)
        return TDMI_BASE_HAS_NO_PLACE;
    return config->views == 0 && tdmi_augment_changes(&config->augment) ? TDMI_BASE_SEES_CHANGES
                                                                        : TDMI_BASE_IS_KEPT;
}

/* A network that suits small grey images needs none. */
static bool lacks_weights(const struct tdmi_session *session)
{
    const struct tdmi_pretrained *pretrained = &session->pretrained;
    return !pretrained->path &&
           (pretrained->is_by_default ? pretrained->misses_weights
                                      : tdmi_look_suits(&session->data.look) != TDMI_SUITS_SMALL);
}

/* Compares the last quarter of the validated epochs with the best before them. */
static void find_rise(const struct tdmi_review_epoch *epochs, size_t n,
                      struct tdmi_advice_facts *facts)
{
    size_t n_validated = 0, seen = 0;
    int last = 0, before = 0;
    for (size_t i = 0; i < n; i++)
        n_validated += epochs[i].val.n > 0;
    if (n_validated < 2)
        return;
    const size_t n_before = n_validated - (n_validated + 3) / 4;
    for (size_t i = 0; i < n; i++) {
        if (epochs[i].val.n == 0)
            continue;
        last = epochs[i].epoch;
        if (seen++ >= n_before)
            continue;
        before = epochs[i].epoch;
        if (facts->before_rise.n == 0 || epochs[i].val.accuracy > facts->before_rise.accuracy)
            facts->before_rise = epochs[i].val;
    }
    facts->rise_epochs = last - before;
}

/* The best training score of an epoch: what the network is able to learn. */
static void find_most_learnt(const struct tdmi_review_epoch *epochs, size_t n,
                             struct tdmi_advice_facts *facts)
{
    for (size_t i = 0; i < n; i++)
        if (epochs[i].train.n > 0 && epochs[i].train.accuracy > facts->train.accuracy)
            facts->train = epochs[i].train;
}

/* The loss of equal probabilities for all classes, or for yes and no of each. */
static double guess_loss(const struct tdmi_session *session)
{
    const int n_classes = tdmi_source_classes(session->data.source);
    if (n_classes < 2)
        return 0.0;
    return session->config.is_logistic ? n_classes * log(2.0) : log((double)n_classes);
}

/* Finds the rare classes, with less than half as many validation images as the commonest, of which
 * none is right, and the one of them with most images. One or two images may be wrong by chance. */
static void find_missed(const tdmi_outcomes *best, struct tdmi_advice_facts *facts)
{
    enum { LEAST = 3 };
    const int n_classes = best->n_classes;
    TDMI_AT_END(tdmi_free_at) int64_t *n = NULL;
    TDMI_AT_END(tdmi_free_at) int64_t *right = NULL;
    tdm_error err = {0};
    int missed = -1, commonest = 0;
    if (best->n == 0 || TDMI_NEW(n, n_classes, &err) != TDM_OK ||
        TDMI_NEW(right, n_classes, &err) != TDM_OK)
        return;
    for (int64_t i = 0; i < best->n; i++) {
        n[best->labels[i]]++;
        right[best->labels[i]] += best->ranks[i] == 0;
    }
    for (int c = 1; c < n_classes; c++)
        if (n[c] > n[commonest])
            commonest = c;
    for (int c = 0; c < n_classes; c++) {
        facts->validated_classes += n[c] > 0;
        if (n[c] < LEAST || right[c] > 0 || 2 * n[c] >= n[commonest])
            continue;
        facts->missed_classes++;
        if (missed < 0 || n[c] > n[missed])
            missed = c;
    }
    if (missed < 0)
        return;
    facts->missed = best->classes[missed];
    facts->n_missed = n[missed];
    facts->commonest = best->classes[commonest];
    facts->commonest_part = (double)n[commonest] / (double)best->n;
}

/* Advice does without outcomes that cannot be read. */
static void look_at_classes(const struct tdmi_session *session, tdmi_outcomes *best,
                            struct tdmi_advice_facts *facts)
{
    tdm_error err = {0};
    char text[TDM_ERROR_TEXT_BYTES];
    if (tdmi_evaluation_load_best(session, best, &err) == TDM_OK) {
        find_missed(best, facts);
    } else {
        tdm_error_line(&err, text, sizeof text);
        tdmi_record_note(&session->record, "the next step is advised without the classes: %s",
                         text);
    }
}

/* Reads the epochs from the run's metrics. Advice does without a file that cannot be read. */
static void look_at_epochs(const struct tdmi_run_record *record, struct tdmi_advice_facts *facts)
{
    struct tdmi_review_epoch *epochs;
    size_t n;
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    tdm_error err = {0};
    char text[TDM_ERROR_TEXT_BYTES];
    if (tdmi_review_epochs(tdmi_run_path(record->run), &arena, &epochs, &n, &err) == TDM_OK) {
        find_rise(epochs, n, facts);
        find_most_learnt(epochs, n, facts);
        if (n > 0 && epochs[n - 1].train.n > 0)
            facts->last_loss = epochs[n - 1].train.loss;
    } else {
        tdm_error_line(&err, text, sizeof text);
        tdmi_record_note(record, "the next step is advised without the epochs: %s", text);
    }
}

void tdmi_session_advise(struct tdmi_session *session, struct tdm_train_result *result)
{
    const struct tdm_train_options *options = &session->config.options;
    const tdmi_split *split = &session->data.split;
    const bool is_changed = tdmi_augment_changes(&session->config.augment);
    const char *at_hand = NULL;
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes best = {0}; /* facts has names of it */
    if (!session->pretrained.path && tdmi_pretrained_name_at_hand(&at_hand, NULL) != TDM_OK)
        at_hand = NULL;
    struct tdmi_advice_facts facts = {
        .n_pictures = session->data.contents.n_items,
        .n_unusable = result->skipped,
        .n_torn = split->n_torn,
        .is_scratch = lacks_weights(session),
        .is_by_default = session->pretrained.is_by_default,
        .at_hand = at_hand,
        .to_fetch = TDMI_PRETRAINED_TO_FETCH,
        .network = session->network.definition.name,
        .is_head_alone = session->network.unfreeze.last > 0 &&
                         session->network.unfreeze.last == session->network.head,
        .base = base_of(&session->config, &session->cache),
        .has_norms = tdmi_norms_count(session->network.graph, 0) > 0,
        .is_freeze_given = !session->config.is_freeze_auto,
        .unnamed = options->run ? NULL : tdmi_run_path(session->record.run),
        .steps_an_epoch = session->data.steps_per_epoch,
        .is_balanced = options->balance || session->config.balances_loss,
        .is_cut = options->fraction < 1.0 || options->per_class > 0,
        .is_split_given = split->is_given,
        .test_fraction = session->data.has_test ? options->test_fraction : 0.0,
        .n_train = split->n_train,
        .n_val = split->n_val,
        .is_unchanged =
            !session->config.is_augment_auto && !is_changed && !tdmi_augmentation_is_idle(session),
        .is_prepared = tdmi_source_is_prepared(session->data.source),
        .epochs = result->epochs,
        .eval_every = options->eval_every,
        .best_epoch = result->best_epoch,
        .steps = result->steps,
        .epochs_limit = options->epochs,
        .steps_limit = options->steps,
        .rate = options->lr_scaling && *options->lr_scaling && session->config.rates.base_rate > 0.0
                    ? session->config.rates.base_rate
                    : session->config.rates.learning_rate,
        .guess_loss = guess_loss(session),
        .ended_by = result->ended_by,
        .patience = result->patience,
        .minutes = options->minutes,
        .after_best = result->after_best,
        .train = result->train,
        .val = result->val,
        .seconds = result->seconds,
        .training_seconds = session->record.training_seconds,
        .fed_seconds = session->record.fed_seconds,
        .waited_seconds = session->record.waited_seconds,
    };
    look_at_epochs(&session->record, &facts);
    look_at_classes(session, &best, &facts);
    result->next = tdmi_advice(&facts);
}
