# tandem model as a user meets it.
. "$SOURCE/tests/cli/lib.sh"

expect_exit 0 "$TANDEM" model show mobilenetv2 --json
expect_json model summary input classes parameters states multiplications flops nodes
expect_same 3504872 "$(json_value parameters)" "the published number of parameters"
expect_same 1000 "$(json_value classes)" "the classes that it was published with"
expect_true "rows add up, and every node reads earlier ones" python3 -c '
import json, sys
v = json.load(open(sys.argv[1]))
names = set()
for node in v["nodes"]:
    assert set(node["inputs"]) <= names, node
    names.add(node["name"])
assert len(names) == len(v["nodes"]) > 100
for key in "parameters", "states", "multiplications", "flops":
    assert sum(node[key] for node in v["nodes"]) == v[key], key
assert v["nodes"][0]["op"] == "input" and v["nodes"][-1]["op"] == "softmax"' "$out"

expect_exit 0 "$TANDEM" model show resnet20-cifar --classes 4 --size 48 --hidden 32
expect_stdout_matches '^  layer2.0.add +24×24×32 .* add of layer2.0.bn2 and layer2.0.shortcut.pad$'
expect_stdout_matches '^  hidden +1×1×32 +2080 '
expect_stdout_matches '^  linear +1×1×4 +132 '

expect_exit 0 "$TANDEM" model show mobilenetv2-0.35 --svg network.svg --json
expect_same mobilenetv2-0.35 "$(json_value model)" "the width is in the name"
expect_true "the drawing is XML of the width's own channels" python3 -c '
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
assert root.tag.endswith("svg") and "mobilenetv2-0.35" in words and "112×112×16" in words' network.svg

expect_exit 2 "$TANDEM" model show resnet19-cifar
expect_stderr_matches "there is xception, mobilenetv2, mobilenetv2-WIDTH"
expect_exit 2 "$TANDEM" model
expect_exit 2 "$TANDEM" model draw lenet5
expect_stderr_matches "tandem model takes show first; found 'draw'"
expect_exit 3 "$TANDEM" model show alexnet --size 20
expect_stderr_matches 'larger --size'
expect_exit 0 "$TANDEM" model show lenet5 --svg new/folder/network.svg --quiet
expect_true "missing parents of the drawing are made" [ -s new/folder/network.svg ]
expect_exit 2 "$TANDEM" model show lenet5 --svg new/folder
finish
