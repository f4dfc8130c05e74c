/*
 * A class of the synthetic data set: silhouette, surface texture, arrangement and, for half
 * of the classes, a colour scheme. A pure function of the class number, whatever the seed and the
 * number of classes, so that five classes are the first five of ten.
 */
#pragma once

#define TDMI_SYNTH_CLASSES 1000
#define TDMI_SYNTH_SCHEMES 6
#define TDMI_SYNTH_ANY_SCHEME (-1)
#define TDMI_SYNTH_NAME_BYTES 64

enum tdmi_synth_arrangement {
    TDMI_SYNTH_SINGLE,
    TDMI_SYNTH_PAIR,  /* two beside each other */
    TDMI_SYNTH_STACK, /* one above the other */
    TDMI_SYNTH_TRIO,  /* two below, one above */
    TDMI_SYNTH_ARRANGEMENTS
};

struct tdmi_synth_class {
    int shape, texture; /* indices for synth/object.h */
    enum tdmi_synth_arrangement arrangement;
    int scheme; /* in [0, TDMI_SYNTH_SCHEMES), or TDMI_SYNTH_ANY_SCHEME: another one each image */
};

/* index in [0, TDMI_SYNTH_CLASSES). */
struct tdmi_synth_class tdmi_synth_class_of(int index);

/* "002-red-dotted-disc": the number first, so that names sort as classes do. */
void tdmi_synth_class_name(int index, char name[TDMI_SYNTH_NAME_BYTES]);
