#!/bin/sh
# tests/run counts cases rightly and takes a crash, a hang, silence and a failure for failures.
. "$SOURCE/tests/cli/lib.sh"

mkdir -p build/tests
program() { # name body…
    printf '#!/bin/sh\n%s\n' "$2" >"build/$1"
    chmod +x "build/$1"
    echo "unit x/$1 $temp/build/$1" >>build/tests/programs.txt
}
run() {
    "$SOURCE/tests/run" "$@" build unit
}

program good 'echo "1..3"; echo "ok 1 - a"; echo "ok 2 - b"; echo "not ok 3 # SKIP c"'
expect_exit 0 run
expect_stdout_matches '^2 passed, 0 failed, 1 skipped$'
expect_stdout_matches 'skip - c'

program bad 'echo "ok 1 - a"; echo "not ok 2 - b"; exit 1'
expect_exit 1 run
expect_stdout_matches '^3 passed, 1 failed, 1 skipped$'
expect_stdout_matches 'not ok 2 - b'

# A failure is shown, however much is said after it.
program long 'echo "ok 1 - a"; echo "not ok 2 - early"; echo "# why"; i=3
    while [ $i -le 200 ]; do echo "ok $i - x"; i=$((i + 1)); done; exit 1'
expect_exit 1 run --match long
expect_stdout_matches 'not ok 2 - early'
expect_stdout_matches '# why'
expect_true "and nothing that passed before the end" sh -c "! grep -q 'ok 100 - x' '$out'"
sed -i '/ x\/long /d' build/tests/programs.txt

# A program that is built meanwhile is reported.
echo before >build/tandem
program builds "echo 'ok 1 - a'; echo after >'$temp/build/tandem'"
expect_exit 0 run --match builds
expect_stdout_matches 'was built while tests ran'
expect_exit 0 run --match good
expect_true "else nothing is said of it" sh -c "! grep -q 'was built' '$out'"
sed -i '/ x\/builds /d' build/tests/programs.txt
rm build/tandem

program dead 'echo "ok 1 - a"; kill -SEGV $$'
program silent 'exit 0'
program slow 'sleep 30'
expect_exit 1 run --limit 1
expect_stdout_matches '^4 passed, 4 failed, 1 skipped$'
expect_stdout_matches 'x/dead ended with exit code 139'
expect_stdout_matches 'x/silent reported no test case'
expect_stdout_matches 'x/slow did not end within 1 s'

expect_exit 0 run --match good --results "$temp/sums"
expect_same "$(cat sums)" "2 0 1" "the sums are handed on"
finish
