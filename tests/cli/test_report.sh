# report as a user meets it: one page that needs nothing else and that no name can change.
. "$SOURCE/tests/cli/lib.sh"

expect_exit 0 "$TANDEM" synth pictures --classes 3 --per-class 20 --size 32 --seed 1 --quiet
for class in pictures/*; do
    mv "$class" 'pictures/<script>alert("1")&'
    break
done
set -- pictures --model lenet5 --batch 16 --split 0.6,0.4 --threads 1 --quiet
expect_exit 0 "$TANDEM" train "$@" --epochs 3 -o runs/a
expect_exit 0 "$TANDEM" train "$@" --epochs 2 -o "runs/<b>"
expect_exit 0 "$TANDEM" train "$@" --epochs 2 --seed 8 -o runs/other

# check_page FILE: tags are closed in order, nothing is fetched and nothing runs.
check_page() {
    python3 - "$1" <<'END'
import html.parser, sys
class Page(html.parser.HTMLParser):
    open_tags, seen = [], set()
    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        for key, value in attributes:
            assert key != "href" and not key.startswith("on"), (tag, key)
            assert key != "src" or value.startswith("data:image/jpeg;base64,/9j/"), (tag, value)
        if tag not in ("meta", "img", "br"):
            self.open_tags.append(tag)
    def handle_startendtag(self, tag, attributes):
        self.seen.add(tag)
    def handle_endtag(self, tag):
        assert self.open_tags.pop() == tag, (tag, self.getpos())
page = Page()
page.feed(open(sys.argv[1], encoding="utf-8").read())
assert not page.open_tags, page.open_tags
wanted = {"svg", "path", "circle", "rect", "table", "details"}
assert wanted <= page.seen, wanted - page.seen
assert not page.seen & {"script", "link", "iframe", "object"}, page.seen
END
}

# A training leaves its page behind, with pictures; a report by hand is the same.
expect_true "train writes the page" check_page runs/a/report.html
expect_true "it shows pictures" grep -q '<img ' runs/a/report.html
expect_true "the predictions are printed below" grep -q '<figcaption>' runs/a/report.html
cp runs/a/report.html trained.html
expect_exit 0 "$TANDEM" report runs/a --json
expect_true "and report writes the same" cmp trained.html runs/a/report.html
expect_json runs path
expect_same runs/a/report.html "$(json_value path)" "the page lies in the run"
expect_true "it is a whole page without scripts, whatever classes are called" check_page runs/a/report.html
expect_true "the name is there to be read" \
    grep -q '<td>&lt;script&gt;alert(&quot;1&quot;)&amp;</td>' runs/a/report.html
expect_true "automatic choices are written as words" \
    grep -q '<td>momentum</td><td>the optimizer&#39;s own</td>' runs/a/report.html
expect_true "and so are flags" grep -q '<td>balance</td><td>no</td>' runs/a/report.html
expect_true "a number that was chosen is shown" grep -q '<td>batch</td><td>16</td>' runs/a/report.html
expect_true "what rates came to is shown" grep -q '<td>momentum</td><td>0.9</td>' runs/a/report.html
expect_true "with what belongs to the schedule" grep -q '<td>cosine</td><td>floor 0</td>' runs/a/report.html
expect_true "a narrow page leaves room for sentences" grep -q 'td.why{min-width:14em}' runs/a/report.html
cp runs/a/report.html first.html
expect_exit 0 "$TANDEM" report runs/a
expect_true "the same run gives the same bytes" cmp first.html runs/a/report.html

expect_exit 0 "$TANDEM" report runs/a "runs/<b>" runs/other -o new/all.html
expect_true "several runs make one page, too" check_page new/all.html
expect_true "a run's name is escaped" grep -q '<h2>runs/&lt;b&gt;</h2>' new/all.html
expect_true "runs on the same images are compared" grep -q '<td>runs/&lt;b&gt;</td><td data-of="verdict"><b>[a-z ]*</b></td><td[^>]*>[+-][0-9.]* points' new/all.html
expect_true "those of others are not" grep -q '<td>runs/other</td><td[^>]*><b>not comparable</b></td><td colspan="5"></td>' new/all.html

expect_exit 0 "$TANDEM" report runs/a runs/other
expect_stdout_matches '^runs/a/comparison\.html: 2 runs; any browser shows it$'
expect_true "it compares them" grep -q '<td>runs/other</td>' runs/a/comparison.html
expect_true "and the first run keeps its own page" cmp first.html runs/a/report.html

# Sample pictures that are damaged, or another run's, are reported and not shown.
cp -r runs/a runs/damaged
cp "runs/<b>/samples.safetensors" runs/damaged/
expect_exit 0 "$TANDEM" report runs/damaged
expect_true "the page says why it has no pictures" grep -q 'sample images cannot be shown' runs/damaged/report.html
expect_true "it has none" sh -c '! grep -q "<img " runs/damaged/report.html'
expect_true "and is whole" check_page runs/damaged/report.html

# 26 classes: the worst 20 are drawn, all are in the table.
expect_exit 0 "$TANDEM" synth many --classes 26 --per-class 6 --size 32 --seed 1 --quiet
expect_exit 0 "$TANDEM" train many --model lenet5 --epochs 1 --split 0.6,0.4 --quiet -o runs/many
expect_exit 0 "$TANDEM" report runs/many
expect_true "a page of many classes is whole" check_page runs/many/report.html
expect_true "it has all of them" grep -q 'all 26 classes' runs/many/report.html
expect_true "what is drawn is named" grep -q 'Confusions of the 20 classes' runs/many/report.html

# A run that was killed before it was validated, and what is no run.
mkdir -p runs/young && echo '{"format_version":1,"status":"running"}' >runs/young/run.json
expect_exit 0 "$TANDEM" report runs/young
expect_true "a young run has a page" grep -q 'was not kept' runs/young/report.html
expect_exit 3 "$TANDEM" report pictures
expect_exit 2 "$TANDEM" report
finish
