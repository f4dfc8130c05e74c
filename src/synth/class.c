/*
 * Maps class numbers to objects to draw. Classes come in blocks of six over two silhouettes
 * (s0, s1) and two textures (t0, t1), in this order:
 *
 *                 texture t0        texture t1
 *   shape s0      0 any colour      3 any colour
 *   shape s1      1 any colour      2, 4, 5 the same thing in three colours
 *
 * Inside a block neither the silhouette nor the texture nor the colour alone gives the class: 0 and
 * 1 differ only in silhouette, 0 and 3 only in texture, 2, 4 and 5 only in colour. The objects of
 * colourless classes take any of the six schemes, so a colour never proves a class.
 *
 * 7 pairs of silhouettes, 6 pairs of textures and 4 arrangements make 168 blocks, 1008 classes.
 */
#include "synth/class.h"
#include "synth/object.h"
#include <stdio.h>

enum {
    BLOCK_CLASSES = 6,
    SHAPE_PAIRS = TDMI_SYNTH_SHAPES / 2,
    TEXTURE_PAIRS = TDMI_SYNTH_TEXTURES / 2
};

_Static_assert(SHAPE_PAIRS *TEXTURE_PAIRS *(int)TDMI_SYNTH_ARRANGEMENTS *BLOCK_CLASSES >=
                   TDMI_SYNTH_CLASSES,
               "every class needs a combination of its own");

static const char *const scheme_names[TDMI_SYNTH_SCHEMES] = {"red",  "yellow", "green",
                                                             "cyan", "blue",   "pink"};
static const char *const arrangement_names[TDMI_SYNTH_ARRANGEMENTS] = {"", "-pair", "-stack",
                                                                       "-trio"};

struct tdmi_synth_class tdmi_synth_class_of(int index)
{
    static const struct {
        int shape, texture, colour;
    } cells[BLOCK_CLASSES] = {{0, 0, -1}, {1, 0, -1}, {1, 1, 0}, {0, 1, -1}, {1, 1, 1}, {1, 1, 2}};
    int block = index / BLOCK_CLASSES;
    int cell = index % BLOCK_CLASSES;
    int shape_pair = block % SHAPE_PAIRS;
    int round = block / SHAPE_PAIRS;
    /* Every run of TEXTURE_PAIRS rounds gives each pair of silhouettes each pair of textures. */
    int texture_pair = (shape_pair + round) % TEXTURE_PAIRS;

    struct tdmi_synth_class class = {
        .shape = 2 * shape_pair + cells[cell].shape,
        .texture = 2 * texture_pair + cells[cell].texture,
        .arrangement = (enum tdmi_synth_arrangement)(round / TEXTURE_PAIRS),
        .scheme = TDMI_SYNTH_ANY_SCHEME,
    };
    /* Red, green and blue in even blocks, the colours between them in odd ones. */
    if (cells[cell].colour >= 0)
        class.scheme = 2 * cells[cell].colour + block % 2;
    return class;
}

void tdmi_synth_class_name(int index, char name[TDMI_SYNTH_NAME_BYTES])
{
    struct tdmi_synth_class class = tdmi_synth_class_of(index);
    const char *colour = class.scheme < 0 ? "" : scheme_names[class.scheme];
    snprintf(name, TDMI_SYNTH_NAME_BYTES, "%03d-%s%s%s-%s%s", index, colour, *colour ? "-" : "",
             tdmi_synth_texture_name(class.texture), tdmi_synth_shape_name(class.shape),
             arrangement_names[class.arrangement]);
}
