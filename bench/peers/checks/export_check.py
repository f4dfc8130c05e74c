#!/usr/bin/env python3
"""Exported models opened by the programs they are for: the same logits as ours, on the same pictures.

    bench/peers/checks/export_check.py [--pictures N] [--models A,B] [--trained A,B] [BUILD]

Each network is trained a few steps on painted pictures, so that weights and running statistics are no
round numbers, and exported in every form. ONNX: the checker accepts the file, and onnxruntime gives
our logits and probabilities, from floats and (--preprocess) from bytes. safetensors: torchvision's class,
or a module that is written from the paper (networks.py), takes it with strict=True and gives our logits;
where our network pads as Keras does, the same class pads so in a hook. .h5: Keras' load_model
takes it and gives our logits; load_weights takes it for the class of keras.applications, where there is
one (export_keras.py). Runs with hidden layers, yes and no, one logit and a frozen base say through onnxruntime and Keras
the answers of `tandem predict`. A network of every op there is, in each scaling, goes through onnxruntime too. Needs BUILD/tandem, BUILD/bench/bench_logits and
BUILD/bench/bench_every_op (cmake --build BUILD --target bench_logits bench_every_op).
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import torch
import torchvision
from safetensors import safe_open
from safetensors.torch import load_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import networks  # noqa: E402: found by the line above

LIMIT = 1e-4  # of a logit, relative where it is above 1
MODELS = "convnet7,lenet5,resnet20-cifar,mobilenetv2-0.35,resnet18,resnet50,alexnet,xception"
# Statistics of Keras' batch norms move by a hundredth a step; far from them Xception's answers grow to 1e5.
TRAINING = {"xception": ["--size", "96", "--steps", "250"]}
SCALES = {"tf": (127.5, 1, 1), "unit": (255, 0, 1), "raw": (1, 0, 1), "caffe": (1, [123.68, 116.779, 103.939], 1),
          "torch": (255, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])}


def answers(program, run, pictures):
    """What our network reads and says: bytes (n, h, w, c) and logits (n, classes)."""
    raw = subprocess.run([program, run, *pictures], check=True, stdout=subprocess.PIPE).stdout
    head, raw = raw.split(b"\n", 1)
    head = json.loads(head)
    shape = [head[key] for key in ("n", "height", "width", "channels")]
    n = int(np.prod(shape))
    return (np.frombuffer(raw[:n], np.uint8).reshape(shape),
            np.frombuffer(raw[n:], np.float32).reshape(head["n"], head["logits"]))


def normalised(pixels, scale):
    divisor, mean, deviation = SCALES[scale]
    x = (pixels.astype(np.float32) / np.float32(divisor) - np.float32(mean)) / np.float32(deviation)
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2))


def softmax(x):
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


class Check:
    def __init__(self):
        self.failed = 0

    def near(self, what, got, wanted):
        off = np.abs(got - wanted) / np.maximum(1, np.abs(wanted))
        right = got.shape == wanted.shape and bool(np.all(off <= LIMIT))
        self.failed += not right
        print(f"{'ok' if right else 'not ok'} - {what}: off by {off.max():.1e} at most, "
              f"logits {wanted.min():.3g} to {wanted.max():.3g}")


    def same(self, what, got, wanted):
        right = all(np.array_equal(a, b) for a, b in zip(got, wanted))
        self.failed += not right
        print(f"{'ok' if right else 'not ok'} - {what}: the same bits")


def run_onnx(path, x):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    assert names == ["logits", "probabilities"], names
    parts = [session.run(names, {"input": x[i:i + 10]}) for i in range(0, len(x), 10)]
    return [np.concatenate(part) for part in zip(*parts)]


def same_padding(module):
    """Windows of torchvision's that stride look at what Keras' see."""
    for part in module.modules():
        if isinstance(part, torch.nn.Conv2d) and part.stride[0] > 1 and part.kernel_size[0] > 1:
            part.padding = (0, 0)
            part.register_forward_pre_hook(
                lambda conv, x: (networks.same(x[0], conv.kernel_size[0], conv.stride[0]),))


def torch_model(name, classes, pads_as_keras):
    if name.startswith("mobilenetv2"):
        width = float(name[12:] or 1)
        model = torchvision.models.mobilenet_v2(num_classes=classes, width_mult=width)
    elif name in ("resnet18", "resnet50", "alexnet"):
        model = getattr(torchvision.models, name)(num_classes=classes)
    else:
        model = networks.build(name, classes, "same" if name == "xception" else "symmetric")
        pads_as_keras = False
    if pads_as_keras:
        same_padding(model)
    return model.eval()


def exported(build, model, path, *extra):
    out = subprocess.run([build / "tandem", "export", model, "-o", path, "--json", *extra], check=True,
                         stdout=subprocess.PIPE).stdout
    return json.loads(out)


def check_onnx(check, build, model, name, stem, pixels, logits, is_logistic=False):
    """Floats in and bytes in; what the metadata say."""
    exported(build, model, f"{stem}.onnx")
    onnx.checker.check_model(f"{stem}.onnx", full_check=True)
    meta = {entry.key: entry.value for entry in onnx.load(f"{stem}.onnx").metadata_props}
    x = normalised(pixels, json.loads(meta["preprocess"])["scale"])
    got, probabilities = run_onnx(f"{stem}.onnx", x)
    check.near(f"{name}: onnxruntime's logits", got, logits)
    wanted = 1 / (1 + np.exp(-logits.astype(np.float64))) if is_logistic else softmax(logits)
    check.near(f"{name}: onnxruntime's probabilities", probabilities, wanted)
    exported(build, model, f"{stem}.onnx", "--preprocess")
    onnx.checker.check_model(f"{stem}.onnx", full_check=True)
    check.near(f"{name}: onnxruntime's logits from bytes", run_onnx(f"{stem}.onnx", pixels)[0], logits)
    return x, json.loads(meta["classes"])


def check_torch(check, build, model, name, stem, x, classes, logits):
    path = f"{stem}.safetensors"
    note = exported(build, model, path)["note"]
    with safe_open(path, "pt") as file:
        assert json.loads(file.metadata()["classes"]) == classes and file.metadata()["format"] == "pt"
    module = torch_model(name, len(classes), note is not None)
    module.load_state_dict(load_file(path), strict=True)
    with torch.no_grad():
        got = np.concatenate([module(torch.from_numpy(x[i:i + 10])).numpy() for i in range(0, len(x), 10)])
    check.near(f"{name}: PyTorch's logits", got, logits)


def check_keras(check, build, model, name, stem, x, logits):
    """In a process of its own: TensorFlow and PyTorch do not get along in one."""
    exported(build, model, f"{stem}.h5")
    np.savez(f"{stem}.npz", x=x.transpose(0, 2, 3, 1), logits=logits)
    script = pathlib.Path(__file__).with_name("export_keras.py")
    subprocess.run([sys.executable, "-W", "ignore", script, name, f"{stem}.h5", f"{stem}.npz"], check=True,
                   stderr=subprocess.DEVNULL)
    answer = np.load(f"{stem}.npz")
    check.near(f"{name}: Keras' logits", answer["logits"], logits)
    if "application" in answer:
        check.near(f"{name}: probabilities of keras.applications", answer["application"], softmax(logits))


def check_model(check, build, folder, name, pictures, n):
    run = folder / f"run-{name}"
    subprocess.run([build / "tandem", "train", pictures, "-o", run, "--model", name, "--batch", "8", "--quiet",
                    *TRAINING.get(name, ["--steps", "3"])], check=True, stdout=subprocess.DEVNULL)
    pixels, logits = answers(build / "bench/bench_logits", run, sorted(pictures.glob("*/*"))[:n])
    x, classes = check_onnx(check, build, run, name, folder / name, pixels, logits)
    assert classes == sorted(part.name for part in pictures.iterdir()), classes
    check_torch(check, build, run, name, folder / name, x, classes, logits)
    check_keras(check, build, run, name, folder / name, x, logits)
    for file in folder.glob(f"{name}.*"):
        file.unlink()


# What `train` makes beside a plain network: options, and how many classes.
TRAINED = {
    "hidden": (5, ["--model", "lenet5", "--hidden", "20", "--dropout", "0.5"]),
    "one-logit": (2, ["--model", "convnet7", "--size", "32", "--loss", "binary"]),
    "yes-and-no": (5, ["--model", "resnet20-cifar", "--loss", "binary", "--hidden", "12", "--ema", "0.9"]),
    "frozen": (4, ["--weights", "yes-and-no", "--freeze", "base", "--hidden", "16", "--dropout", "0.3"]),
}


def predicted(build, model, pictures):
    """What `tandem predict` says: logits (n, logits) and probabilities (n, classes), pictures in the order asked."""
    out = subprocess.run([build / "tandem", "predict", model, *pictures, "--json", "--logits", "--top", "1000"],
                         check=True, stdout=subprocess.PIPE).stdout
    answered = json.loads(out)["predictions"]
    probabilities = [[guess["probability"] for guess in sorted(p["top"], key=lambda guess: guess["index"])]
                     for p in answered]
    return np.array([p["logits"] for p in answered], np.float32), np.array(probabilities, np.float32)


def check_trained(check, build, folder, kind, n):
    """A run of `train`, exported: onnxruntime and Keras give the answers of `tandem predict` for the run's own images,
    and the file read again here gives bit-identical answers."""
    classes, options = TRAINED[kind]
    pictures, run, stem = folder / f"pictures-{classes}", folder / kind, folder / kind
    if not pictures.exists():
        subprocess.run([build / "tandem", "synth", pictures, "--classes", str(classes), "--per-class",
                        str(-(-n // classes)), "--size", "64", "--seed", "5", "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
    subprocess.run([build / "tandem", "train", pictures, "-o", run, "--epochs", "2", "--quiet", *options], check=True,
                   stdout=subprocess.DEVNULL, cwd=folder)
    files = sorted(pictures.glob("*/*"))[:n]
    logits, probabilities = answers = predicted(build, run, files)
    pixels, _ = answers(build / "bench/bench_logits", run, files)
    exported(build, run, f"{stem}.onnx", "--preprocess")
    onnx.checker.check_model(f"{stem}.onnx", full_check=True)
    if kind == "one-logit":  # ONNX has that of the second class, predict and Keras one a class
        assert np.array_equal(logits[:, 0], -logits[:, 1])
        logits = logits[:, 1:]
    got = run_onnx(f"{stem}.onnx", pixels)
    check.near(f"trained, {kind}: onnxruntime's logits are those of predict", got[0], logits)
    check.near(f"trained, {kind}: onnxruntime's probabilities are those of predict", got[1], probabilities)
    meta = {entry.key: entry.value for entry in onnx.load(f"{stem}.onnx").metadata_props}
    check_keras(check, build, run, f"trained, {kind}", stem,
                normalised(pixels, json.loads(meta["preprocess"])["scale"]), answers[0])
    for ending in ("safetensors", "h5"):
        exported(build, run, f"{stem}.{ending}")
        again = predicted(build, f"{stem}.{ending}", files)
        check.same(f"trained, {kind}: {ending} read again", again, answers)


def check_every_op(check, build, folder, pictures, n):
    for scale in SCALES:
        model = folder / f"every-{scale}.safetensors"
        subprocess.run([build / "bench/bench_every_op", scale, model], check=True)
        pixels, logits = answers(build / "bench/bench_logits", model, sorted(pictures.glob("*/*"))[:n])
        check_onnx(check, build, model, f"every op, {scale}", folder / "every", pixels, logits, True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=int, default=100)
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--trained", default=",".join(TRAINED))
    parser.add_argument("build", nargs="?", default="build", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(2)
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        pictures = folder / "pictures"
        subprocess.run([options.build / "tandem", "synth", pictures, "--classes", "5", "--per-class",
                        str(-(-options.pictures // 5)), "--size", "120", "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        build = options.build.resolve()
        check_every_op(check, build, folder, pictures, options.pictures)
        for name in options.models.split(","):
            check_model(check, build, folder, name, pictures, options.pictures)
        for kind in options.trained.split(",") if options.trained else []:
            check_trained(check, build, folder, kind, options.pictures)
    sys.exit(check.failed > 0)


if __name__ == "__main__":
    main()
