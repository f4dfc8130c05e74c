/* The highest rank is the number of slots of the address that holds the most. */
#include "serve/slots.h"

#include <stddef.h>

static int count(const struct tdmi_slots *slots, uint64_t address)
{
    int n = 0;
    for (const struct tdmi_request_slot *slot = slots->first; slot; slot = slot->next)
        n += slot->address == address;
    return n;
}

bool tdmi_slots_take(struct tdmi_slots *slots, struct tdmi_request_slot *slot)
{
    struct tdmi_request_slot **at = &slots->first;
    if (slots->n_taken == slots->most)
        return false;
    slot->rank = count(slots, slot->address) + 1;
    slot->next = NULL;
    while (*at)
        at = &(*at)->next;
    *at = slot;
    slots->n_taken++;
    return true;
}

struct tdmi_request_slot *tdmi_slots_giver(const struct tdmi_slots *slots, uint64_t address)
{
    struct tdmi_request_slot *giver = NULL;
    for (struct tdmi_request_slot *slot = slots->first; slot; slot = slot->next) {
        if (!giver || slot->rank >= giver->rank)
            giver = slot;
    }
    return giver && giver->rank > count(slots, address) + 1 ? giver : NULL;
}

void tdmi_slots_leave(struct tdmi_slots *slots, struct tdmi_request_slot *slot)
{
    struct tdmi_request_slot **at = &slots->first;
    if (slot->rank == 0)
        return;
    while (*at != slot)
        at = &(*at)->next;
    *at = slot->next;
    for (struct tdmi_request_slot *later = slot->next; later; later = later->next)
        later->rank -= later->address == slot->address;
    slot->rank = 0;
    slots->n_taken--;
}
