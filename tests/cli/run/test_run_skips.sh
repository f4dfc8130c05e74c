# What several ranks skip, leave out and fail at is reported by rank 0, as one process reports it.
. "$SOURCE/tests/cli/lib.sh"
export TANDEM_HOME="$temp/home"

"$TANDEM" synth pictures --classes 3 --per-class 40 --size 40 --quiet >/dev/null
# Files that can be read but not decoded, all over the classes; links that lead nowhere.
n=0
for file in $(find pictures -name '*.jpg' | sort); do
    n=$((n + 1))
    case $((n % 9)) in
    4) echo "no picture $n" >"$file" ;;
    7) ln -sf nowhere "$file" ;;
    esac
done

notes() { # run: the notes about skipped images, in their order
    grep -o '"text":"\(skipped\|[0-9]* images could not\).*"' "$1/metrics.jsonl"
}
warnings() { # of images that are left out, in their order
    grep -o 'left out: .*' "$err"
}
same() { # words options…
    words=$1
    shift
    rm -rf one home
    expect_exit 0 "$TANDEM" train pictures -o one --patience 0 --json "$@"
    skipped=$(json_value skipped) left_out=$(warnings)
    expect_true "$words: one process skips some ($skipped)" test -n "$(notes one)" -a "$skipped" -gt 13
    expect_true "$words: and leaves some out" test -n "$left_out"
    for number in 2 3; do
        rm -rf several home
        expect_exit 0 "$TANDEM" run -n $number --json -- train pictures -o several --patience 0 "$@"
        expect_same "$skipped" "$(json_value skipped)" "$words: $number ranks skip as many"
        expect_same "$(notes one)" "$(notes several)" "$words: $number ranks name the same, each once, in the same order"
        expect_same "$left_out" "$(warnings)" "$words: and leave out the same"
        expect_same "" "$(grep '^\[[0-9]*\].*\(skipped\|left out\)' "$err")" "$words: no other rank says it again"
    done
}
same "from scratch, a test part" --model lenet5 --epochs 2 --batch 24 --split 0.6,0.2,0.2
same "stopped within the first epoch" --model lenet5 --steps 2 --batch 24 --split 0.7,0.3
"$TANDEM" synth others --classes 2 --per-class 20 --size 40 --seed 9 --quiet >/dev/null
"$TANDEM" train others -o base --model convnet7 --size 32 --epochs 1 --quiet >/dev/null
same "a head on stored features" --weights base --freeze base --epochs 2 --batch 24

expect_exit 3 "$TANDEM" run -n 2 -- train pictures -o strict --model lenet5 --strict
expect_stderr_matches 'images of pictures cannot be read, and --strict is on: .*; and [1-9][0-9]* more'

# ---- a rank without memory -----------------------------------------------------------------

if is_sanitized; then
    skip "a sanitizer takes all addresses for itself"
    finish
fi
# Of two ranks, number 1 gets fewer and fewer addresses.
pair() { # KiB for rank 1
    export TANDEM_WORLD=2 TANDEM_ADDRESS=127.0.0.1:$((20000 + $$ % 10000 + n_pairs)) TANDEM_TOKEN=secret
    export TANDEM_DEADLINE=20
    n_pairs=$((n_pairs + 1))
    set -- "$1" train others --model convnet7 --size 96 --epochs 1 --batch 32 --quiet --threads 1
    rm -rf pair
    TANDEM_RANK=0 "$TANDEM" "$2" "$3" -o pair $(shift 3; echo "$@") >"$out" 2>"$err" </dev/null &
    first=$!
    (
        ulimit -c 0
        ulimit -v "$1"
        shift
        TANDEM_RANK=1 exec "$TANDEM" "$1" "$2" -o pair $(shift 2; echo "$@")
    ) >second.out 2>second.err </dev/null
    second_status=$?
    first_status=0
    wait $first || first_status=$?
    last_command="two ranks, number 1 with $limit KiB of addresses"
}
n_pairs=0 n_named=0 n_well=0 n_wrong=0
limit=20000
while ! (ulimit -c 0; ulimit -v $limit; exec "$TANDEM" --version) >"$out" 2>&1; do
    limit=$((limit + 1000))
done
floor=$limit
for more in 60 80 100 120 140 170 200 250; do
    limit=$((floor + 1024 * more))
    pair $limit
    if [ $first_status = 0 ] && [ $second_status = 0 ]; then
        n_well=$((n_well + 1))
    elif [ $first_status = 4 ] && [ $second_status = 4 ] && grep -q 'rank 1' "$err" && grep -qi 'memory' "$err"; then
        n_named=$((n_named + 1))
    else
        n_wrong=$((n_wrong + 1))
        fail "exit $first_status and $second_status: $last_command"
        show_output
        sed 's/^/#   [1] /' second.err
    fi
done
unset TANDEM_WORLD TANDEM_ADDRESS TANDEM_TOKEN TANDEM_DEADLINE
expect_true "a rank without memory ends both, by its name ($n_named times; $n_well ended well)" \
    test $n_named -gt 0 -a $n_wrong = 0
finish

# Of two validation images rank 0 evaluates the first, which cannot be decoded: the other serves the self-test.
"$TANDEM" synth few --classes 2 --per-class 12 --size 40 --quiet >/dev/null
python3 - <<'END_OF_PYTHON'
import glob
rows = [(path, path.split("/")[1], "train") for path in sorted(glob.glob("few/*/*"))]
with open("cut.jpg", "wb") as out:
    out.write(open(rows[0][0], "rb").read()[:300])
rows[-1] = rows[-1][:2] + ("val",)
rows.insert(0, ("cut.jpg", rows[0][1], "val"))
with open("few.csv", "w") as out:
    out.write("path,label,split\n" + "".join(",".join(row) + "\n" for row in rows))
END_OF_PYTHON
expect_exit 0 "$TANDEM" train few.csv -o alone --model lenet5 --epochs 1 --quiet
expect_exit 0 "$TANDEM" run -n 2 -- train few.csv -o both --model lenet5 --epochs 1 --quiet
expect_true "the self-test has the same image" cmp alone/best.safetensors both/best.safetensors
