# Every page of help, as a user without a terminal sees it, against tests/cli/help/*.txt.
# After a change on purpose: REFRESH=1 tests/run --match help build cli
. "$SOURCE/tests/cli/lib.sh"
pages=$SOURCE/tests/cli/help
version=$("$TANDEM" --version)

expect_page() { # name command…
    page=$1
    shift
    expect_exit 0 "$@"
    sed "s/^$version/tandem VERSION/" "$out" >page.txt
    if [ -n "${REFRESH:-}" ]; then
        cp page.txt "$pages/$page.txt"
    fi
    if diff "$pages/$page.txt" page.txt >difference.txt; then
        pass "help of $page is as expected"
    else
        fail "help of $page differs"
        sed 's/^/#   /' difference.txt
    fi
    expect_true "no line of it is wider than 80 columns" awk 'length > 80 { exit 1 }' page.txt
}

expect_page tandem "$TANDEM" --help
for command in $(sed -n 's/^X(\(.*\))$/\1/p' "$SOURCE/src/cli/commands.def"); do
    expect_page "$command" "$TANDEM" "$command" --help
    cp "$out" by_option.txt
    expect_exit 0 "$TANDEM" help "$command"
    expect_true "help $command says the same" cmp -s "$out" by_option.txt
done
expect_exit 0 "$TANDEM"
expect_true "tandem alone shows the list, too" grep -q '^Usage: tandem COMMAND' "$out"
expect_exit 2 "$TANDEM" help docter
expect_stderr_matches "did you mean 'tandem doctor'\?$"
expect_exit 2 "$TANDEM" help doctor too
expect_exit 0 "$TANDEM" --version
expect_stdout_is "$version"
expect_exit 0 "$TANDEM" doctor --version
expect_stdout_is "$version"
finish
