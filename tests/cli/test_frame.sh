# What every command shares: unknown names, ranges, precedence, --json, broken outputs, signals.
. "$SOURCE/tests/cli/lib.sh"

# ---- names ---------------------------------------------------------------------------------
expect_exit 2 "$TANDEM" docter
expect_stderr_matches "^tandem: there is no command 'docter'; did you mean 'tandem doctor'\?$"
expect_stdout_is ''
expect_exit 2 "$TANDEM" zebra
expect_stderr_matches "^tandem: there is no command 'zebra'; 'tandem help' lists them all$"
expect_exit 2 "$TANDEM" doctor --tme 3
expect_stderr_matches "^tandem: tandem doctor has no option '--tme'; did you mean '--time'\?$"
expect_exit 2 "$TANDEM" --jsn
expect_stderr_matches "^tandem: tandem has no option '--jsn'; did you mean '--json'\?$"
expect_exit 2 "$TANDEM" doctor --zebra=3
expect_stderr_matches "has no option '--zebra'; 'tandem doctor --help-all' lists them all$"
expect_exit 0 "$TANDEM" doctor -h
expect_stdout_matches '^Usage: tandem doctor'
expect_exit 2 "$TANDEM" doctor --disk_size 8M
expect_exit 2 "$TANDEM" --json --quiet
expect_stderr_matches "^tandem: a command is missing; 'tandem help' lists them all$"

# ---- values --------------------------------------------------------------------------------
expect_exit 2 "$TANDEM" doctor --time 0
expect_stderr_matches "^tandem: --time takes a duration such as 90s, 5m or 2h from 1s to 60s; found '0'$"
expect_same 1 "$(wc -l <"$err" | tr -d ' ')" "a refusal is one line"
expect_exit 2 "$TANDEM" doctor --time
expect_stderr_matches "^tandem: --time needs a value TIME from 1s to 60s; found the end of the command line$"
expect_exit 2 "$TANDEM" train here --epochs
expect_stderr_matches "^tandem: --epochs needs a value N of at least 0; found the end of the command line$"
expect_exit 2 "$TANDEM" prepare here --fit
expect_stderr_matches "^tandem: --fit needs one of pad, crop, stretch; found the end of the command line$"
expect_exit 2 "$TANDEM" train x --model
expect_stderr_matches "^tandem: --model needs one of .*; found the end of the command line$"
expect_exit 2 "$TANDEM" train x --model=
expect_stderr_matches "^tandem: --model takes one of .*; found ''$"
expect_exit 2 "$TANDEM" doctor --time --no-measure
expect_stderr_matches "found another option$"
expect_exit 2 "$TANDEM" doctor --no-time
expect_exit 2 "$TANDEM" doctor --no-measure=true
expect_stderr_matches "^tandem: --no-measure takes no value; found 'true'$"
expect_exit 2 "$TANDEM" doctor --measure=maybe
expect_exit 2 "$TANDEM" doctor here
expect_stderr_matches "^tandem: tandem doctor takes no arguments; found 'here'$"
expect_exit 2 "$TANDEM" doctor --quiet --verbose --no-measure
expect_exit 0 env TANDEM_QUIET=1 "$TANDEM" doctor --verbose --no-measure
expect_stderr_matches '^tandem: debug: option measure = false'
expect_exit 0 env TANDEM_VERBOSE=1 "$TANDEM" doctor --quiet --no-measure
expect_same '' "$(cat "$err")" "the command line wins over the environment"
expect_exit 0 "$TANDEM" doctor --time=2s --measure=false
expect_exit 0 "$TANDEM" --quiet doctor --no-measure --time 1 --time 2
expect_same '' "$(cat "$err")" "--quiet says nothing on standard error"

# ---- precedence and the config file --------------------------------------------------------
cat >conf.toml <<'END'
# for every command that has it
time = "2s"
[doctor]
disk-size = "8M"   # only here
measure = false
END
expect_exit 0 "$TANDEM" doctor --config conf.toml --verbose
expect_stderr_matches 'option time = 2s \(config file\)'
expect_stderr_matches 'option disk-size = 8M \(config file\)'
expect_stderr_matches 'option folder = none \(default\)'
expect_exit 0 env TANDEM_TIME=3 TANDEM_CONFIG=conf.toml "$TANDEM" doctor --verbose
expect_stderr_matches 'option time = 3s \(environment\)'
expect_exit 0 env TANDEM_DOCTOR_TIME=4 TANDEM_TIME=3 "$TANDEM" doctor --verbose --config conf.toml
expect_stderr_matches 'option time = 4s \(environment\)'
expect_exit 0 env TANDEM_TIME=3 "$TANDEM" doctor --verbose --config conf.toml --time 5
expect_stderr_matches 'option time = 5s \(command line\)'
expect_exit 2 env TANDEM_DOCTOR_TIME=never "$TANDEM" doctor --no-measure
expect_stderr_matches "^tandem: TANDEM_DOCTOR_TIME takes a duration .*; found 'never'$"
expect_exit 0 env TANDEM_DOCTOR_TIM=3 "$TANDEM" doctor --no-measure
expect_stderr_matches 'TANDEM_DOCTOR_TIM names no option of tandem doctor'
expect_exit 0 env TANDEM_JSON=1 "$TANDEM" doctor --no-measure
expect_json version cpu gpus features
expect_exit 0 env TANDEM_JSON=1 "$TANDEM" doctor --no-measure --no-json
expect_stdout_matches '^This machine$'

expect_exit 3 "$TANDEM" doctor --config missing.toml
expect_stderr_matches '^tandem: the config file missing.toml could not be opened: No such file or directory$'
refuse_config() { # exit text pattern
    printf "$2" >bad.toml
    expect_exit "$1" "$TANDEM" doctor --no-measure --config bad.toml
    expect_stderr_matches "$3"
}
refuse_config 3 'time 3\n' 'bad.toml, line 1: found a line of another form where name = value'
refuse_config 2 '\n\n[doctor]\ntimee = 3\n' "bad.toml, line 4: tandem doctor has no option 'timee'; did you mean 'time'"
refuse_config 2 'zebra = 3\n' "^tandem: bad.toml, line 1: no command has an option 'zebra'$"
refuse_config 2 '[docter]\n' "bad.toml, line 1: \[docter\] names no command"
refuse_config 2 'time = 100\n' "bad.toml, line 1: time takes a duration .* from 1s to 60s; found '100'"
refuse_config 2 'time = 2\ntime = 3\n' "bad.toml, line 2: time was set already in line 1"
refuse_config 2 'config = "x"\n' "line 1: 'config' cannot be set in a config file"
refuse_config 2 'help = true\n' "line 1: 'help' cannot be set in a config file"

# ---- --json --------------------------------------------------------------------------------
expect_exit 0 "$TANDEM" doctor --no-measure --json
expect_json version cpu memory limits gpus mpi nccl features measured
expect_exit 0 "$TANDEM" --version --json
expect_json version
expect_exit 0 "$TANDEM" help doctor --json
expect_json version commands options
expect_exit 2 "$TANDEM" doctor --time 0 --json
expect_json error
expect_same USAGE "$(json_value error.code)" "the error's code"
expect_same 2 "$(json_value error.exit)" "the error's exit status"
expect_stderr_matches '^tandem: --time takes'
expect_exit 3 "$TANDEM" doctor --folder missing --json
expect_json error
expect_same INPUT "$(json_value error.code)" "the error's code"
expect_exit 2 "$TANDEM" trian --json
expect_json error

# ---- outputs that cannot be written --------------------------------------------------------
if [ -w /dev/full ]; then
    for form in --json --no-json; do
        status=0
        "$TANDEM" doctor --no-measure $form >/dev/full 2>"$err" || status=$?
        expect_same 1 "$status" "exit 1 when the device is full ($form)"
        expect_stderr_matches '^tandem: the result could not be written to standard output: No space left on device$'
        expect_same 1 "$(wc -l <"$err" | tr -d ' ')" "reported in one line ($form)"
    done
fi
{ sleep 0.2; "$TANDEM" doctor --no-measure 2>"$err"; echo $? >"$temp/status"; } | :
expect_same 1 "$(cat "$temp/status")" "exit 1 when the pipe is closed"
expect_stderr_matches '^tandem: the result could not be written to standard output: Broken pipe$'
expect_same 1 "$(wc -l <"$err" | tr -d ' ')" "reported in one line (closed pipe)"
status=0
"$TANDEM" doctor --no-measure >&- 2>"$err" || status=$?
expect_same 1 "$status" "exit 1 when standard output is closed"

# ---- errors as JSON, however the form was requested -------------------------------------------------
expect_exit 2 env TANDEM_JSON=true "$TANDEM" doctor --nonsense
expect_same USAGE "$(json_value error.code)" "TANDEM_JSON=true makes the error of a wrong option JSON"
expect_exit 2 "$TANDEM" train pictures --epochs 99999999999
expect_stderr_matches 'at least 0 and at most 2147483647; found'

# ---- signals -------------------------------------------------------------------------------
# A shell without job control starts background programs with SIGINT ignored; SIGTERM is not.
"$TANDEM" doctor --time 60 --quiet >"$out" 2>"$err" &
pid=$!
wait_until_stoppable $pid
kill -TERM $pid
status=0
wait $pid || status=$?
expect_same 1 "$status" "SIGTERM ends the measurements with exit 1"
expect_stderr_matches '^tandem: the measurements were stopped on request$'

# What waits for somebody who never comes is refused.
mkfifo fifo
expect_exit 3 timeout -k 5 20 "$TANDEM" doctor --no-measure --config fifo
expect_stderr_matches '^tandem: the config file fifo is a pipe or device; a regular file is required$'
expect_exit 3 timeout -k 5 20 "$TANDEM" doctor --no-measure --config .
expect_stderr_matches '^tandem: the config file . is a folder; a regular file is required$'
expect_exit 3 timeout -k 5 20 "$TANDEM" doctor --no-measure --config /dev/zero
expect_stderr_matches '^tandem: the config file /dev/zero is a pipe or device; a regular file is required$'

# A pipe that is full and that nobody reads keeps the command inside a write for as long as we like.
# ThreadSanitizer holds signals back until such a call returns, which it never does.
exec 3<>fifo
dd if=/dev/zero of=fifo bs=4096 count=1000 oflag=nonblock 2>/dev/null
if grep -q __tsan_init "$TANDEM"; then
    skip "a second SIGTERM: ThreadSanitizer holds signals back while the program waits in a call"
else
    "$TANDEM" doctor --help >fifo 2>"$err" &
    pid=$!
    wait_until_stoppable $pid
    kill -TERM $pid
    sleep 0.3
    expect_true "the first SIGTERM only asks" kill -0 $pid
    # Two that arrive at once are one signal.
    { while kill -TERM $pid; do sleep 0.3; done; } 2>/dev/null &
    status=0
    wait $pid || status=$?
    expect_same 143 "$status" "the second SIGTERM ends the process"
fi

sh -c 'trap "" INT; exec "$@"' sh "$TANDEM" doctor --help >fifo 2>"$err" &
pid=$!
wait_until_stoppable $pid
kill -INT $pid
kill -INT $pid
sleep 0.2
expect_true "an ignored SIGINT stays ignored" kill -0 $pid
kill -KILL $pid
wait $pid 2>/dev/null
exec 3<&-

# A nearly full disk: what cannot be written whole is not there under its final name. (Only where
# this user may mount; /dev/full above is for everybody.)
mkdir disk
if mount -t tmpfs -o size=64k tmpfs disk 2>/dev/null; then
    expect_exit 4 "$TANDEM" synth disk/pictures --classes 2 --per-class 50 --size 64 --format ppm
    expect_stderr_matches 'No space left on device$'
    expect_same '' "$(find disk -name '*.ppm' -size -5k)" "no picture is cut short"
    umount disk
fi
finish
