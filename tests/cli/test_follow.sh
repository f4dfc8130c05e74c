# Lists and Delta tables that name what lies elsewhere: refused by name, read with --follow.
. "$SOURCE/tests/cli/lib.sh"
export TANDEM_HOME=$temp/home
options="--model lenet5 --epochs 1 --batch 8"

"$TANDEM" synth pictures --classes 2 --per-class 12 --size 48 --format ppm --quiet >/dev/null
first=$(ls pictures | head -1)
second=$(ls pictures | sed -n 2p)
mkdir lists
{
    echo path,label
    for i in 0 1 2 3 4 5 6 7 8 9; do
        echo "../pictures/$first/00000$i.ppm,$first"
        echo "$PWD/pictures/$second/00000$i.ppm,$second"
    done
} >lists/near.csv
{
    cat lists/near.csv
    echo "http://127.0.0.1:9/a.ppm,$first"
} >lists/far.csv

# Every command that takes SRC, in two forms: without --follow and with it.
each_command() { # source run pattern
    for call in "audit $1" "train $1 -o new $options" "prepare $1 -o table-of-new" "evaluate $2 $1" \
        "bench loader $1 --seconds 0.5s"; do
        expect_exit 3 "$TANDEM" $call
        expect_stderr_matches "$3"
        expect_exit 0 "$TANDEM" $call --follow --json
    done
    expect_exit 0 "$TANDEM" train "$1" -o new --resume --json
    expect_same True "$(json_value options.follow)" "the run remembers --follow"
    expect_exit 3 "$TANDEM" train "$1" -o new --resume --epochs 2 --no-follow
    expect_stderr_matches "$3"
    expect_exit 0 "$TANDEM" train "$1" -o new --resume --epochs 2
    expect_stdout_matches "^then: tandem evaluate new $1 --follow --part val "
    expect_exit 3 "$TANDEM" train "$1" -o other $options
    expect_true "no run is left of $1" test ! -e other
    rm -rf new table-of-new
}

expect_exit 0 "$TANDEM" train lists/near.csv -o run $options --json
expect_same False "$(json_value options.follow)" "absolute paths and .. of this machine are what lists are for"
each_command lists/far.csv run \
    "line 22 of 'lists/far.csv' names 'http://127.0.0.1:9/a.ppm', and the list itself lies on this machine: --follow"
expect_exit 0 "$TANDEM" audit lists/far.csv --follow --json
expect_same 1 "$(json_value bad)" "what is not to be had is one bad picture"
expect_exit 0 env TANDEM_FOLLOW=true "$TANDEM" audit lists/far.csv

if ! "$TANDEM" prepare pictures -o table --quiet >"$out" 2>"$err"; then
    skip "this build writes no Delta tables"
    finish
fi
mkdir -p far/_delta_log linked
sed 's|"path":"part|"path":"%2E%2E/table/part|' table/_delta_log/00000000000000000000.json \
    >far/_delta_log/00000000000000000000.json
each_command far run "the log of 'far' names '../table/part-.*' by a path with '..': --follow reads it"
cp -r far/_delta_log linked
sed "s|\"path\":\"part|\"path\":\"file://$PWD/table/part|" table/_delta_log/00000000000000000000.json \
    >linked/_delta_log/00000000000000000000.json
expect_exit 3 "$TANDEM" audit linked
expect_stderr_matches "the log of 'linked' names '$PWD/table/part-.*' by an absolute path"
sed 's|"path":"part|"path":"way/part|' table/_delta_log/00000000000000000000.json \
    >linked/_delta_log/00000000000000000000.json
ln -s ../table linked/way
expect_exit 3 "$TANDEM" audit linked
expect_stderr_matches "the log of 'linked' names 'way/part-.*' through a link that leaves the table's folder"
expect_exit 0 "$TANDEM" audit linked --follow
sed 's|"path":"part|"path":"s3://bucket/part|' table/_delta_log/00000000000000000000.json \
    >linked/_delta_log/00000000000000000000.json
expect_exit 3 "$TANDEM" audit linked
expect_stderr_matches "names 's3://bucket/part-.*', which is remote, and the table lies on this machine: --follow"
finish
