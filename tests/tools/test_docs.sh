# The pages for users show what the program prints today (how-to pages: test_how_to.sh); and tools/check-docs
# notices a page that does not.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/tools/pages.sh"

check_pages "$SOURCE/README.md" "$SOURCE"/docs/ten-minutes.md "$SOURCE"/docs/tutorial.md \
    "$SOURCE"/docs/reference/phrasebook.md

# ---- a page, true and wrong ----------------------------------------------------------------------
cat >true.md <<'END'
Text with `$ code` in it.

<!-- check: setup
echo one >hidden
-->

```console
$ cat hidden && echo "2.5 s, 31 images/s, 4 rows"
one
0.1 s, 7 images/s, 4 rows
$ seq 5
1
…
5
$ echo "at /tmp/x1: ok"
at …: ok
```

<!-- check: numbers vary -->
```console
$ echo "epoch 1  0.25 ###  1 min 20 s"
epoch 3    0.5 #       9.5 s  best
```

<!-- check: exit 3 -->
```sh
cd / && (exit 3)
```

```console
$ pwd
/
```

<!-- check: needs TANDEM_NOT_THERE -->
```sh
exit 1
```

<!-- check: skip needs a printer -->
```sh
exit 1
```

```python
not run
```
END
unset TANDEM_NOT_THERE
expect_exit 0 check true.md
expect_stdout_matches 'true.md:37: skipped: TANDEM_NOT_THERE is not set'
expect_stdout_matches 'true.md:42: skipped: needs a printer'
expect_stdout_matches '^1 pages: 6 commands as shown, 2 blocks skipped, 0 different'
expect_exit 1 check --exact true.md
expect_stdout_matches 'true.md:22: .*prints something else'

wrong() { # LINE SED-SCRIPT: the page with one thing changed differs at that line
    sed "$2" true.md >wrong.md
    cmp -s true.md wrong.md && fail "'$2' changes nothing"
    expect_exit 1 check wrong.md
    expect_stdout_matches "wrong.md:$1: "
}
wrong 9 's/^one$/two/'                  # another word
wrong 10 's/4 rows$/5 rows/'            # a number that is no time
wrong 14 's/^5$/6/'                     # behind what is left out
wrong 11 's/^\$ seq 5$/$ seq 5; false/' # a failure
wrong 22 's/^epoch 3/step 3/'           # only numbers vary
wrong 27 's/exit 3)/exit 4)/'           # another failure than the page says
sed '/^5$/d' true.md >wrong.md          # a line more than the page shows, and the rest is still checked
expect_exit 0 check wrong.md
sed '/^…$/d' true.md >wrong.md
expect_exit 1 check wrong.md
expect_stdout_matches 'wrong.md:13: .*prints something else'
expect_stdout_matches '^1 pages: 5 commands as shown, 2 blocks skipped, 1 different'

# ---- a table of commands ---------------------------------------------------------------------------
cat >table.md <<'END'
<!-- check: table test {} = 40 -o -->
| there | here |
|---|---|
| `nothing` | `-n one`, `true` |
| lacking | text and `(exit 4)` |
END
expect_exit 0 check table.md
expect_stdout_matches '^1 pages: 3 commands as shown, 0 blocks skipped, 0 different'
sed 's/-n one/-z one/' table.md >wrong.md # still right by the number of its line
expect_exit 0 check wrong.md
sed 's/= 40/= 41/; s/-n one/-z one/' table.md >wrong.md
expect_exit 1 check wrong.md
expect_stdout_matches 'wrong.md:4: exit status 1 instead of 0: test 40 = 41 -o -z one'
sed 's/exit 4/exit 3/' table.md >wrong.md
expect_exit 1 check wrong.md
expect_stdout_matches 'wrong.md:5: exit status 3 instead of 0'

# ---- folders that are kept -------------------------------------------------------------------------
expect_exit 0 check --keep kept true.md
expect_same one "$(cat kept/true/hidden)" "a page's folder is kept"

# ---- a page brought up to date -------------------------------------------------------------------
cat >old.md <<'END'
```console
$ printf 'one\ntwo\nthree and more\nfour\nfive in 2 s\nsix\n'
one
…
three and less
five in 7 s
```
END
expect_exit 1 check --update old.md
cat >new.md <<'END'
```console
$ printf 'one\ntwo\nthree and more\nfour\nfive in 2 s\nsix\n'
one
…
three and more
four
five in 7 s
six
```
END
expect_exit 0 diff old.md new.md
expect_exit 0 check old.md

# ---- what cannot be checked -----------------------------------------------------------------------
printf '<!-- check: need TANDEM_PHOTOS -->\n```sh\ntrue\n```\n' >wrong.md
expect_exit 2 check wrong.md
expect_stderr_matches "wrong.md:1: unknown marker 'need TANDEM_PHOTOS'"
printf '```console\ntrue\n```\n' >wrong.md
expect_exit 2 check wrong.md
expect_stderr_matches "wrong.md:2: a console block begins with"
printf '```sh\ntrue\n' >wrong.md
expect_exit 2 check wrong.md
expect_stderr_matches "wrong.md:1: the block has no end"
finish
