# bench/ladder says in a sentence what it lacks, and what it measures can be seen to be ours.
. "$SOURCE/tests/cli/lib.sh"
command -v python3 >/dev/null || { skip "python3 is not there"; finish; }
unset TANDEM_TEST_DATA

expect_exit 2 python3 "$SOURCE/bench/ladder" --tandem "$BUILD/tandem" fashion
expect_stderr_matches "error: --data DIR .or TANDEM_TEST_DATA. is required"
expect_exit 2 python3 "$SOURCE/bench/ladder" --data . --tandem ./none fashion
expect_stderr_matches "./none is not built"
mkdir empty
expect_exit 3 python3 "$SOURCE/bench/ladder" --data empty --work work --out results --tandem "$BUILD/tandem" fashion
expect_stderr_matches "bench/ladder fashion: empty/datasets/fashion-mnist-idx is not there"
finish
