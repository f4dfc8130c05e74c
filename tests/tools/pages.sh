# Sourced behind lib.sh by the tests of tools/check-docs; without python3 it ends the test.
command -v python3 >/dev/null || {
    skip "no python3"
    finish
}
check() { # PAGE…
    python3 "$SOURCE/tools/check-docs" --program "$TANDEM" "$@"
}
if [ -n "${TANDEM_TEST_DATA:-}" ] && [ -d "$TANDEM_TEST_DATA/datasets/caltech101_10" ]; then
    export TANDEM_PHOTOS="$TANDEM_TEST_DATA/datasets/caltech101_10"
fi

check_pages() { # PAGE…: they show what the program prints
    missing=$("$TANDEM" doctor --no-measure --json | python3 -c '
import json, sys
on = {f["name"]: f["on"] for f in json.load(sys.stdin)["features"]}
print(*(name for name in ("jpeg", "arrow") if not on[name]))')
    if [ -n "$missing" ]; then
        skip "the pages: this build has no $missing"
    else
        expect_exit 0 check "$@"
        expect_stdout_matches '[0-9]* pages: [1-9][0-9]* commands as shown, [0-9]* blocks skipped, 0 different'
    fi
}
