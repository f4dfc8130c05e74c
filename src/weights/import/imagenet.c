/* Names of ImageNet's classes. */
#include "weights/import/internal.h"

static const char *const names[] = {
#define X(name) name,
#include "weights/import/imagenet.def"
#undef X
};

_Static_assert(sizeof names / sizeof names[0] == TDMI_IMAGENET_CLASSES, "a name for each class");

const char *const *tdmi_imagenet_classes(void)
{
    return names;
}
