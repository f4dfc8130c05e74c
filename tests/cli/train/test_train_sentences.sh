# Sentences that name what a user gave, and what is accepted in its place.
. "$SOURCE/tests/cli/lib.sh"
export TANDEM_HOME="$temp/home"

"$TANDEM" synth pictures --classes 3 --per-class 12 --size 16 --quiet >/dev/null
expect_exit 0 "$TANDEM" train pictures -o base --model lenet5 --epochs 1
expect_true "every class has validation images, or a message says so" sh -c '! grep -q "no validation image" "$1"' - "$err"

# ---- classes and files -----------------------------------------------------------------------
mkdir one empty empty/a empty/b
cp -r pictures/* one
first=$(find pictures -mindepth 1 -maxdepth 1 -type d | sort | head -n 1)
for class in x y; do
    mkdir "one/$class"
done
cp "$(find "$first" -type f | sort | sed -n 1p)" one/x/alone
cp "$(find "$first" -type f | sort | sed -n 2p)" one/y/alone
rm -r "one/$(basename "$first")"
expect_exit 0 "$TANDEM" train one -o unjudged --model lenet5 --epochs 1
expect_stderr_matches '^2 of 4 classes have no validation image: whether they are learned is not measured$'
for file in empty/a/1.png empty/a/2.png empty/b/1.png empty/b/2.png; do
    : >$file
done
expect_exit 3 "$TANDEM" train empty -o no
expect_stderr_matches "none of the 4 images of 'empty' has bytes in it: all files are empty .[a-z/0-9., ]* and 1 more.$"

# Two classes of one broken file each: the sentence names the files.
mkdir -p broken/a broken/b
echo 'no image' >broken/a/x.jpg
echo 'none either' >broken/b/y.jpg
expect_exit 3 "$TANDEM" train broken
expect_stderr_matches 'only one distinct image in use .(a/x.jpg, b/y.jpg|b/y.jpg, a/x.jpg).; add images; tandem audit'

cp -r pictures torn
gone=$(find torn -type f | head -n 1)
rm "$gone"
ln -s nowhere "$gone"
expect_exit 3 "$TANDEM" train torn -o strict --strict --epochs 1
expect_stderr_matches "1 image of torn cannot be read, and --strict is on: .*${gone#torn/}.*No such file"
expect_exit 3 "$TANDEM" train torn -o strict --strict --epochs 1 --quiet
expect_same 0 "$(grep -c warning "$err")" "no warning, so the error names the file"
expect_stderr_matches "strict is on: .*${gone#torn/}"
expect_exit 3 "$TANDEM" train pictures -o no --fraction 0.01
expect_stderr_matches '\-\-fraction 0.01 leaves every class only one distinct image; use a larger one$'

# One of a thing is not many.
cp -r pictures stray
cp "$(find "pictures/$(ls pictures | head -n 1)" -type f | sort | head -n 1)" stray/
expect_exit 2 "$TANDEM" train stray -o no --epochs 1 --warmup 2
expect_stderr_matches 'training ends after 1 epoch, before'
expect_exit 0 "$TANDEM" train stray -o patient --model lenet5 --epochs 9 --patience 1 --lr 1e-9
expect_stderr_matches "left out of 'stray': 1 image beside the class folders, not in one$"
expect_stdout_matches '; stopped: 1 validation without a better accuracy$'

# ---- options ---------------------------------------------------------------------------------
expect_exit 2 "$TANDEM" train pictures -o no --split 1,0
expect_stderr_matches 'option --split is 1,0; two or three parts'
expect_exit 2 "$TANDEM" train pictures -o no --split 0.8,0.2,0.1
expect_exit 2 "$TANDEM" predict base --serve abc
expect_stderr_matches 'with --serve, which takes PORT or ADDRESS:PORT, images come by HTTP; found abc$'
: >file
expect_exit 4 "$TANDEM" train pictures -o file/run --epochs 1
expect_stderr_matches 'cannot make the folder file/run: file: is there and is no folder$'
expect_exit 3 "$TANDEM" evaluate base pictures --part test
expect_stderr_matches 'the run kept no images of pictures for a test, .* --split 0.8,0.1,0.1 keeps some$'
expect_exit 0 "$TANDEM" train pictures -o wide --model mobilenetv2-0.35 --size 32 --steps 1 --quiet
set -- pictures --weights wide --freeze none --steps 1 --quiet
expect_exit 2 "$TANDEM" train "$@" -o no --hidden 65536
expect_stderr_matches '--hidden 65536 makes a network of [0-9]+ bytes of weights, .* with it at most [0-9]+ is accepted$'
most=$(sed -n 's/.* at most \([0-9]*\) is accepted$/\1/p' "$err")
expect_exit 2 "$TANDEM" train "$@" -o no --hidden $((most + 1))
expect_exit 0 "$TANDEM" train "$@" -o widest --hidden "$most"

# ---- what goes on, and what failed -----------------------------------------------------------
expect_exit 0 "$TANDEM" train pictures -o base --epochs 3 --resume
expect_stderr_matches '^resuming after step [0-9]+ \(epoch 2\), learning rate 0[0-9.e-]+$'
sed 's/"status": *"finished"/"status": "failed"/' base/run.json >failed.json
cp failed.json base/run.json
expect_exit 0 "$TANDEM" runs show base
expect_stdout_matches '^base: failed, .*, best: [1-3], '
rm base/best.safetensors
expect_exit 0 "$TANDEM" runs show base
expect_stdout_matches '^base: failed, .*, best: none, '
finish
