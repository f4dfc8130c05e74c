/*
 * Rules, each with a condition, a sentence and what is at stake: the part of the images that are
 * wrong, or of the time that could have been saved. The largest part wins, among equals the first
 * rule; but unusable images come before all, because every other figure rests on them.
 */
#include "train/advice.h"
#include "base/text/quote.h"
#include "tandem/metrics.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Parts of the images or of the time. An interval wider than WIDE on either side says little; a
 * network that is right more often than WELL on training and validation lacks no features; fewer
 * images than FEW are too few to train a backbone from scratch. */
#define BAD_PART 0.02
#define WAITED_PART 0.2
#define AFTER_PART 0.5
#define WIDE 0.05
#define WELL 0.95
#define WRONG_PART 0.02
#define LEAST_SECONDS 10.0 /* a proposal that saves less time is not made */
/* A loss FAR_ABOVE times that of a guess means divergence. A network that is right less often than
 * POORLY has learned next to nothing; before EARLY epochs it is too early to see. */
#define FAR_ABOVE 10.0
#define POORLY 0.5
#define MOST_RATE 0.01
enum { FEW = 20000, USUAL_PATIENCE = 10, USUAL_VIEWS = 8, EARLY = 5, ENOUGH = 10 };
enum { HEAD_EPOCHS = 5, WITH_BASE_EPOCHS = 10 };

struct proposal {
    double at_stake; /* 0: the rule does not apply */
    struct tdm_next next;
};

typedef struct proposal rule(const struct tdmi_advice_facts *facts);

static const struct {
    const char *name, *words;
} steps[] = {
    {"fix-data", "mend the images"},
    {"transfer", "use pretrained weights"},
    {"cache", "keep the features"},
    {"rate", "lower the learning rate"},
    {"stream", "prepare the images"},
    {"resume", "train longer"},
    {"stop", "stop earlier"},
    {"data", "more images"},
    {"augment", "vary the images"},
    {"unfreeze", "train more layers"},
    {"none", "nothing"},
};

const char *tdmi_advice_step(const char *name)
{
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (strcmp(name, steps[i].name) == 0)
            return steps[i].name;
    return NULL;
}

const char *tdm_next_words(const char *step)
{
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (strcmp(step, steps[i].name) == 0)
            return steps[i].words;
    return step;
}

static struct proposal propose(double at_stake, const char *step, const char *format, ...)
    TDM_PRINTF(3, 4);
static struct proposal propose(double at_stake, const char *step, const char *format, ...)
{
    struct proposal proposal = {at_stake, {.step = step}};
    va_list arguments;
    va_start(arguments, format);
    tdmi_quote(proposal.next.evidence, sizeof proposal.next.evidence, format, arguments);
    va_end(arguments);
    return proposal;
}

static const struct proposal nothing;

static double percent(double part)
{
    return 100.0 * part;
}

/* In percent: of the distinct images, as the interval that stands beside it. */
static double right(const tdm_score *score)
{
    return percent(tdm_accuracy_distinct(score));
}

/* The word before "images" where copies are left out of their number. */
static const char *distinct(const tdm_score *score)
{
    return score->n_distinct < score->n ? " distinct" : "";
}

static double half_width(const tdm_score *score)
{
    return (score->high - score->low) / 2.0;
}

/* Is it right more often on training images than on validation images, by more than chance? */
static bool overfits(const struct tdmi_advice_facts *facts)
{
    return facts->train.n > 0 && facts->val.n > 0 && facts->train.low > facts->val.high;
}

static bool is_wrong_enough(const struct tdmi_advice_facts *facts)
{
    return facts->val.n > 0 && 1.0 - facts->val.accuracy > WRONG_PART;
}

/* Then the split is what to change, before any seconds are saved. */
static bool trains_on_fewer(const struct tdmi_advice_facts *facts)
{
    return facts->val.n > 0 && facts->n_train < facts->n_val;
}

/* 0 where the saved seconds are not worth a proposal. */
static double part_of_time(const struct tdmi_advice_facts *facts, double saved)
{
    return saved >= LEAST_SECONDS && facts->seconds > 0.0 ? fmin(saved / facts->seconds, 1.0) : 0.0;
}

/* ---- rules ------------------------------------------------------------------------------- */

static struct proposal unusable_images(const struct tdmi_advice_facts *facts)
{
    const int64_t bad = facts->n_unusable + facts->n_torn;
    if (facts->n_pictures <= 0 || (double)bad <= BAD_PART * (double)facts->n_pictures)
        return nothing;
    return propose(INFINITY, "fix-data",
                   "of %lld images %lld could not be used and %lld are in more than one class, "
                   "%.1f %% together; tandem audit names them",
                   (long long)facts->n_pictures, (long long)facts->n_unusable,
                   (long long)facts->n_torn, percent((double)bad / (double)facts->n_pictures));
}

static struct proposal diverged(const struct tdmi_advice_facts *facts)
{
    if (facts->epochs < 1 || !(facts->guess_loss > 0.0) ||
        facts->last_loss <= FAR_ABOVE * facts->guess_loss)
        return nothing;
    return propose(FAR_ABOVE, "rate",
                   "training diverged: after %d epoch%s the loss is %.4g, and guessing has %.2f; "
                   "in a new run use --lr %.3g in place of %.3g",
                   facts->epochs, facts->epochs == 1 ? "" : "s", facts->last_loss,
                   facts->guess_loss, fmin(facts->rate / 10.0, MOST_RATE), facts->rate);
}

static struct proposal no_weights(const struct tdmi_advice_facts *facts)
{
    const double wrong = 1.0 - facts->val.accuracy;
    char start[200];
    if (!facts->is_scratch || !is_wrong_enough(facts) || facts->n_train > FEW)
        return nothing;
    if (facts->at_hand)
        snprintf(start, sizeof start, "--weights %s, which is installed,%s starts", facts->at_hand,
                 facts->is_by_default ? "" : " in place of --model");
    else if (!facts->to_fetch || (facts->is_head_alone && !facts->is_by_default))
        return nothing; /* for random frozen layers there is underfitted_from_scratch */
    else if (facts->is_by_default)
        snprintf(start, sizeof start, "the same command with --fetch%s starts",
                 facts->unnamed ? "" : " and another -o");
    else
        snprintf(start, sizeof start,
                 "a new run with --weights %s --fetch in place of --model starts", facts->to_fetch);
    return propose(wrong, "transfer",
                   "%s was trained from scratch on %lld images, and %lld of the %lld validation "
                   "images are wrong (%.1f %%); %s from features of many more images",
                   facts->network, (long long)facts->n_train,
                   (long long)(facts->val.n - facts->val.correct), (long long)facts->val.n,
                   percent(wrong), start);
}

static struct proposal features_not_cached(const struct tdmi_advice_facts *facts)
{
    static const char *const remedies[] = {
        [TDMI_BASE_IS_UNWANTED] = "--features f32 in place of none",
        [TDMI_BASE_HAS_NO_PLACE] = "TANDEM_HOME on a disk with room, or --features f16,",
        [TDMI_BASE_SEES_CHANGES] = "--views 8 in place of 0",
    };
    const int computed = facts->base == TDMI_BASE_SEES_CHANGES ? USUAL_VIEWS : 1;
    if (facts->base == TDMI_BASE_IS_KEPT || !facts->is_head_alone || facts->epochs <= computed)
        return nothing;
    const double an_epoch = facts->training_seconds / facts->epochs;
    return propose(part_of_time(facts, an_epoch * (facts->epochs - computed)), "cache",
                   "the frozen layers were computed in each of %d epochs, %.1f s of training per "
                   "epoch; %s computes them %s and keeps the features",
                   facts->epochs, an_epoch, remedies[facts->base],
                   computed == 1 ? "once" : "8 times");
}

static struct proposal waits_for_images(const struct tdmi_advice_facts *facts)
{
    if (facts->is_prepared || facts->waited_seconds <= WAITED_PART * facts->fed_seconds)
        return nothing;
    return propose(part_of_time(facts, facts->waited_seconds), "stream",
                   "training waited %.1f of %.1f s (%.0f %%) for images to be read and decoded; "
                   "tandem prepare resizes them once, into a table to train on",
                   facts->waited_seconds, facts->fed_seconds,
                   percent(facts->waited_seconds / facts->fed_seconds));
}

/* Writes the option that raises the limit which ended the run, and -o where the run was unnamed. */
static void write_larger_limit(const struct tdmi_advice_facts *facts, char *text, size_t text_bytes)
{
    const int epochs = facts->epochs < EARLY ? ENOUGH : 2 * facts->epochs;
    const int64_t enough = ENOUGH * facts->steps_an_epoch;
    const int64_t more_steps =
        facts->epochs < EARLY && enough > 2 * facts->steps ? enough : 2 * facts->steps;
    int used = 0;
    if (strcmp(facts->ended_by, "epochs") == 0)
        used = snprintf(text, text_bytes, "--epochs %d", epochs);
    else if (strcmp(facts->ended_by, "steps") == 0)
        used = snprintf(text, text_bytes, "--steps %lld", (long long)more_steps);
    else
        used = snprintf(text, text_bytes, "--minutes %g", 2.0 * facts->minutes);
    if (facts->unnamed && used > 0 && (size_t)used < text_bytes)
        snprintf(text + used, text_bytes - (size_t)used, " -o %s", facts->unnamed);
}

/* Did a limit end the run in its first epochs, the last of them being the best? */
static bool ended_early(const struct tdmi_advice_facts *facts)
{
    return strcmp(facts->ended_by, "patience") != 0 && facts->after_best.epochs == 0 &&
           facts->epochs < EARLY && is_wrong_enough(facts);
}

static struct proposal ended_too_early(const struct tdmi_advice_facts *facts)
{
    char more[160];
    if (!ended_early(facts))
        return nothing;
    write_larger_limit(facts, more, sizeof more);
    return propose(1.0 - facts->val.accuracy, "resume",
                   "%.1f %% of %lld validation images are right after %lld step%s, %d whole "
                   "epoch%s, and the last was the best: too early to see where it leads; %s "
                   "--resume continues",
                   right(&facts->val), (long long)facts->val.n, (long long)facts->steps,
                   facts->steps == 1 ? "" : "s", facts->epochs, facts->epochs == 1 ? "" : "s",
                   more);
}

static struct proposal still_rises(const struct tdmi_advice_facts *facts)
{
    char more[160];
    const double rise = facts->val.accuracy - facts->before_rise.accuracy;
    if (strcmp(facts->ended_by, "patience") == 0 || facts->after_best.epochs > 0 ||
        facts->rise_epochs == 0 || rise <= half_width(&facts->val))
        return nothing;
    write_larger_limit(facts, more, sizeof more);
    return propose(rise, "resume",
                   "epoch %d was the last and the best, and within %d epoch%s validation rose from "
                   "%.1f to %.1f %%, more than the %.1f points that chance explains; %s --resume "
                   "continues",
                   facts->best_epoch, facts->rise_epochs, facts->rise_epochs == 1 ? "" : "s",
                   right(&facts->before_rise), right(&facts->val), percent(half_width(&facts->val)),
                   more);
}

static struct proposal trains_too_long(const struct tdmi_advice_facts *facts)
{
    const struct tdm_after_best *after = &facts->after_best;
    const int waited = USUAL_PATIENCE * (facts->eval_every > 0 ? facts->eval_every : 1);
    if (trains_on_fewer(facts) || (facts->patience > 0 && facts->patience <= USUAL_PATIENCE) ||
        after->epochs <= waited || after->seconds <= AFTER_PART * facts->seconds)
        return nothing;
    const double saved = after->seconds * (after->epochs - waited) / after->epochs;
    return propose(part_of_time(facts, saved), "stop",
                   "the %d epochs after epoch %d, the best, took %.1f of %.1f s and did not "
                   "improve on its %.1f %%; --patience %d ends about %.1f s earlier",
                   after->epochs, facts->best_epoch, after->seconds, facts->seconds,
                   right(&facts->val), USUAL_PATIENCE, saved);
}

static struct proposal overfitted(const struct tdmi_advice_facts *facts)
{
    const bool is_augment = !facts->is_cut && facts->is_unchanged;
    char remedy[200];
    if (!overfits(facts) || !is_wrong_enough(facts))
        return nothing;
    if (is_augment)
        snprintf(remedy, sizeof remedy, "%s",
                 "training images are learned by heart; --augment auto in place of none changes "
                 "them anew in each epoch");
    else
        snprintf(remedy, sizeof remedy, "%s",
                 facts->is_cut ? "there are more, which --fraction or --per-class leaves out"
                               : "add images to the same folder and train a new run");
    return propose(
        facts->train.accuracy - facts->val.accuracy, is_augment ? "augment" : "data",
        "in the course of training up to %.1f %% of the %lld training images were right, and "
        "%.1f %% (%.1f to %.1f) of the validation images are: %s",
        right(&facts->train), (long long)facts->train.n, right(&facts->val),
        percent(facts->val.low), percent(facts->val.high), remedy);
}

/* Writes --unfreeze with the options that it requires beside those of the run. */
static void write_unfreezing(const struct tdmi_advice_facts *facts, char *text, size_t text_bytes)
{
    const bool is_short = facts->epochs_limit > 0 && facts->epochs_limit <= HEAD_EPOCHS;
    const int64_t head_steps = HEAD_EPOCHS * facts->steps_an_epoch;
    char epochs[40] = "", more_steps[40] = "";
    if (is_short)
        snprintf(epochs, sizeof epochs, " --epochs %d", WITH_BASE_EPOCHS);
    if (facts->steps_limit > 0 && facts->steps_limit <= head_steps)
        snprintf(more_steps, sizeof more_steps, " --steps %lld", 2 * (long long)head_steps);
    snprintf(text, text_bytes, "--unfreeze %d%s%s%s%s", HEAD_EPOCHS,
             facts->has_norms ? " --bn frozen" : "", facts->is_freeze_given ? " --freeze none" : "",
             epochs, more_steps);
}

static struct proposal underfitted_head(const struct tdmi_advice_facts *facts)
{
    char unfreezing[160];
    if (!facts->is_head_alone || facts->is_scratch || ended_early(facts) || facts->train.n == 0 ||
        facts->val.n == 0 || overfits(facts) || facts->train.high >= WELL ||
        facts->val.high >= WELL)
        return nothing;
    write_unfreezing(facts, unfreezing, sizeof unfreezing);
    return propose(1.0 - facts->train.high, "unfreeze",
                   "with the base frozen no more than %.1f %% (%.1f to %.1f) of the training "
                   "images are right, and %.1f %% of the validation images; in a new run %s trains "
                   "the base too, after %d epochs of the head",
                   right(&facts->train), percent(facts->train.low), percent(facts->train.high),
                   right(&facts->val), unfreezing, HEAD_EPOCHS);
}

/* A base with random weights that is frozen, or a whole network that learned next to nothing. */
static struct proposal underfitted_from_scratch(const struct tdmi_advice_facts *facts)
{
    const double most = facts->is_head_alone ? WELL : POORLY;
    if (!facts->is_scratch || facts->at_hand || !facts->to_fetch || ended_early(facts) ||
        facts->train.n == 0 || facts->val.n == 0 || overfits(facts) || facts->train.high >= most ||
        facts->val.high >= most)
        return nothing;
    return propose(1.0 - facts->train.high, "transfer",
                   "%s from scratch%s has no more than %.1f %% of the training images right, and "
                   "%.1f %% of the validation images; a new run with --weights %s --fetch%s starts "
                   "from features of many more images",
                   facts->network, facts->is_head_alone ? ", with random frozen layers," : "",
                   right(&facts->train), right(&facts->val), facts->to_fetch,
                   facts->is_by_default ? "" : " in place of --model");
}

/* Half the width of the accuracy's interval if this fraction of all images were validation images.
 */
static double half_width_with(const struct tdmi_advice_facts *facts, double fraction)
{
    const double n = floor(fraction * (double)(facts->n_train + facts->n_val));
    const tdm_interval interval =
        tdm_wilson((int64_t)(n * tdm_accuracy_distinct(&facts->val)), (int64_t)n);
    return (interval.high - interval.low) / 2.0;
}

/* Writes --split that validates with so many tenths and keeps the test. */
static void write_split(const struct tdmi_advice_facts *facts, int tenths, char *text,
                        size_t text_bytes)
{
    const double part = tenths / 10.0, test = facts->test_fraction;
    if (test > 0.0)
        snprintf(text, text_bytes, "--split %g,%g,%g", 1.0 - part - test, part, test);
    else
        snprintf(text, text_bytes, "--split %g,%g", 1.0 - part, part);
}

/* At stake is also what a validation without mistakes does not show. */
static struct proposal too_few_train(const struct tdmi_advice_facts *facts)
{
    char remedy[160], split[60];
    if (!trains_on_fewer(facts))
        return nothing;
    write_split(facts, 2, split, sizeof split);
    if (facts->is_split_given)
        snprintf(remedy, sizeof remedy,
                 "the source gives this split; move images to its training part and train a new "
                 "run");
    else
        snprintf(remedy, sizeof remedy, "in a new run %s trains on most of them", split);
    return propose(fmax(1.0 - facts->val.accuracy, half_width(&facts->val)), "data",
                   "only %lld images train and %lld %s, of which %.1f %% are right: %s",
                   (long long)facts->n_train, (long long)facts->n_val,
                   facts->n_val == 1 ? "validates" : "validate", right(&facts->val), remedy);
}

static struct proposal too_few_validate(const struct tdmi_advice_facts *facts)
{
    const double wide = half_width(&facts->val);
    char split[60] = "";
    if (facts->val.n == 0 || wide <= WIDE)
        return nothing;
    for (int tenths = 2; tenths <= 3 && !*split && !facts->is_split_given; tenths++) {
        const double part = tenths / 10.0;
        if ((tenths < 3 && half_width_with(facts, part) > WIDE) ||
            half_width_with(facts, part) > 0.8 * wide)
            continue;
        write_split(facts, tenths, split, sizeof split);
        return propose(
            wide, "data",
            "with %lld%s validation images the %.1f %% that are right mean %.1f to %.1f %%; in a "
            "new run %s narrows that to about \xc2\xb1%.1f points",
            (long long)facts->val.n_distinct, distinct(&facts->val), right(&facts->val),
            percent(facts->val.low), percent(facts->val.high), split,
            percent(half_width_with(facts, part)));
    }
    return propose(wide, "data",
                   "with %lld%s validation images the %.1f %% that are right mean %.1f to %.1f %%, "
                   "and differences below %.1f points cannot be seen; add images to %s and train a "
                   "new run",
                   (long long)facts->val.n_distinct, distinct(&facts->val), right(&facts->val),
                   percent(facts->val.low), percent(facts->val.high), percent(wide),
                   facts->is_split_given ? "the source's validation part" : "the same folder");
}

/* Whoever only looks at the accuracy does not see it. At stake is the mean accuracy of the classes.
 */
static struct proposal misses_a_class(const struct tdmi_advice_facts *facts)
{
    char others[60] = "";
    if (!facts->missed || facts->validated_classes == 0)
        return nothing;
    if (facts->missed_classes > 1)
        snprintf(others, sizeof others, ", nor of %d more rare class%s", facts->missed_classes - 1,
                 facts->missed_classes == 2 ? "" : "es");
    return propose((double)facts->missed_classes / facts->validated_classes, "data",
                   "none of the %lld validation images of '%s' is right%s, and the answer '%s' for "
                   "every image would be right for %.1f %% of them: add images of rare classes%s",
                   (long long)facts->n_missed, facts->missed, others, facts->commonest,
                   percent(facts->commonest_part),
                   facts->is_balanced ? ""
                                      : ", or in a new run --balance shows them as often as "
                                        "the others");
}

/* ---- the choice -------------------------------------------------------------------------- */

static struct tdm_next no_step(const struct tdmi_advice_facts *facts)
{
    const bool is_alike = facts->train.n > 0 && is_wrong_enough(facts) && !overfits(facts);
    return propose(0.0, "none",
                   "%.1f %% (%.1f to %.1f) of %lld%s validation images are right and up to %.1f %% "
                   "of the training images; of %lld images %lld are unusable, and training waited "
                   "%.0f %% of its time: nothing measured here asks for a change%s",
                   right(&facts->val), percent(facts->val.low), percent(facts->val.high),
                   (long long)facts->val.n_distinct, distinct(&facts->val), right(&facts->train),
                   (long long)facts->n_pictures, (long long)(facts->n_unusable + facts->n_torn),
                   facts->fed_seconds > 0.0 ? percent(facts->waited_seconds / facts->fed_seconds)
                                            : 0.0,
                   is_alike ? ", and the report shows which images are wrong: labels, or what "
                              "another network might see"
                            : "")
        .next;
}

struct tdm_next tdmi_advice(const struct tdmi_advice_facts *facts)
{
    static rule *const rules[] = {unusable_images,          diverged,        no_weights,
                                  underfitted_from_scratch, ended_too_early, features_not_cached,
                                  waits_for_images,         still_rises,     trains_too_long,
                                  underfitted_head,         overfitted,      too_few_train,
                                  misses_a_class,           too_few_validate};
    struct proposal best = nothing;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct proposal proposal = rules[i](facts);
        if (proposal.at_stake > best.at_stake)
            best = proposal;
    }
    return best.at_stake > 0.0 ? best.next : no_step(facts);
}
