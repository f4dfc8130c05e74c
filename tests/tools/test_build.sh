# tools/build shows how far a build is, and warnings and errors as they are; the log has every line.
. "$SOURCE/tests/cli/lib.sh"

mkdir -p tools bin
cp "$SOURCE/tools/build" tools/build
cat >bin/cmake <<'END'
#!/bin/sh
# Configures nothing, and builds four files with a warning in between.
case $1 in
--preset)
    mkdir -p build
    echo "CMAKE_GENERATOR:INTERNAL=$4" >build/CMakeCache.txt
    touch build/build.ninja
    ;;
--build)
    echo "cmake $*" >>calls.txt
    echo "Consolidate compiler generated dependencies of target tandem"
    echo "[  5%] Building C object CMakeFiles/tandem_objects.dir/src/base/arena.c.o"
    echo "[ 48%] Building C object CMakeFiles/tandem_objects.dir/src/base/clock.c.o"
    echo "src/base/clock.c:3:1: warning: 100% strange %s"
    echo "[ 51%] Building C object CMakeFiles/tandem_objects.dir/src/base/log.c.o"
    echo "[100%] Built target product"
    exit "${FAKE_STATUS:-0}"
    ;;
esac
END
printf '#!/bin/sh\n' >bin/ninja
chmod +x bin/cmake bin/ninja
PATH=$temp/bin:$PATH
export PATH

expect_exit 0 tools/build release product
expect_true "the target is built" grep -q -- '--target product' calls.txt
expect_same "configuring build
48 % of build is built
src/base/clock.c:3:1: warning: 100% strange %s
51 % of build is built
100 % of build is built" "$(cat "$err")" "a line in every tenth, and the warning as it is"
expect_stdout_is 'built build'
expect_same 6 "$(wc -l <build/build.log | tr -d ' ')" "the log has every line"
expect_true "by Ninja, where it is" grep -q '=Ninja$' build/CMakeCache.txt
expect_exit 0 tools/build release
expect_true "without a target, all is built" grep -q -- '--target all' calls.txt
mkdir -p .deps
echo 'CMAKE_GENERATOR:INTERNAL=Unix Makefiles' >build/CMakeCache.txt
touch -d 'next minute' .deps/stamp
expect_exit 0 tools/build release
expect_true "a folder stays with the one that it was made for" grep -q '=Unix Makefiles$' build/CMakeCache.txt
rm .deps/stamp
FAKE_STATUS=2
export FAKE_STATUS
expect_exit 1 tools/build release product
expect_stdout_is ''
if command -v script >/dev/null; then
    TERM=xterm script -qec 'tools/build release product' /dev/null </dev/null >seen.txt 2>&1 || true
    expect_true "a terminal has one line, which moves on" grep -q "$(printf '\r\033\\[K 51 %% src/base/log.c\r')" seen.txt
    expect_true "and a warning stays" grep -q 'clock.c:3:1: warning: 100% strange %s' seen.txt
else
    skip "no script(1), which makes a terminal"
fi
finish
