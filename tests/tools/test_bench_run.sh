# bench/run reads bench/rows.txt: the rows of this tree name what is there, and a table of the test's own is measured as
# it says.
. "$SOURCE/tests/cli/lib.sh"
command -v bash >/dev/null || {
    skip "no bash"
    finish
}

# ---- the rows of this tree -----------------------------------------------------------------

expect_exit 2 bash "$SOURCE/bench/run"
expect_stdout_matches '^usage: bench/run '
sed -n 's/^\[\([^]]*\)\].*/\1/p' "$SOURCE/bench/rows.txt" >names.txt
expect_true "there are rows" test -s names.txt
awk 'NR > 2 && NF > 1 { print $1 }' "$out" >listed.txt
expect_true "bench/run lists all rows" cmp -s names.txt listed.txt

# Scripts and programs that rows name are in the tree.
{
    grep -ohE '\$ROOT/bench/[a-zA-Z0-9_/.]+' "$SOURCE/bench/rows.txt" "$SOURCE/bench/rows.sh" | cut -d / -f 2-
    grep -oE 'script=[a-z_]+\.py' "$SOURCE/bench/rows.sh" | sed 's,script=,bench/peers/,'
    grep -ohE '\<(bench_|build |kernels )[a-z_]+' "$SOURCE/bench/rows.txt" | sed -E 's,^(bench_|build |kernels ),bench/programs/,; s/$/.c/'
} | sort -u >named.txt
expect_true "rows name files" test -s named.txt
while read -r name; do
    expect_true "$name is there" test -e "$SOURCE/$name"
done <named.txt

# ---- a table of the test's own -------------------------------------------------------------

mkdir -p tree/bench
cp "$SOURCE/bench/run" "$SOURCE/bench/pairs" "$SOURCE/bench/rows.sh" "$SOURCE/bench/quiet.sh" tree/bench/
cat >tree/bench/rows.txt <<'END'
# A comment, and a row whose values have several lines and brackets.
[several-lines]
title     = two lines
required  = at least 2
unit      = items/s
better    = higher
figure    = ^rate ([0-9]+) of \[x\]
prepare   = echo prepared >>"$LOG"
    echo 4 >number
before    = echo before >>"$LOG"
ours      = echo ours >>"$LOG"
    echo "rate $(cat number) of [x]"
    echo "    after"
ours_name = we
peer      = echo peer >>"$LOG"; echo "rate 2 of [x]"
peer_name = they

# A row of one line, then what it replaces.
[family] use = compute lenet5 train 8 28 torch 5 8
ours      = echo '"images_per_second": 3'
peer      = echo '"images_per_second": 6'
[alone]
title     = no peer, wall time
ours      = true
[lower]
figure    = ([0-9]+) ms
ours      = echo 2 ms
peer      = echo 6 ms
[no-figure]
figure    = ([0-9]+) ms
ours      = echo none
[failing]
ours      = echo broken; exit 3
[no-space]
prepare   = need_space 9000000000000000000
ours      = true
[builds]
title     = a row for two builds
figure    = rate ([0-9]+)
better    = higher
ours      = "$BUILD/tandem" --seconds 9
END
run() {
    LOG=$temp/log.txt bash "$temp/tree/bench/run" "$@"
}

expect_exit 0 run -n 2 -w 1 several-lines
expect_stdout_matches '^two lines .2 runs, items/s, higher is better.$'
expect_stdout_matches '^  we +4 +4 +4$'
expect_stdout_matches '^  they +2 +2 +2$'
expect_stdout_matches '^  times as good +2 +2 +2$'
{
    echo prepared
    for turn in 1 2 3; do printf 'before\nours\nbefore\npeer\n'; done
} >order.txt
expect_true "prepare runs once, before runs before each command" cmp -s order.txt log.txt
result=$temp/tree/bench/results/several-lines.json
expect_true "the JSON has the ratio" grep -q '"ratio": {"runs": \[2, 2\]' "$result"
expect_true "the JSON has the row's name" grep -q '^{"bench": "several-lines", "title": "two lines"' "$result"

expect_exit 0 run -n 1 -w 0 -o family.json family
expect_stdout_matches '^lenet5, train, batch 8, 28 px, two threads, f32, against PyTorch as installed .1 runs, images/s,'
expect_stdout_matches '^  times as good +0.5 '
expect_true "-o names the file" test -s family.json
expect_exit 0 run -n 1 -w 0 alone lower
expect_stdout_matches '^no peer, wall time .1 runs, seconds, lower is better.$'
expect_stdout_matches '^  times as good +3 +3 +3$'

expect_exit 0 run -q 100 -n 2 -w 0 lower
expect_stdout_matches ' .2 runs, 0 left out, '
expect_exit 1 run -q -1 -n 2 -w 0 lower
expect_stderr_matches "others took more than -1 % of the CPUs. time in 8 pairs"

expect_exit 1 run nowhere
expect_stderr_matches '^bench/run: there is no nowhere; there are:$'
expect_stderr_matches '^  several-lines +two lines$'
expect_exit 1 run no-figure
expect_stderr_matches 'no figure /.*/ in the output of: echo none'
expect_exit 1 run failing
expect_stderr_matches '^broken$'
expect_exit 1 run no-space
expect_stderr_matches 'no room for '

# ---- another build in place of the peer ----------------------------------------------------

mkdir -p tree/build old
printf '#!/bin/sh\necho "$2" >>"$LOG"\necho rate 4\n' >tree/build/tandem
printf '#!/bin/sh\necho rate "${RATE:-4}"\n' >old/tandem
chmod +x tree/build/tandem old/tandem
rm log.txt
# The status also follows from the row by CPU time, which is chance for a script of a millisecond.
run -b old -n 3 -w 0 -s 1 builds >same.txt 2>&1
expect_true "the row is named" grep -Eq '^builds: a row for two builds$' same.txt
expect_true "builds of the same speed do not differ" grep -Eq '^  figure +4 +4 +1.0000 +1.0000 to 1.0000$' same.txt
expect_same "1 1 1" "$(paste -sd' ' log.txt)" "-s replaces the seconds of commands"
RATE=5
export RATE
run -b old -n 3 -w 0 builds >slow.txt 2>&1
expect_true "a build that is slower by more than 2 % is found" \
    grep -Eq '^  figure +5 +4 +1.2500 +1.2500 to 1.2500  falls short$' slow.txt
expect_exit 1 run -b old -n 3 -w 0 builds
expect_true "both builds are still there" test -x tree/build/tandem -a -x old/tandem

# ---- mistakes in the table -----------------------------------------------------------------

printf '[one]\ntitel = x\n' >tree/bench/rows.txt
expect_exit 1 run one
expect_stderr_matches "rows.txt: one has the unknown setting 'titel'"
printf '[one]\nneither one thing\n' >tree/bench/rows.txt
expect_exit 1 run one
expect_stderr_matches "rows.txt: one has the line 'neither one thing'"
printf '[one]\nours = true\n[one]\nours = false\n' >tree/bench/rows.txt
expect_exit 1 run one
expect_stderr_matches 'rows.txt has two rows named one'
finish
