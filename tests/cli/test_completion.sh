# Completion: the scripts of tandem completion, run by the shells that are here.
. "$SOURCE/tests/cli/lib.sh"

for shell in bash zsh fish; do
    expect_exit 0 "$TANDEM" completion $shell
    cp "$out" tandem.$shell
    expect_exit 0 "$TANDEM" completion $shell --json
    expect_json shell text
    if command -v $shell >/dev/null; then
        expect_true "$shell reads it" $shell -n tandem.$shell
    else
        skip "no $shell to read its script"
    fi
done
expect_exit 2 "$TANDEM" completion tcsh
expect_stderr_matches "^tandem: tandem completion takes bash, zsh or fish; found 'tcsh'$"

# ---- bash ----------------------------------------------------------------------------------
# complete WORD…: what a bash offers behind the last word, sorted, in one line.
complete() {
    bash --norc -c '
        . ./tandem.bash
        COMP_WORDS=(tandem "$@") COMP_CWORD=$#
        _tandem
        printf "%s\n" "${COMPREPLY[@]}"' bash "$@" | sort | tr '\n' ' ' | sed 's/^ *//; s/ *$//'
}
if command -v bash >/dev/null; then
    expect_same "train" "$(complete tr | tr ' ' '\n' | grep -x train)" "a command from its beginning"
    expect_same "trace train" "$(complete tra)" "several commands"
    expect_same "--epochs" "$(complete train --epo)" "an option"
    expect_same "--no-measure" "$(complete doctor --no)" "a flag that is on is offered as --no-…"
    expect_same "--quiet" "$(complete train --qui)" "an option of every command"
    expect_same "auto decoded disk encoded none" "$(complete train pictures --cache '')" "values of a list"
    expect_same "decoded" "$(complete train pictures --cache = dec)" "values after ="
    expect_same "auto decoded disk encoded none" "$(complete train pictures --cache =)" "all values after ="
    expect_same "resnet18 resnet20-cifar resnet50" "$(complete train pictures --model res)" \
        "names of networks, without those that stand for several"
    expect_same "" "$(complete train -o ru)" "bash itself completes paths"
    expect_same "" "$(complete train --epochs 1)" "a number is not completed"
    expect_same "compare list show" "$(complete runs '')" "the first argument where it is one of a list"
    expect_same "" "$(complete runs show ru)" "not the second"
    expect_same "predict prepare" "$(complete help pre)" "commands as arguments"
    expect_same "--epochs" "$(complete run -n 2 -- train pictures --epo)" "the command behind --"
    # Each option of each table, by the program's own list.
    missing=0
    for command in $(sed -n 's/^X(\(.*\))$/\1/p' "$SOURCE/src/cli/commands.def"); do
        offered=" $(complete "$command" --) "
        for name in $("$TANDEM" help "$command" --json | python3 -c '
import json, sys
table = json.load(sys.stdin)
print(*[option["name"] for option in table["commands"][0]["options"] + table["options"]])'); do
            case $offered in
            *" --$name "* | *" --no-$name "*) ;;
            *)
                echo "# $command --$name is not offered"
                missing=1
                ;;
            esac
        done
    done
    expect_same 0 $missing "every option of every command is offered"
else
    skip "no bash"
fi

# ---- fish and zsh --------------------------------------------------------------------------
if command -v fish >/dev/null; then
    fish_offers() {
        HOME=$temp XDG_CONFIG_HOME=$temp fish --no-config -c "source tandem.fish; complete -C '$1'" 2>&1 | cut -f 1 | tr '\n' ' '
    }
    expect_same "--epochs " "$(fish_offers 'tandem train --epo')" "fish: an option"
    expect_same "compare list show " "$(fish_offers 'tandem runs ' | tr ' ' '\n' | grep -xE 'list|show|compare' | sort | tr '\n' ' ')" \
        "fish: the first argument"
    expect_same "decoded " "$(fish_offers 'tandem train --cache dec')" "fish: values of a list"
else
    skip "no fish to complete with"
fi
if command -v zsh >/dev/null; then
    cp tandem.zsh _tandem
    expect_true "zsh takes it as a function of its completion" \
        zsh -fc 'fpath=($PWD $fpath); autoload -Uz compinit && compinit -u -d ./dump && [[ $_comps[tandem] == _tandem ]]'
    cat >typed.zsh <<'END'
# A person at a zsh: types, presses the tab key, and sees the rest of the word.
zmodload zsh/zpty || exit 77
zpty z zsh -f -i
zpty -w z 'PS1=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -d ./dump; echo RE''ADY'
zpty -r -m z seen '*READY*' || exit 1
zpty -n -w z $'tandem train pictures --cache=dec\t'
zpty -r -m z seen '*--cache=decoded*'
END
    status=0
    TERM=dumb timeout 60 zsh -f typed.zsh >typed.txt 2>&1 || status=$?
    case $status in
    0) pass "zsh completes a value that is typed" ;;
    77) skip "zsh without pseudo-terminals" ;;
    *) fail "zsh does not complete '--cache=dec' ($status: $(cat typed.txt))" ;;
    esac
else
    skip "no zsh to complete with"
fi
finish
