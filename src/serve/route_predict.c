/* POST /predict: one picture as the body, or several as a form. Names are labels, never opened. */
#include "base/clock.h"
#include "image/facts.h"
#include "serve/multipart.h"
#include "serve/server.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { pictures_most = 256, top_most = 1000 };

/* "image/jpeg; …" begins with "image/". */
static bool begins(const char *type, const char *with)
{
    return strncasecmp(type, with, strlen(with)) == 0;
}

static void look(struct tdmi_request *request, const struct tdmi_http_head *head)
{
    tdm_server *server = request->server;
    const char *type = head->content_type ? head->content_type : "application/octet-stream";
    request->is_multipart = begins(type, "multipart/form-data");
    if (!request->is_multipart && !begins(type, "image/") &&
        !begins(type, "application/octet-stream"))
        tdmi_request_refuse(request, 415,
                            "the Content-Type is %.60s; image/*, application/octet-stream and "
                            "multipart/form-data are accepted (curl: -H 'Content-Type: "
                            "application/octet-stream', or -F picture=@FILE)",
                            type);
    if (strlen(type) >= sizeof request->content_type)
        tdmi_request_refuse(request, 400, "the Content-Type has more than %zu characters",
                            sizeof request->content_type - 1);
    if (request->is_answered)
        return;
    memcpy(request->content_type, type, strlen(type) + 1);
    /* A slot is taken when the body is there; what has no chance of one need not be sent. */
    if (server->slots.n_taken == server->slots.most &&
        !tdmi_slots_giver(&server->slots, request->slot.address))
        tdmi_request_refuse_crowded(request);
}

static void argument(void *self, const char *name, const char *value)
{
    struct tdmi_request *request = self;
    char *end;
    bool *has_it = strcmp(name, "top") == 0 ? &request->has_top : &request->has_logits_argument;
    if (strcmp(name, "top") != 0 && strcmp(name, "logits") != 0) {
        tdmi_request_refuse(request, 400, "/predict takes top and logits; found '%.40s'", name);
    } else if (*has_it) {
        tdmi_request_refuse(request, 400, "the argument %s is there twice", name);
    } else if (strcmp(name, "top") == 0) {
        const long top = strtol(value, &end, 10);
        if (*value < '0' || *value > '9' || *end != '\0' || top < 1 || top > top_most)
            tdmi_request_refuse(request, 400, "top takes an integer from 1 to %d; found '%.40s'",
                                top_most, value);
        else
            request->top = (int)top;
    } else {
        request->has_logits = strcmp(value, "1") == 0;
        if (!request->has_logits && strcmp(value, "0") != 0)
            tdmi_request_refuse(request, 400, "logits takes 0 or 1; found '%.40s'", value);
    }
    *has_it = true;
}

static tdm_status list_pictures(struct tdmi_request *request, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct tdmi_form_part *parts = NULL;
    if (request->body.length_bytes == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "the body is empty; an image is required");
    TDMI_TRY(TDMI_NEW(parts, pictures_most, err));
    parts[0] =
        (struct tdmi_form_part){"-", tdmi_text_string(&request->body), request->body.length_bytes};
    request->n_pictures = 1;
    if (request->is_multipart)
        TDMI_TRY(tdmi_multipart_read(request->content_type, request->body.bytes,
                                     request->body.length_bytes, parts, pictures_most,
                                     &request->n_pictures, err));
    if (request->n_pictures == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "the form has no image");
    TDMI_TRY(TDMI_NEW(request->pictures, request->n_pictures, err));
    for (int i = 0; i < request->n_pictures; i++)
        request->pictures[i] =
            (struct tdm_picture){parts[i].name, parts[i].bytes, parts[i].length_bytes};
    return TDM_OK;
}

/* Read the headers before anything is decoded. An image above the size limit, or without a size,
 * counts no pixels: the decoder refuses it before it takes time or memory. */
static tdm_status count_pixels(struct tdmi_request *request, tdm_error *err)
{
    const int64_t most = request->server->options.pixels;
    struct tdmi_image_facts facts;
    TDMI_TRY(TDMI_NEW(request->pixels, request->n_pictures, err));
    for (int i = 0; i < request->n_pictures; i++) {
        const struct tdm_picture *picture = &request->pictures[i];
        if (tdmi_clock_ns() >= request->deadline_ns)
            return TDM_FAIL(err, TDM_E_STOPPED, "the headers of its images took all of its time");
        if (tdmi_image_describe(picture->bytes, picture->length_bytes, "", &facts, NULL) ==
                TDM_OK &&
            facts.height > 0 && facts.width <= most / facts.height)
            request->pixels[i] = facts.width * facts.height;
    }
    return TDM_OK;
}

static bool is_too_large(struct tdmi_request *request)
{
    int64_t left = request->server->options.request_pixels;
    for (int i = 0; i < request->n_pictures && left >= 0; i++)
        left -= request->pixels[i];
    if (left < 0)
        tdmi_request_refuse(request, 413,
                            "the %d images have more than the %lld pixels that are accepted of "
                            "one request; send fewer at a time",
                            request->n_pictures,
                            (long long)request->server->options.request_pixels);
    return left < 0;
}

static void forget_pictures(struct tdmi_request *request)
{
    tdmi_free(request->pictures);
    tdmi_free(request->pixels);
    request->pictures = NULL;
    request->pixels = NULL;
}

static struct tdmi_request *owner_of(struct tdmi_request_slot *slot)
{
    return (struct tdmi_request *)((char *)slot - offsetof(struct tdmi_request, slot));
}

/* The request that gives its slot up is answered as soon as the predictor lets it go. */
static bool take_slot(struct tdmi_request *request)
{
    tdm_server *server = request->server;
    if (tdmi_slots_take(&server->slots, &request->slot))
        return true;
    struct tdmi_request_slot *giver = tdmi_slots_giver(&server->slots, request->slot.address);
    if (!giver)
        return false;
    tdmi_slots_leave(&server->slots, giver);
    tdmi_predictor_hurry(server->predictor, owner_of(giver), TDMI_HURRY_CROWDED);
    return tdmi_slots_take(&server->slots, &request->slot);
}

static void answer(struct tdmi_request *request)
{
    tdm_error err = {0};
    tdm_status status = list_pictures(request, &err);
    if (status == TDM_OK)
        status = count_pixels(request, &err);
    if (status != TDM_OK)
        tdmi_request_refuse(request, status == TDM_E_INPUT ? 400 : 503, "%s",
                            tdm_error_sentence(&err, 0));
    else if (!is_too_large(request) && !take_slot(request))
        tdmi_request_refuse_crowded(request);
    else if (!request->is_answered && tdmi_predictor_push(request->server->predictor, request))
        return;
    if (!request->is_answered)
        tdmi_request_refuse(request, 503, "the server is ending");
    forget_pictures(request);
}

const struct tdmi_route tdmi_route_predict = {
    .path = "/predict",
    .method = "POST",
    .look = look,
    .argument = argument,
    .answer = answer,
};
