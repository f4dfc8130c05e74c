# Parquet files with damaged pages: few lost rows are skipped, a file without most of its rows is an error.
. "$SOURCE/tests/cli/lib.sh"

fixtures=$SOURCE/tests/fixtures/parquet
cp "$fixtures/most_rows_damaged.parquet" most.parquet
cp "$fixtures/some_rows_damaged.parquet" some.parquet
refusal="more than half of the 12 rows of 'most\.parquet' cannot be used"
training="--model lenet5 --epochs 1 --split 0.6,0.4"

expect_exit 3 "$TANDEM" audit most.parquet --quarantine most.jsonl
expect_stdout_matches '^The 7 bad files are listed in most\.jsonl'
expect_stderr_matches "$refusal \(.*checksum"
expect_exit 3 "$TANDEM" audit most.parquet --json
expect_same 7 "$(json_value bad)" "the report is whole"
expect_same 1 "$(json_value refusal | grep -c 'more than half')" "and says what is refused"
expect_exit 0 "$TANDEM" audit some.parquet --json
expect_same 5 "$(json_value bad)" "fewer bad rows are reported"

for rows in most some; do
    expected=$([ $rows = most ] && echo 3 || echo 0)
    expect_exit "$expected" "$TANDEM" train $rows.parquet $training -o $rows-run
    [ $rows = some ] || expect_stderr_matches "$refusal"
    expect_exit "$expected" "$TANDEM" prepare $rows.parquet --size 8 -o $rows-table
    [ $rows = some ] || expect_stderr_matches "$refusal"
    expect_exit "$expected" "$TANDEM" bench loader $rows.parquet --seconds 0.5
    [ $rows = some ] || expect_stderr_matches "$refusal \(most\.parquet#[0-6]: "
done
expect_exit 0 "$TANDEM" train most.parquet $training --quarantine most.jsonl -o left
expect_exit 3 "$TANDEM" evaluate some-run most.parquet
expect_stderr_matches "$refusal"
expect_exit 0 "$TANDEM" evaluate some-run some.parquet --json
expect_same 5 "$(json_value skipped)" "rows that are lost are counted"
finish
