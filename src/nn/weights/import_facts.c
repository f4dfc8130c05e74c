/*
 * What an export of ours says beside its tensors: how pictures become its input, how it pads, and
 * which of our networks it is (src/train/export). Others use these words for things of their own,
 * so what does not read as ours is passed over, and the notes say so.
 */
#include "nn/weights/import_internal.h"

#include <string.h>

static tdm_status read_preprocess(struct tdmi_importing *it, tdm_error *err)
{
    const char *text = tdmi_weights_fact(it->weights, "preprocess");
    tdm_json_document *document = NULL;
    tdm_error why;
    if (!text)
        return TDM_OK;
    tdm_status status =
        tdm_json_read(text, strlen(text), "the preprocessing of the weights", &document, &why);
    if (status == TDM_OK)
        status = tdmi_preprocess_from_json(tdm_json_root(document), "the weights",
                                           &it->facts.preprocess, &why);
    tdm_json_document_free(document);
    if (status == TDM_E_MEMORY)
        return TDM_FAIL(err, TDM_E_MEMORY, "reading what %s says of pictures: out of memory",
                        tdmi_weights_path(it->weights));
    it->facts.has_preprocess = status == TDM_OK;
    if (status == TDM_OK)
        return TDM_OK;
    return tdmi_import_note(it, err,
                            "what the file calls preprocess is not in our words and passed over");
}

static void read_padding(struct tdmi_importing *it)
{
    const char *word = tdmi_weights_fact(it->weights, "padding");
    for (int i = 0; word && i <= (int)TDMI_PADDING_NONE; i++)
        if (strcmp(word, tdmi_padding_word((enum tdmi_padding)i)) == 0) {
            it->facts.has_padding = true;
            it->facts.padding = (enum tdmi_padding)i;
        }
}

tdm_status tdmi_import_read_facts(struct tdmi_importing *it, tdm_error *err)
{
    const char *name = tdmi_weights_fact(it->weights, "network");
    struct tdmi_network network;
    if (name && tdmi_network_find(name, &network, NULL) == TDM_OK)
        it->facts.network = name;
    read_padding(it);
    return read_preprocess(it, err);
}
