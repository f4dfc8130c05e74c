#!/bin/sh
# tools/check-style finds what is planted, where it is planted, and lets correct trees pass.
. "$SOURCE/tests/cli/lib.sh"

if ! clang-format-14 --version >"$out" 2>&1 && ! clang-format --version 2>&1 | grep -q 'version 14'; then
    skip "clang-format 14 is not here"
    finish
fi

fresh_tree() {
    rm -rf tree
    mkdir -p tree/src/base tree/src/cli tree/include/tandem
    cp "$SOURCE/.clang-format" tree/
    cat >tree/src/base/a.c <<'END'
/* A file without fault: it only talks about abort() and printf(), and says "exit(1)". */
#include <stdio.h>

int tdmi_a(char *text, size_t size)
{
    return snprintf(text, size, "abort() %d", 1); // exit(1)
}
END
}

planted() { # file line sentence
    fresh_tree
    mkdir -p "$(dirname "tree/$1")"
    [ -e "tree/$1" ] || echo '/* Owner of x. */' >"tree/$1"
    echo "$2" >>"tree/$1"
    expect_exit 1 "$SOURCE/tools/check-style" tree
    expect_stdout_matches "^$1:[0-9]+: $3"
}

fresh_tree
expect_exit 0 "$SOURCE/tools/check-style" tree
expect_stdout_is ""

planted src/base/a.c 'int b = exit(1);' 'exit\( does not belong here'
planted src/image/a.c 'void *b = malloc(1);' 'malloc\( does not belong here'
planted src/base/a.c 'int c = printf("x");' 'printf\( does not belong here'
planted src/base/a.c 'FILE *d = stderr;' 'stderr does not belong here'
planted src/base/a.c 'char *e = "\"" + getenv("A");' 'getenv\( does not belong here'
planted src/base/a.c '/* one */ int f = rand(); /* two */' 'rand\( does not belong here'
planted src/base/a.c '#if TDM_HAVE_JPEG' 'asks what the build found'
planted src/base/a.c '#include "tandem_features.h"' 'asks what the build found'
planted src/base/a.c '/* TODO: later */' 'a TODO needs the number'
planted src/base/a.c 'int  g;' 'layout differs'

planted src/base/a.c '/* A run that is gone on with. */' "'gone on with' is not plain: resume"
planted src/base/a.c 'static int a_run_that_thaws;' "'thaws_?' is not plain: unfreeze"
planted src/base/a.c '/* Of each image the label. */' "'/[*] Of' is not plain: a comment begins with"
printf '/*\n * What a file owns.\n */\n' >tree/src/base/a.c
expect_exit 1 "$SOURCE/tools/check-style" tree
expect_stdout_matches "^src/base/a.c:2: '/[*] What' is not plain"
planted docs/how-to/a.md 'A folder is wanted.' "'is wanted.?' is not plain: say what is required"
planted include/tandem/a.def 'X(card) /* an opened card */' "'card.?' is not plain: GPU"
planted tests/cli/test_a.sh '# answers are equal, to the bit' "'to the bit' is not plain"

# Option values and recorded words stay.
fresh_tree
mkdir tree/docs
echo '`--decode card`, `card` and "thaws_to" were there before.' >tree/docs/a.md
expect_exit 0 "$SOURCE/tools/check-style" tree

fresh_tree
printf '/* One. */\nstruct tdmi_part {\n    int x;\n};\n' >tree/src/base/b.h
printf '/* Two. */\nenum tdmi_part { TDMI_PART };\n' >tree/src/cli/c.h
expect_exit 1 "$SOURCE/tools/check-style" tree
expect_stdout_matches '^src/cli/c.h:2: tdmi_part is also defined at src/base/b.h:2'

fresh_tree
yes 'int x;' | head -n 600 >>tree/src/base/a.c
expect_exit 1 "$SOURCE/tools/check-style" tree
expect_stdout_matches '^src/base/a.c:601: is longer than 600 lines'

fresh_tree
echo 'int x;' >tree/src/base/b.c
expect_exit 1 "$SOURCE/tools/check-style" tree
expect_stdout_matches '^src/base/b.c:1: begins without a comment'

fresh_tree
printf '/* ok */\nint main(void)\n{\n    exit(0);\n}\n' >tree/src/cli/main.c
expect_exit 0 "$SOURCE/tools/check-style" tree

# Exported symbols, against a small library of our own.
fresh_tree
mkdir tree/build
printf '/* ok */\n#define TDM_API\nTDM_API int tdm_here(int a);\n/* TDM_API int tdm_not(void); */\nTDM_API const char *tdm_absent(void);\n' \
    >tree/include/tandem/x.h
printf 'int tdm_here(int a) { return a; }\nint tdm_secret;\n' >library.c
"${CC:-cc}" -shared -fPIC library.c -o tree/build/libtandem.so
expect_exit 1 "$SOURCE/tools/check-style" tree
expect_stdout_matches '^build/libtandem.so:0: exports tdm_secret'
expect_stdout_matches '^include/tandem/x.h:5: declares tdm_absent'
expect_same "$(grep -c . "$out")" 2 "nothing else is reported"
finish
