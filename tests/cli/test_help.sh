# Help of every command: the generated page, its width, and the ways to ask for it.
. "$SOURCE/tests/cli/lib.sh"
version=$("$TANDEM" --version)

"$SOURCE/tools/option-page" "$TANDEM" >page.md
if diff "$SOURCE/docs/reference/options.md" page.md >difference.txt; then
    pass "docs/reference/options.md is what tools/option-page prints"
else
    fail "docs/reference/options.md is not current: tools/option-page >docs/reference/options.md"
    sed 's/^/#   /' difference.txt
fi

expect_exit 0 "$TANDEM" --help
cp "$out" list.txt
expect_exit 0 "$TANDEM"
expect_true "tandem alone shows the list, too" cmp -s "$out" list.txt
for command in $(sed -n 's/^X(\(.*\))$/\1/p' "$SOURCE/src/cli/commands.def"); do
    expect_true "the list and the page name $command" grep -q "^  $command " list.txt
    expect_true "the page describes $command" grep -qx "## $command" page.md
    expect_exit 0 "$TANDEM" "$command" --help
    expect_true "no line is wider than 80 columns" awk 'length > 80 { exit 1 }' "$out"
    expect_true "options of every command are among them" grep -q '^  --version ' "$out"
    cp "$out" by_option.txt
    expect_exit 0 "$TANDEM" help "$command"
    expect_true "help $command prints the same" cmp -s "$out" by_option.txt
done
expect_exit 2 "$TANDEM" help docter
expect_stderr_matches "did you mean 'tandem doctor'\?$"
expect_exit 2 "$TANDEM" help doctor too
expect_exit 0 "$TANDEM" --version
expect_stdout_is "$version"
expect_exit 0 "$TANDEM" doctor --version
expect_stdout_is "$version"
finish
