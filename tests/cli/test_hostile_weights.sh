# Weights that mean harm, in every form that is read: hostile_weights.py makes them and asks.
. "$SOURCE/tests/cli/lib.sh"
if python3 "$SOURCE/tests/cli/hostile_weights.py" "$TANDEM" "$SOURCE/tests/fixtures"; then
    pass "no file of weights did harm"
else
    fail "a file of weights did harm, or was not refused as it should be"
fi
finish
