# tandem weights: what is published, what is in a file, the same tensors in another one.
. "$SOURCE/tests/cli/lib.sh"
TANDEM_HOME=$temp/home
export TANDEM_HOME

expect_exit 0 "$TANDEM" weights
expect_stdout_matches 'xception-notop .*Keras, ImageNet .*MIT'
expect_exit 0 "$TANDEM" weights list --json
expect_json weights
expect_exit 2 "$TANDEM" weights lsit
expect_stderr_matches "takes list, fetch, inspect or convert first; found 'lsit'"
expect_exit 2 "$TANDEM" weights fetch
expect_stderr_matches 'takes the NAME of published weights'
expect_exit 2 "$TANDEM" weights fetch xceptoin
expect_stderr_matches "did you mean 'xception'"
expect_exit 2 "$TANDEM" weights list --mirror http://127.0.0.1:9/
expect_stderr_matches 'mirror is for tandem weights fetch'
expect_exit 0 env TANDEM_MIRROR=http://127.0.0.1:9/ "$TANDEM" weights list

# A port that nobody listens on: named at once, with the place for the file. (No libcurl: named, too.)
expect_exit 4 env no_proxy=127.0.0.1 "$TANDEM" weights fetch resnet18 --mirror http://127.0.0.1:9/
expect_stderr_matches 'put the file at .*/home/weights/resnet18-f37072fd.pth'
expect_same "" "$(find "$temp/home/weights" -name '*.part')" "nothing is left of what never came"
expect_exit 3 "$TANDEM" weights fetch resnet18 --mirror "$temp"
expect_stderr_matches "a mirror is a web server's folder, .*is copied to .*/home/weights/resnet18-f37072fd.pth"

# A file of another program: two tensors and a note.
python3 - "$temp/two.safetensors" <<'END'
import json, struct, sys
head = json.dumps({"__metadata__": {"license": "MIT"},
                   "b": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                   "a.weight": {"dtype": "F32", "shape": [2, 1], "data_offsets": [8, 16]},
                   "zero": {"dtype": "F32", "shape": [1], "data_offsets": [16, 20]}}).encode()
values = struct.pack("<5f", 1, -2, float("nan"), 0.5, 0)
open(sys.argv[1], "wb").write(struct.pack("<Q", len(head)) + head + values)
END
expect_exit 0 "$TANDEM" weights inspect two.safetensors
expect_stdout_matches 'two.safetensors: safetensors, 3 tensors, 5 values, 20 B'
expect_stdout_matches 'license +MIT'
expect_stdout_matches 'a.weight +F32 +2×1 .* 1 not finite'
expect_stdout_matches 'zero +F32 +1 +0 to 0, mean 0'
expect_exit 0 "$TANDEM" weights inspect two.safetensors --json
expect_json weights
expect_exit 0 "$TANDEM" weights convert two.safetensors new/three.safetensors
expect_exit 0 "$TANDEM" weights inspect new/three.safetensors
expect_stdout_matches 'b +F32 +2 +-2 to 1'
expect_stdout_matches 'source.form +safetensors'
expect_exit 2 "$TANDEM" weights convert two.safetensors two.pth
expect_stderr_matches 'ends in .safetensors'
expect_exit 3 "$TANDEM" weights inspect /dev/null/none.h5
expect_exit 3 "$TANDEM" weights inspect "$SOURCE/README.md"
expect_stderr_matches 'no form of weights'
finish
