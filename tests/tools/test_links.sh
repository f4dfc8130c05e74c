# Every relative link in the documents leads to a file, and links lead from README.md to every page of docs.
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

reached=" README.md "
next=README.md
while [ -n "$next" ]; do
    pages=$next
    next=
    for page in $pages; do
        for link in $(grep -o '](\([^)#]*\.md\)' "$page" | sed 's/^](//' | grep -v '^[a-z]*:'); do
            link=$(realpath -m --relative-to=. "$(dirname "$page")/$link")
            case "$reached" in *" $link "*) continue ;; esac
            [ -e "$link" ] || continue
            reached="$reached$link "
            next="$next $link"
        done
    done
done
for page in docs/*.md docs/*/*.md; do
    case "$reached" in *" $page "*) ;; *) fail "no link leads to $page" ;; esac
done
expect_true "links lead to the pages" test "$(echo "$reached" | wc -w)" -gt 20
finish
