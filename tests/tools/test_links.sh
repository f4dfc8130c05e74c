# Every relative link in the documents leads to a file.
. "$SOURCE/tests/cli/lib.sh"
cd "$SOURCE" || exit 1
n=0
for page in *.md docs/*.md docs/*/*.md src/*/README.md tests/*.md bench/*.md fuzz/*.md tools/*.md examples/*.md; do
    [ -e "$page" ] || continue
    for link in $(grep -o '](\([^)#]*\)' "$page" | sed 's/^](//' | grep -v '^[a-z]*:'); do
        n=$((n + 1))
        [ -e "$(dirname "$page")/$link" ] || fail "$page links to $link, which is not there"
    done
done
expect_true "there are links to check ($n)" test "$n" -gt 20
finish
