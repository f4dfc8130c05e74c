"""Weights that mean harm, of every form that is read, made here without the programs that write them:

    hostile_weights.py TANDEM FIXTURES

Whatever the file: exit code 3, a sentence with its name, nothing executed, memory within 96 MiB of
what a good file of the form takes, and no more than 10 s. Prints a line a case, as tests/cli/lib.sh
does. Cuts are made at every twentieth: the tests of the readers make them at every hundredth.
"""
import io
import json
import math
import os
import pickle
import shutil
import struct
import subprocess
import sys
import time
import zipfile

TANDEM, FIXTURES = sys.argv[1], sys.argv[2]
CANARY = os.path.abspath("executed")
MORE_MEMORY, MOST_SECONDS = 96 << 10, 10.0
IS_SANITIZED = b"__asan_init" in open(TANDEM, "rb").read()

# ---- a LeNet-5, in whose tensors the harm is done ------------------------------------------------

SHAPES = {"conv1.weight": [6, 1, 5, 5], "conv1.bias": [6], "conv2.weight": [16, 6, 5, 5], "conv2.bias": [16],
          "fc1.weight": [120, 400], "fc1.bias": [120], "fc2.weight": [84, 120], "fc2.bias": [84],
          "fc3.weight": [10, 84], "fc3.bias": [10]}


def count(shape):
    return math.prod(shape)


def values(name, bad=None):
    """bad: a float that stands in the middle of fc1.weight."""
    n = count(SHAPES[name])
    floats = [0.01 * (i % 7) for i in range(n)]
    if bad is not None and name == "fc1.weight":
        floats[n // 2] = bad
    return struct.pack(f"<{n}f", *floats)


# ---- safetensors ---------------------------------------------------------------------------------

def safetensors(head, data, length=None):
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensors_head(dtype="F32", metadata=None, move=None):
    head, at = {}, 0
    if metadata:
        head["__metadata__"] = metadata
    for name, shape in SHAPES.items():
        n = 4 * count(shape)
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + n]}
        at += n
    if move:
        move(head)
    return head


def all_values(bad=None):
    return b"".join(values(name, bad) for name in SHAPES)


def overlap(head):
    head["fc1.bias"]["data_offsets"] = head["conv1.bias"]["data_offsets"]


def outside(head):
    head["fc3.bias"]["data_offsets"] = [2 ** 62, 2 ** 62 + 40]


def endless(head):
    head["fc3.weight"]["shape"] = [2 ** 40, 2 ** 40]


# ---- pickles -------------------------------------------------------------------------------------

def text(string):
    raw = string.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(value):
    return b"J" + struct.pack("<i", value) if -2 ** 31 <= value < 2 ** 31 else \
        b"\x8a\x09" + struct.pack("<q", value) + b"\0"


def call(module, name, arguments):
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n(" + b"".join(arguments) + b"tR"


def storage(kind, key, n, is_legacy):
    return b"(" + text("storage") + b"ctorch\n" + kind.encode() + b"\n" + text(key) + text("cpu") + number(n) + \
        (b"N" if is_legacy else b"") + b"tQ"


def tensor(kind, key, shape, is_legacy, offset=0, room=None):
    strides, step = [], 1
    for side in reversed(shape):
        strides.insert(0, step)
        step *= side
    shapes = [b"(" + b"".join(map(number, list)) + b"t" for list in (shape, strides)]
    return call("torch._utils", "_rebuild_tensor_v2",
                [storage(kind, key, room or step, is_legacy), number(offset), *shapes, b"\x89",
                 call("collections", "OrderedDict", [])])


def state_dict(is_legacy, kind="FloatStorage", **of_first):
    body = b""
    for i, (name, shape) in enumerate(SHAPES.items()):
        body += text(name) + tensor(kind, str(i), shape, is_legacy, **(of_first if i == 0 else {}))
    return b"\x80\x02}(" + body + b"u."


def keys():
    return [str(i) for i in range(len(SHAPES))]


def archive(members, method=zipfile.ZIP_STORED):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as file:
        for name, data in members.items():
            with file.open(name, "w") as member:
                for part in [data] if isinstance(data, bytes) else data:
                    member.write(part)
    return made.getvalue()


def zeros(megabytes, first=b""):
    """In parts: what this process ever held counts as its children's memory."""
    yield first
    for _ in range(megabytes):
        yield bytes(1 << 20)


def torch_zip(pickled, bad=None, width=4):
    members = {"a/data.pkl": pickled, "a/version": b"3\n"}
    for key, name in zip(keys(), SHAPES):
        members[f"a/data/{key}"] = values(name, bad) if width == 4 else bytes(width * count(SHAPES[name]))
    return archive(members)


def torch_legacy(pickled, bad=None, width=4):
    made = b"".join(pickle.dumps(part, protocol=2) for part in (
        0x1950a86a20f9469cfc6c, 1001, {"protocol_version": 1001, "little_endian": True,
                                       "type_sizes": {"short": 2, "int": 4, "long": 4}}))
    made += pickled + pickle.dumps(keys(), protocol=2)
    for name in SHAPES:
        raw = values(name, bad) if width == 4 else bytes(width * count(SHAPES[name]))
        made += struct.pack("<q", count(SHAPES[name])) + raw
    return made


SYSTEM = b"\x80\x02}(" + text("conv1.weight") + call("posix", "system", [text(f"touch {CANARY}")]) + b"u."
EVAL = b"\x80\x02}(" + text("conv1.weight") + call("builtins", "eval", [
    text(f"__import__('os').system('touch {CANARY}')")]) + b"u."
BUILD = b"\x80\x02cos\nsystem\n(" + text(f"touch {CANARY}") + b"o."
ITSELF = b"\x80\x02}q\0(" + text("model") + b"h\0u."
DEEP = b"\x80\x02" + b"]" * 100000 + b"a" * 99999 + b"."
LAUGHS = b"\x80\x02]q\0(" + b"N" * 10 + b"e" + b"".join(
    b"]q" + bytes([i]) + b"(" + (b"h" + bytes([i - 1])) * 10 + b"e" for i in range(1, 30)) + b"."
HUGE_TEXT = b"\x80\x04\x8d" + struct.pack("<Q", 2 ** 62) + b"abc."
HUGE_LONG = b"\x80\x02\x8b" + struct.pack("<i", 2 ** 31 - 1) + b"abc."


# ---- NumPy ---------------------------------------------------------------------------------------

def npy(shape, data, descr="<f4", length=None):
    sides = "(" + "".join(f"{side}," for side in shape) + ")"
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {sides}, }}\n".encode()
    if length is not None:
        return b"\x93NUMPY\2\0" + struct.pack("<I", length) + head + data
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + data


def npz(bad=None, descr="<f4", replace=None, method=zipfile.ZIP_STORED):
    members = {f"{name}.npy": npy(shape, values(name, bad), descr) for name, shape in SHAPES.items()}
    members.update(replace or {})
    return archive(members, method)


def meeting(zipped):
    """The directory's last member begins where its first does."""
    at = zipped.rindex(b"PK\1\2")
    return zipped[:at + 42] + struct.pack("<I", 0) + zipped[at + 46:]


def promising(zipped, n):
    """The directory's first packed member is said to unpack to n bytes."""
    at = zipped.index(b"PK\1\2")
    return zipped[:at + 24] + struct.pack("<I", n) + zipped[at + 28:]


# ---- Keras ---------------------------------------------------------------------------------------

def fixture(name):
    return open(os.path.join(FIXTURES, "keras", name), "rb").read()


VARIANCES = struct.pack("<2f", 0.99, 0.99)
FLOAT_TYPE = b"\x11\x20\x1f\0\4\0\0\0\0\0\x20\0\x17\x08\0\x17\x7f\0\0\0"
WHOLE_TYPE = b"\x10\x08\0\0\4\0\0\0\0\0\x20\0" + bytes(8)


def with_value(h5, bad):
    assert h5.count(VARIANCES) == 1
    return h5.replace(VARIANCES, struct.pack("<2f", 0.99, bad))


def whole(h5):
    assert FLOAT_TYPE in h5
    return h5.replace(FLOAT_TYPE, WHOLE_TYPE)


def keras(weights=None, config=None, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(io.BytesIO(fixture("sequential.keras"))) as file:
        members = {name: file.read(name) for name in file.namelist()}
    members["model.weights.h5"] = weights or members["model.weights.h5"]
    members["config.json"] = config or members["config.json"]
    return archive(members, method)


def weights_of_keras():
    with zipfile.ZipFile(io.BytesIO(fixture("sequential.keras"))) as file:
        return file.read("model.weights.h5")


def layer(kind, **config):
    return {"class_name": kind, "config": {"name": kind.lower(), **config}}


# Python that Keras would unmarshal and run.
LAMBDA = {"class_name": "Sequential", "config": {"name": "l", "layers": [
    layer("InputLayer", batch_shape=[None, 8, 8, 3]),
    layer("Lambda", function=["4wEAAAA=", None, None], function_type="lambda", module="os"),
    layer("GlobalAveragePooling2D"), layer("Softmax")]}}
DEEP_JSON = b"[" * 200000 + b"]" * 200000


# ---- TensorFlow.js: a folder ---------------------------------------------------------------------

def tfjs(bad=None, dtype="float32", paths=("a.bin",), model=None, topology=None, shape=None, links=0):
    weights = [{"name": name, "shape": sides, "dtype": dtype} for name, sides in SHAPES.items()]
    if shape:
        weights[0]["shape"] = shape
    if links:
        weights = [{"name": "w", "shape": [links << 20], "dtype": "uint8"}]
        paths = [f"{i}.bin" for i in range(links)]
    told = model or json.dumps({"modelTopology": topology, "weightsManifest": [
        {"paths": list(paths), "weights": weights}]}).encode()
    files = {"model.json": told, "a.bin": all_values(bad)}
    if links:
        files["0.bin"] = bytes(1 << 20)
    return files, links


# ---- asking --------------------------------------------------------------------------------------

n_failed, baseline = 0, {}


def say(is_right, sentence):
    global n_failed
    n_failed += not is_right
    print(("ok - " if is_right else "not ok - ") + sentence, flush=True)


def put(path, content):
    if os.path.isdir(path):
        shutil.rmtree(path)
    if isinstance(content, bytes):
        open(path, "wb").write(content)
        return
    files, links = content
    os.makedirs(path)
    for name, data in files.items():
        open(os.path.join(path, name), "wb").write(data)
    for i in range(1, links):
        os.symlink("0.bin", os.path.join(path, f"{i}.bin"))


def run(*command):
    """Exit code, kilobytes at most, seconds, what it said."""
    started = time.monotonic()
    with open("said", "w+b") as said:
        child = subprocess.Popen([TANDEM, *command], stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        said.seek(0)
        return os.waitstatus_to_exitcode(status), usage.ru_maxrss, time.monotonic() - started, \
            said.read().decode(errors="replace")


def problem(form, path, code, memory, seconds, said, wanted=3):
    if code != wanted:
        return f"exit {code}: {said[-300:]}"
    if os.path.exists(CANARY):
        return "it was executed"
    if path not in said:
        return f"no sentence with its name: {said[-300:]}"
    if not IS_SANITIZED and memory > baseline[form] + MORE_MEMORY:
        return f"{memory >> 10} MiB, a good file {baseline[form] >> 10}"
    if seconds > MOST_SECONDS * (10 if IS_SANITIZED else 1):
        return f"{seconds:.1f} s"
    return ""


FORMS = {  # the file's name, and how its network is said
    "safetensors": ("w.safetensors", ["--model", "lenet5"]),
    "pth": ("w.pth", ["--model", "lenet5"]),
    "legacy": ("w.th", ["--model", "lenet5"]),
    "npz": ("w.npz", ["--model", "lenet5"]),
    "h5": ("w.h5", []),
    "keras": ("w.keras", []),
    "tfjs": ("w", ["--model", "lenet5"]),
}
H5 = fixture("sequential.h5")
GOOD = {
    "safetensors": safetensors(tensors_head(), all_values()),
    "pth": torch_zip(state_dict(False)),
    "legacy": torch_legacy(state_dict(True)),
    "npz": npz(),
    "h5": H5,
    "keras": keras(),
    "tfjs": tfjs(),
}


def predict(form, content, words=None):
    path, usual = FORMS[form]
    put(path, content)
    return (path, *run("predict", path, "p.ppm", *(usual if words is None else words)))


def begin(form):
    path, code, memory, _, said = predict(form, GOOD[form])
    baseline[form] = memory
    say(code == 0, f"{form}: a good file is read" + ("" if code == 0 else f" ({said[-300:]})"))


def cut(form):
    """At every hundredth; of a folder each of its files in turn."""
    def pieces():
        good = GOOD[form]
        for percent in range(0, 100, 5):
            if isinstance(good, bytes):
                yield percent, good[:len(good) * percent // 100]
                continue
            for name, data in good[0].items():
                yield f"{name} at {percent}", ({**good[0], name: data[:len(data) * percent // 100]}, 0)
    wrong = [f"{where} %: {why}" for where, content in pieces() if (why := problem(form, *predict(form, content)))]
    say(not wrong, f"{form}: cut at every 5 %" + (f" ({len(wrong)} are wrong; {wrong[0]})" if wrong else ""))


def refuse(form, what, content, is_wrong_only_in_use=False, words=None, says=""):
    path, usual = FORMS[form]
    words = usual if words is None else words
    answer = predict(form, content, words)
    why = problem(form, *answer)
    if says not in answer[-1]:
        why = why or f"'{says}' is not in: {answer[-1][-300:]}"
    others = [["train", "pictures", "--weights", path, *words, "-o", "run", "--epochs", "1", "--quiet"]]
    if not is_wrong_only_in_use:
        others += [["weights", "inspect", path]]
    for command in others:
        why = why or problem(form, path, *run(*command))
        if os.path.exists("run"):
            why = why or f"{command[0]} made a run"
    say(not why, f"{form}: {what}" + (f" ({why})" if why else ""))


# ---- the matrix ----------------------------------------------------------------------------------

def numbers(form, make):
    name = {"h5": "moving_variance", "keras": "batch_normalization/vars/3"}.get(form, "fc1.weight")
    for bad in (math.nan, math.inf, -math.inf):
        refuse(form, f"a tensor with {bad}", make(bad), True, says=f"{name}' has a NaN or an infinity")


def described(**config):
    return {"model_config": json.dumps({"class_name": "Sequential", "config": {"name": "d", "layers": [
        layer("InputLayer", **config), layer("GlobalAveragePooling2D"), layer("Softmax")]}})}


def doubled(times):
    """Channels twice as many at each layer: none has weights."""
    def node(kind, name, reads, **config):
        return {"class_name": kind, "name": name, "config": {"name": name, **config},
                "inbound_nodes": [[[other, 0, 0, {}] for other in reads]] if reads else []}
    layers, last = [node("InputLayer", "in", [], batch_input_shape=[None, 8, 8, 3]),
                    node("GlobalAveragePooling2D", "g", ["in"])], "g"
    for i in range(times):
        layers += [node("Activation", f"a{i}", [last], activation="relu"), node("Concatenate", f"c{i}", [last, f"a{i}"])]
        last = f"c{i}"
    layers.append(node("Dense", "d", [last], units=3, activation="softmax"))
    return {"model_config": json.dumps({"class_name": "Model", "config": {
        "name": "m", "layers": layers, "input_layers": [["in", 0, 0]], "output_layers": [["d", 0, 0]]}})}


def main():
    for colour in ("a", "b"):
        os.makedirs(f"pictures/{colour}")
        for i in range(6):
            pixels = " ".join(str((37 * i + k) % 256) for k in range(192))
            open(f"pictures/{colour}/{i}.ppm", "w").write(f"P3 8 8 255 {pixels}\n")
    shutil.copy("pictures/a/0.ppm", "p.ppm")
    for form in FORMS:
        begin(form)
        cut(form)

    form, data = "safetensors", all_values()
    refuse(form, "two tensors in one place", safetensors(tensors_head(move=overlap), data))
    refuse(form, "a tensor outside of the file", safetensors(tensors_head(move=outside), data))
    refuse(form, "a shape of 2^80 values", safetensors(tensors_head(move=endless), data))
    for length in (2 ** 64 - 1, 2 ** 63, 100 << 20, 10 ** 9):
        refuse(form, f"a header of {length} bytes", safetensors(tensors_head(), data, length))
    refuse(form, "a header of 200,000 lists in lists", safetensors(b'{"a":' + DEEP_JSON + b"}", b""))
    refuse(form, "a Lambda", safetensors(tensors_head(metadata={"model_config": json.dumps(LAMBDA)}), data), True, [])
    kept = {"optimizer/vars/0": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    for what, metadata in (("pictures of 8,000 pixels a side", described(batch_shape=[None, 8000, 8000, 3])),
                           ("pictures of 2^31 pixels", described(batch_shape=[None, 60000, 60000, 3])),
                           ("3 * 2^22 channels of nothing", doubled(22)),
                           ("3 * 2^60 channels of nothing", doubled(60)),
                           ("a model of ours that says nothing", {"format": "tandem", "tandem": "{}"}),
                           ("a model of ours of lists in lists", {"format": "tandem", "tandem": DEEP_JSON.decode()}),
                           ("a network that reads itself", {"format": "tandem", "tandem": json.dumps({
                               "network": "lenet5", "nodes": [{"name": "a", "op": "relu", "input": "a"}]})})):
        refuse(form, what, safetensors({"__metadata__": metadata, **kept}, bytes(4)), True, [])
    refuse(form, "whole numbers for weights", safetensors(tensors_head("I32"), data), True)
    refuse(form, "a type that is none", safetensors(tensors_head("F31"), data))
    numbers(form, lambda bad: safetensors(tensors_head(), all_values(bad)))

    for form, wrap, is_legacy in (("pth", torch_zip, False), ("legacy", torch_legacy, True)):
        for what, pickled in (("os.system", SYSTEM), ("eval", EVAL), ("os.system by another opcode", BUILD),
                              ("a dict that holds itself", ITSELF), ("100,000 lists in lists", DEEP),
                              ("a billion laughs", LAUGHS), ("a text of 2^62 bytes", HUGE_TEXT),
                              ("a number of 2^31 bytes", HUGE_LONG),
                              ("a tensor outside of its storage", state_dict(is_legacy, offset=1)),
                              ("a storage larger than the file", state_dict(is_legacy, room=2 ** 40)),
                              ("a tensor at -1", state_dict(is_legacy, offset=-1))):
            refuse(form, what, wrap(pickled), says="posix.system" if pickled is SYSTEM else "")
        refuse(form, "whole numbers for weights", wrap(state_dict(is_legacy, "IntStorage")), True)
        refuse(form, "complex numbers for weights", wrap(state_dict(is_legacy, "ComplexFloatStorage"), width=8))
        refuse(form, "a type that is none", wrap(state_dict(is_legacy, "NoStorage")))
        numbers(form, lambda bad: wrap(state_dict(is_legacy), bad))
    form = "pth"
    refuse(form, "two members in one place", meeting(GOOD["pth"]))
    bomb = archive({"a/data.pkl": zeros(200)}, zipfile.ZIP_DEFLATED)
    refuse(form, "a zip bomb", bomb)
    refuse(form, "a member that promises 4 GB", promising(archive({"a/data.pkl": state_dict(False)},
                                                                  zipfile.ZIP_DEFLATED), 2 ** 32 - 2))

    form = "npz"
    refuse(form, "a pickle", npz(replace={"conv1.weight.npy": npy([1], SYSTEM, "|O")}))
    refuse(form, "two members in one place", meeting(GOOD["npz"]))
    refuse(form, "a header of 4 GB", npz(replace={"fc1.bias.npy": npy([120], values("fc1.bias"), length=2 ** 32 - 1)}))
    refuse(form, "a shape of 2^80 values", npz(replace={"fc1.bias.npy": npy([2 ** 40, 2 ** 40], b"")}))
    refuse(form, "a shape beyond its member", npz(replace={"fc1.bias.npy": npy([121], values("fc1.bias"))}))
    refuse(form, "a zip bomb", archive({"w.npy": zeros(200, npy([50 << 20], b""))}, zipfile.ZIP_DEFLATED))
    refuse(form, "a member that promises 4 GB",
           promising(archive({"w.npy": npy([10], bytes(40))}, zipfile.ZIP_DEFLATED), 2 ** 32 - 2))
    refuse(form, "nested parentheses", npz(replace={"fc1.bias.npy": b"\x93NUMPY\1\0\x10\x27" + b"(" * 10000}))
    refuse(form, "whole numbers for weights", npz(descr="<i4"), True)
    refuse(form, "complex numbers for weights", npz(replace={"fc1.bias.npy": npy([60], values("fc1.bias"), "<c8")}), True)
    numbers(form, npz)

    kinds = ("overlap", "circle", "own-child", "walk-circle", "bomb", "small-bomb", "huge", "large", "flipped",
             "external", "virtual", "compound", "stray", "growing")
    for form, wrap in (("h5", lambda h5: h5), ("keras", keras)):
        for kind in kinds:
            refuse(form, f"HDF5: {kind}", wrap(fixture(f"refused-{kind}.h5")))
        good = H5 if form == "h5" else weights_of_keras()
        refuse(form, "whole numbers for weights", wrap(whole(good)), True)
        numbers(form, lambda bad: wrap(with_value(good, bad)))
    start, nested = H5.index(b'{"class_name": "Sequential"'), b'{"a":' + b"[" * 3000
    refuse("h5", "a model_config of lists in lists", H5[:start] + nested + H5[start + len(nested):], True)
    refuse("h5", "a Lambda", H5.replace(b'"Conv2D"', b'"Lambda"'), True)
    form = "keras"
    refuse(form, "a Lambda", keras(config=json.dumps(LAMBDA).encode()), True)
    refuse(form, "a configuration of 200,000 lists in lists", keras(config=DEEP_JSON), True)
    refuse(form, "two members in one place", meeting(GOOD["keras"]))
    refuse(form, "a zip bomb", keras(config=zeros(200), method=zipfile.ZIP_DEFLATED))

    form = "tfjs"
    refuse(form, "one shard twice", tfjs(paths=("a.bin", "a.bin")))
    refuse(form, "a shard outside of the folder", tfjs(paths=("../p.ppm",)))
    refuse(form, "a shard that is a URL", tfjs(paths=("https://127.0.0.1:9/a.bin",)))
    refuse(form, "a shard that is a device", tfjs(paths=("/dev/zero",)))
    refuse(form, "a shape of 2^80 values", tfjs(shape=[2 ** 40, 2 ** 40]))
    refuse(form, "a shape of 2^38 values", tfjs(shape=[2 ** 38]))
    refuse(form, "one file of 1 MiB under 200 names", tfjs(links=200))
    refuse(form, "200,000 lists in lists", tfjs(model=b'{"weightsManifest":' + DEEP_JSON + b"}"))
    refuse(form, "a Lambda", tfjs(topology={"model_config": LAMBDA}), True, [])
    refuse(form, "a type that is none", tfjs(dtype="string"))
    refuse(form, "whole numbers for weights", tfjs(dtype="int32"), True)
    numbers(form, tfjs)
    say(not os.path.exists(CANARY), "nothing was executed")
    return n_failed > 0


sys.exit(main())
