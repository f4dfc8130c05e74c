/*
 * The slots of --requests: one for each request whose images wait or are predicted. One address may
 * hold all of them while no other needs one, so clients behind one proxy lose nothing. When all are
 * taken, the address with the most loses its youngest to an address that has fewer, until they have
 * equally many.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tdmi_request_slot { /* start from a zeroed object */
    uint64_t address;
    int rank; /* among those of its address, the oldest is 1; 0: none is held */
    struct tdmi_request_slot *next;
};

struct tdmi_slots {
    int most, n_taken;
    struct tdmi_request_slot *first; /* the oldest */
};

/* Take a free slot for slot->address; false: none is free. */
bool tdmi_slots_take(struct tdmi_slots *slots, struct tdmi_request_slot *slot);
/* The slot to take from another address when none is free; NULL: the client has to retry. */
struct tdmi_request_slot *tdmi_slots_giver(const struct tdmi_slots *slots, uint64_t address);
/* Release the slot; does nothing where none is held. */
void tdmi_slots_leave(struct tdmi_slots *slots, struct tdmi_request_slot *slot);
