/*
 * The markers of a JPEG file that stand before its coded data, in libjpeg's order.
 */
#ifndef TANDEM_IMAGE_JPEG_WRITE_HEAD_H
#define TANDEM_IMAGE_JPEG_WRITE_HEAD_H

#include "base/text/text.h"
#include "image/jpeg_encode/tables.h"

struct tdmi_jpeg_head {
    int width, height;
    int sampling; /* blocks of luma in an MCU, across and down: 1 or 2; the others have one */
    int interval; /* MCUs from one restart to the next; 0: no restarts */
    const struct tdmi_jpeg_divisors *divisors; /* by set */
};

void tdmi_jpeg_head_write(const struct tdmi_jpeg_head *head, tdmi_text *out);

#endif
