/*
 * A look finds small grey images, which are digits and letters or drawings as small. Others are
 * taken for photos; of what they show only the class names say anything. Mirroring is left out
 * where they leave a doubt: it costs little where it would have helped, and where left and right
 * matter it makes one class of another.
 */
#include "train/choice/augmentation.h"
#include "base/text/text.h"
#include "train/session/session.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A shift by this part of the side keeps what is drawn in sight: 2 of 28 pixels. */
enum { SIDES_A_SHIFT = 14 };

/* ---- class names ----------------------------------------------------------------------------- */

static bool is_spelled_digit(const char *name)
{
    static const char *const digits[] = {"zero", "one", "two",   "three", "four",
                                         "five", "six", "seven", "eight", "nine"};
    for (size_t i = 0; i < sizeof digits / sizeof digits[0]; i++)
        if (strcasecmp(name, digits[i]) == 0)
            return true;
    return false;
}

/* A number or a single character: it says nothing, or that the class is a digit or a letter. */
static bool is_sign(const char *name)
{
    const size_t n = strlen(name);
    return n == 0 || is_spelled_digit(name) || strspn(name, "0123456789") == n ||
           tdmi_utf8_length(name, n) == n;
}

/* Anywhere: "turnLeft" and "leftturn" are as likely as "turn-left", and a "cleft" costs little. */
static bool has_word(const char *name, const char *word)
{
    for (const char *at = name; *at; at++)
        if (strncasecmp(at, word, strlen(word)) == 0)
            return true;
    return false;
}

/* The first class that tells left from right; NULL: none does. */
static const char *sided_class(const char *const *classes, int n)
{
    for (int i = 0; i < n; i++)
        if (has_word(classes[i], "left") || has_word(classes[i], "right"))
            return classes[i];
    return NULL;
}

static bool are_signs(const char *const *classes, int n)
{
    for (int i = 0; i < n; i++)
        if (!is_sign(classes[i]))
            return false;
    return true;
}

/* ---- the rule -------------------------------------------------------------------------------- */

struct tdmi_augmentation tdmi_augmentation_for(const struct tdmi_look *look,
                                               const char *const *classes, int n_classes, int side)
{
    struct tdmi_augmentation it;
    const char *sided = sided_class(classes, n_classes);
    if (tdmi_look_suits(look) == TDMI_SUITS_SMALL) {
        const int shift = side > SIDES_A_SHIFT ? side / SIDES_A_SHIFT : 1;
        snprintf(it.spec, sizeof it.spec, "crop:%d:%d", shift, look->background);
        snprintf(it.reason, sizeof it.reason,
                 "the images are grey and small (%d pixels), like digits and letters, which are "
                 "shifted and never mirrored",
                 look->side);
        return it;
    }
    const bool is_mirrored = !sided && !are_signs(classes, n_classes);
    snprintf(it.spec, sizeof it.spec, "%s",
             tdmi_look_suits(look) == TDMI_SUITS_UNSURE ? (is_mirrored ? "zoom,flip" : "zoom")
             : is_mirrored                              ? "flip"
                                                        : "none");
    if (sided)
        snprintf(
            it.reason, sizeof it.reason,
            "the images seem to be photos; they are not mirrored, since class '%.60s' tells left "
            "from right",
            sided);
    else
        snprintf(
            it.reason, sizeof it.reason, "the images seem to be photos%s",
            is_mirrored
                ? ""
                : "; they are not mirrored, since the class names stand for numbers or letters");
    return it;
}

/* ---- in a session ---------------------------------------------------------------------------- */

bool tdmi_augmentation_is_idle(const struct tdmi_session *session)
{
    return session->pretrained.path || session->network.unfreeze.first > 0;
}

static tdm_status look_and_choose(struct tdmi_session *session, struct tdmi_augmentation *chosen,
                                  tdm_error *err)
{
    const struct tdmi_train_network *network = &session->network;
    struct tdmi_look *look = &session->data.look;
    if (look->n_seen == 0)
        TDMI_TRY(tdmi_look_at(session->data.source, look, err));
    *chosen = tdmi_augmentation_for(look, network->host.classes, network->host.n_classes,
                                    tdmi_graph_preprocess(network->graph)->height);
    return TDM_OK;
}

static tdm_status choose(struct tdmi_session *session, struct tdmi_augmentation *chosen,
                         tdm_error *err)
{
    if (!tdmi_ranks_is_follower(session))
        TDM_TRY(look_and_choose(session, chosen, err), err, "--augment auto");
    TDMI_TRY(tdmi_ranks_share(session, chosen, sizeof *chosen, err));
    const bool is_none = strcmp(chosen->spec, "none") == 0;
    tdmi_record_note(&session->record, "augment: %s, because %s%s", chosen->spec, chosen->reason,
                     is_none ? "" : "; --augment none switches it off");
    return TDM_OK;
}

tdm_status tdmi_augmentation_choose(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_augmentation chosen = {.spec = ""};
    const char *spec = chosen.spec;
    if (!session->config.is_augment_auto)
        return TDM_OK;
    if (tdmi_run_recorded(session->record.run, "data"))
        spec = tdmi_record_string(&session->record, "augment");
    else if (!tdmi_augmentation_is_idle(session))
        TDMI_TRY(choose(session, &chosen, err));
    return TDM_WRAP(err, tdmi_augment_read(spec, &session->config.augment, err),
                    "what --augment auto means in this run");
}
