/*
 * NumPy's files: .npz, a zip of arrays, each called by its member's name less ".npy"; and a single
 * .npy, whose tensor is called "array". Arrays of text and dates are left out and named by the fact
 * "left_out".
 */
#include "base/text/text.h"
#include "weights/numpy/npy.h"
#include "weights/zip_members.h"

#include <string.h>
#include "base/banned.h"

static const char ending[] = ".npy";

static bool is_array(const char *name)
{
    size_t n = strlen(name);
    return n > strlen(ending) && strcmp(name + n - strlen(ending), ending) == 0;
}

static bool is_form(const struct tdmi_weights_input *input)
{
    return tdmi_npy_is(input->bytes, input->n_bytes) || tdmi_zip_members_have(input, is_array);
}

/* name is cut where its ending begins. */
static tdm_status add_array(tdmi_weights *weights, char *name, const uint8_t *bytes, size_t n_bytes,
                            tdmi_text *left_out, tdm_error *err)
{
    enum { LONGEST_LIST = 4000 };
    struct tdmi_npy npy;
    tdm_status status = tdmi_npy_read(weights, name, bytes, n_bytes, &npy, err);
    if (status != TDM_OK)
        return status;
    if (is_array(name))
        name[strlen(name) - strlen(ending)] = '\0';
    if (npy.has_numbers)
        return tdmi_npy_add(weights, name, &npy, bytes, n_bytes, err);
    if (left_out->length_bytes < LONGEST_LIST)
        tdmi_text_printf(left_out, "%s%.100s (%s)", left_out->length_bytes > 0 ? ", " : "", name,
                         npy.type);
    return TDM_OK;
}

static tdm_status add_member(struct tdmi_zip_members *members, int64_t index, tdmi_text *left_out,
                             tdm_error *err)
{
    const struct tdmi_archive_entry *entry = tdmi_archive_entry(members->archive, index);
    const uint8_t *bytes = NULL;
    tdmi_text name = {0};
    tdm_status status = TDM_OK;
    if (entry->is_folder || !is_array(entry->name))
        return TDM_OK;
    status = tdmi_zip_members_bytes(members, index, &bytes, err);
    tdmi_text_printf(&name, "%s", entry->name);
    if (status == TDM_OK && name.is_broken)
        status = TDM_FAIL(err, TDM_E_MEMORY, "no memory for the names in %s",
                          tdmi_weights_path(members->weights));
    if (status == TDM_OK)
        status = add_array(members->weights, name.bytes, bytes, (size_t)entry->size_bytes, left_out,
                           err);
    tdmi_text_release(&name);
    return status;
}

static tdm_status read(tdmi_weights *weights, const struct tdmi_weights_input *input,
                       tdm_error *err)
{
    struct tdmi_zip_members members;
    tdmi_text left_out = {0};
    char single[] = "array";
    tdm_status status = TDM_OK;
    if (tdmi_npy_is(input->bytes, input->n_bytes)) {
        status = add_array(weights, single, input->bytes, input->n_bytes, &left_out, err);
    } else {
        status = tdmi_zip_members_open(weights, input, &members, err);
        for (int64_t i = 0; status == TDM_OK && i < tdmi_archive_entries(members.archive); i++)
            status = add_member(&members, i, &left_out, err);
    }
    if (status == TDM_OK && tdmi_weights_count(weights) == 0)
        status = TDMI_WEIGHTS_BAD(err, weights, "there are no arrays of numbers in it%s%s",
                                  left_out.length_bytes > 0 ? ", only " : "",
                                  tdmi_text_string(&left_out));
    if (status == TDM_OK && left_out.is_broken)
        status = TDM_FAIL(err, TDM_E_MEMORY, "no memory for the facts of %s", input->path);
    if (status == TDM_OK && left_out.length_bytes > 0)
        status = tdmi_weights_note(weights, "left_out", left_out.bytes, left_out.length_bytes, err);
    tdmi_text_release(&left_out);
    return status;
}

const struct tdmi_weights_form tdmi_weights_form_npz = {
    .name = "numpy",
    .what = "NumPy (.npz, .npy)",
    .is_form = is_form,
    .read = read,
};
