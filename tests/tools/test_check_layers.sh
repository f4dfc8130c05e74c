#!/bin/sh
# tools/check-layers finds what is planted, where it is planted, and lets correct trees pass.
. "$SOURCE/tests/cli/lib.sh"

# A tree of two rooms, a front and a public header, without a fault.
fresh_tree() {
    rm -rf tree
    mkdir -p tree/src/base tree/src/image/formats tree/src/cli/commands tree/include/tandem \
        tree/src/backend/ref
    echo 'int tdm_x(void);' >tree/include/tandem/x.h
    echo 'int tdmi_a(void);' >tree/src/base/a.h
    printf '#include "base/a.h"\nint tdmi_b(void);\n' >tree/src/image/b.h
    printf '#include "image/b.h"\n#include <jpeglib.h>\n#include <stdio.h>\n' >tree/src/image/formats/jpeg.c
    printf '#include "tandem/x.h"\n' >tree/src/cli/commands/cmd_doctor.c
    echo 'int tdmi_r(void);' >tree/src/backend/ref/ref.h
    printf 'X(doctor)\n' >tree/src/cli/commands.def
}

# planted FILE LINE SENTENCE: adds the line, expects FILE:N: … in the output and exit code 1.
planted() {
    fresh_tree
    mkdir -p "$(dirname "tree/$1")"
    echo "$2" >>"tree/$1"
    expect_exit 1 "$SOURCE/tools/check-layers" tree
    expect_stdout_matches "^$1:[0-9]+: $3"
}

fresh_tree
expect_exit 0 "$SOURCE/tools/check-layers" tree
expect_stdout_is ""

planted src/base/a.h '#include "image/b.h"' '.*of src/image, which stands above src/base'
planted src/base/c.c '#include "nowhere.h"' '.*neither beside this file'
planted src/base/c.c '#include <jpeglib.h>' '<jpeglib.h> is kept to other places'
planted src/base/c.c '#include <acme.h>' '<acme.h> is not in tools/outside-headers.txt'
planted src/base/c.c '#  include "base/a.c"' '.*only headers are included'
planted src/cli/commands/cmd_doctor.c '#include "image/b.h"' '.*public headers only'
planted src/image/c.c '#include "backend/ref/ref.h"' '.*is for its own files only'
planted include/tandem/x.h '#include "base/a.h"' 'a public header includes'
planted src/misc/c.c 'int x;' 'lies in no room'
planted src/base/a.h 'tdmi_unknown tdmi_c(void);' 'does not compile alone as c'
planted include/tandem/x.h 'int class(void);' 'does not compile alone as c\+\+'
planted src/cli/commands/cmd_train.c 'int x;' 'has no line in src/cli/commands.def'
planted src/cli/commands.def 'X(audit)' 'has 2 lines X\(\.\.\.\) for 1 files'
finish
