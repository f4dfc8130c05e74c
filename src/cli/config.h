/*
 * The config file: a small part of TOML.
 *
 *     # comment
 *     seed = 7                 # top level: for every command that has the option
 *     [train]                  # for one command
 *     epochs = 20
 *     split  = [0.9, 0.1]      # or "0.9,0.1"
 *     model  = "lenet5"        # "…" with \" \\ \t \n \r, or '…' as it stands
 *     resume = true
 *
 * The reader knows nothing of commands or options: it hands out entries in file order.
 */
#pragma once

#include "tandem/error.h"
#include <stddef.h>

struct tdmi_config_entry {
    const char *section; /* "" at top level */
    const char *key;     /* NULL: the section itself begins here */
    const char *value;   /* unquoted; of a list what stands between the brackets */
    int line;
};

struct tdmi_config_visitor {
    void *self;
    /* The texts live in the buffer given to tdmi_config_read. */
    tdm_status (*entry)(void *self, const struct tdmi_config_entry *entry, tdm_error *err);
};

/* text is changed in place (values are unquoted and terminated there) and must hold one byte more
 * than length. name is what messages call the file. TDM_E_INPUT with the line for what is no
 * config text; what the visitor returns otherwise. */
tdm_status tdmi_config_read(char *text, size_t length, const char *name,
                            struct tdmi_config_visitor visitor, tdm_error *err) TDM_MUST_USE;
