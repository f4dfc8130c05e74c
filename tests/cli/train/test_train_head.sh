# The usual learning rate of a head on a frozen base follows how many pictures train; it is recorded,
# so that a resumed run has it, and a given rate stays the same.
. "$SOURCE/tests/cli/lib.sh"
export TANDEM_HOME="$temp/home"

rate() { # run: as it was recorded
    grep -o '"learning_rate": *[0-9.e-]*' "$1/run.json" | head -n 1 | sed 's/.*: *//'
}
of_pictures() { # run: what the rule says of as many pictures as were recorded
    n=$(grep -o '"train": *[0-9][0-9]*' "$1/run.json" | head -n 1 | sed 's/.*: *//')
    awk -v n="$n" 'BEGIN { printf("%.6g", n > 2000 ? 0.001 : n > 200 ? 2 / n : 0.01) }'
}
short() { # as many digits
    awk -v value="$1" 'BEGIN { printf "%.6g", value }'
}

"$TANDEM" synth pictures --classes 2 --per-class 160 --size 16 --quiet >/dev/null
"$TANDEM" synth more --classes 2 --per-class 80 --size 16 --seed 9 --quiet >/dev/null
"$TANDEM" train pictures -o base --model lenet5 --epochs 1 --quiet >/dev/null
options="--weights base --freeze base --split 0.8,0.2"

expect_exit 0 "$TANDEM" train pictures -o many $options --epochs 2
expect_same "$(of_pictures many)" "$(short "$(rate many)")" "many pictures, a smaller rate"
expect_true "which is less than that of a few" awk -v rate="$(rate many)" 'BEGIN { exit !(rate < 0.0095) }'
expect_stderr_matches 'sgd, learning rate 0.00[0-9]*, for a head on 2[0-9][0-9] images$'
expect_exit 0 "$TANDEM" train pictures -o few $options --epochs 1 --fraction 0.3
expect_same 0.01 "$(short "$(rate few)")" "a few, the whole"
expect_exit 0 "$TANDEM" train pictures -o given $options --epochs 1 --lr 0.01
expect_same 0.01 "$(short "$(rate given)")" "a rate that is given stays"
expect_true "and is reported without a reason" sh -c '! grep -q "for a head on" "$1"' - "$err"
expect_exit 0 "$TANDEM" train pictures -o adam $options --epochs 1 --optimizer adam
expect_same 0.001 "$(short "$(rate adam)")" "an optimiser with a rate of its own has that"
expect_exit 0 "$TANDEM" train pictures -o whole --weights base --freeze none --epochs 1
expect_true "known layers know nothing of it" sh -c '! grep -q "for a head on" "$1"' - "$err"

before=$(rate many)
expect_exit 0 "$TANDEM" train pictures -o many $options --epochs 3 --resume
expect_same "$before" "$(rate many)" "a resumed run keeps it"
for class in more/*; do
    for file in "$class"/*; do
        cp "$file" "pictures/$(basename "$class")/more-$(basename "$file")"
    done
done
expect_exit 0 "$TANDEM" train pictures -o more-of-them $options --epochs 1
expect_true "a new one takes less" awk -v new="$(rate more-of-them)" -v old="$before" 'BEGIN { exit !(new < old) }'
finish
