/* Images of a source that cannot be read, by kind: no build reads them, or a library is missing. */
#include "data/source/listing.h"

_Static_assert((int)TDMI_IMAGE_FORMATS + (int)TDMI_UNREAD_KINDS <= (int)TDM_UNREAD_KINDS,
               "every kind has a place in the list");

static void add(struct tdm_unread_list *list, const char *kind, const char *package, int64_t n)
{
    if (n > 0)
        list->kinds[list->n++] = (struct tdm_unread){kind, package, n};
}

void tdmi_source_unread(const tdmi_source *source, struct tdm_unread_list *list)
{
    int64_t counts[TDMI_IMAGE_FORMATS] = {0};
    const int64_t n = tdmi_source_is_table(source) ? 0 : tdmi_source_items(source);
    *list = (struct tdm_unread_list){0};
    for (int64_t i = 0; i < n; i++)
        counts[tdmi_image_format_of_name(tdmi_source_item(source, i).path)]++;
    for (int i = TDMI_IMAGE_UNKNOWN + 1; i < TDMI_IMAGE_FORMATS; i++) {
        const enum tdmi_image_format format = (enum tdmi_image_format)i;
        if (counts[i] > 0 && !tdmi_image_can_decode(format))
            add(list, tdmi_image_format_name(format), tdmi_image_package(format), counts[i]);
    }
    for (int kind = 0; kind < TDMI_UNREAD_KINDS; kind++)
        add(list, tdmi_image_unread_words((enum tdmi_image_unread)kind), NULL,
            source->listing->n_unread[kind]);
}

void tdm_unread_to_json(const struct tdm_unread_list *unread, tdm_json_writer *writer)
{
    tdm_json_array_begin(writer, "unread");
    for (int i = 0; i < unread->n; i++) {
        tdm_json_object_begin(writer, NULL);
        tdm_json_string(writer, "kind", unread->kinds[i].kind);
        tdm_json_string(writer, "package", unread->kinds[i].package);
        tdm_json_integer(writer, "n", unread->kinds[i].n);
        tdm_json_object_end(writer);
    }
    tdm_json_array_end(writer);
}
