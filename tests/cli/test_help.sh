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

# has_all_options COMMAND FILE: does the file name each option of help --json? A flag may be --no-name.
has_all_options() {
    "$TANDEM" help "$1" --json >table.json
    python3 - "$2" <<'END'
import json, re, sys
table = json.load(open("table.json"))
text = open(sys.argv[1]).read()
names = [option["name"] for option in table["commands"][0]["options"] + table["options"]]
sys.exit(any(not re.search(r"^  (-., )?--(no-)?%s\b" % name, text, re.M) for name in names))
END
}

expect_exit 0 "$TANDEM" --help
cp "$out" list.txt
expect_exit 0 "$TANDEM"
expect_true "tandem alone shows the list, too" cmp -s "$out" list.txt
for command in $(sed -n 's/^X(\(.*\))$/\1/p' "$SOURCE/src/cli/commands.def"); do
    expect_true "the list and the page name $command" grep -q "^  $command " list.txt
    expect_true "the page describes $command" grep -qx "## $command" page.md
    expect_exit 0 "$TANDEM" "$command" --help
    expect_true "no line is wider than 80 columns" awk 'length > 80 { exit 1 }' "$out"
    expect_true "options of every command are among them" grep -Eq -- '--help-all, --version|--version$' "$out"
    expect_true "it is short" awk 'END { exit NR > 75 }' "$out"
    expect_true "it has two or three examples" \
        awk '/^Examples/ { on = 1; next } /^$/ { on = 0 } on && /^  [^ ]/ { n++ } END { exit n < 2 || n > 3 }' "$out"
    cp "$out" by_option.txt
    expect_exit 0 "$TANDEM" help "$command"
    expect_true "help $command prints the same" cmp -s "$out" by_option.txt
    expect_exit 0 "$TANDEM" "$command" --help-all
    expect_true "no line of all options is wider than 80 columns" awk 'length > 80 { exit 1 }' "$out"
    expect_true "every option of the table is among them" has_all_options "$command" "$out"
done
expect_exit 0 "$TANDEM" train --help
expect_stdout_matches "^'tandem train --help-all' shows all [0-9]+ options, by group.$"
expect_true "train has about a dozen common options" \
    awk '/^Common options/ { on = 1; next } /^$/ { on = 0 } on && /^  -/ { n++ } END { exit n < 10 || n > 16 }' "$out"

# ---- colours: on terminals alone ----
if command -v script >/dev/null; then
    seen() { # [NAME=VALUE…]: help on a terminal
        env "$@" script -qec "'$TANDEM' --help" /dev/null </dev/null >seen.txt 2>&1
        grep -q "$(printf '\033')" seen.txt
    }
    not_seen() {
        ! seen "$@"
    }
    expect_true "headings are bold on a terminal" seen -u NO_COLOR TERM=xterm
    expect_true "NO_COLOR is respected" not_seen NO_COLOR=1 TERM=xterm
    expect_true "an empty NO_COLOR forbids nothing" seen NO_COLOR= TERM=xterm
    expect_true "TERM=dumb is respected" not_seen -u NO_COLOR TERM=dumb
else
    skip "no script(1), which makes a terminal"
fi
env -u NO_COLOR TERM=xterm "$TANDEM" --help >piped.txt
expect_true "a file has no colours" sh -c "! grep -q '$(printf '\033')' piped.txt"

# ---- manual pages ----
for command in '' $(sed -n 's/^X(\(.*\))$/\1/p' "$SOURCE/src/cli/commands.def"); do
    "$TANDEM" help $command --man >page.1
    expect_true "the page of tandem $command has its name" grep -q "^\.TH tandem${command:+-$command} 1 " page.1
    if command -v groff >/dev/null; then
        groff -man -Tutf8 -ww page.1 >page.txt 2>warnings.txt
        expect_same '' "$(cat warnings.txt)" "groff has no warnings about tandem $command"
        expect_true "and shows examples or commands" grep -q "tandem.$command" page.txt
    else
        skip "no groff to read the page of tandem $command"
    fi
done
"$TANDEM" help train --man >page.1
if command -v man >/dev/null && command -v groff >/dev/null; then
    LC_ALL=C.UTF-8 man --warnings -l page.1 >page.txt 2>warnings.txt
    expect_same '' "$(cat warnings.txt)" "man has no warnings"
    expect_true "man shows an option with its help" grep -Eq -- '-o, --out RUN' page.txt
    groff -man -Tascii -ww page.1 >page.txt 2>warnings.txt
    expect_same '' "$(cat warnings.txt)" "nor has groff for a terminal of ASCII alone"
else
    skip "no man"
fi

expect_exit 2 "$TANDEM" help docter
expect_stderr_matches "did you mean 'tandem doctor'\?$"
expect_exit 2 "$TANDEM" help doctor too
expect_exit 0 "$TANDEM" --version
expect_stdout_is "$version"
expect_exit 0 "$TANDEM" doctor --version
expect_stdout_is "$version"
finish
