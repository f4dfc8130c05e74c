"""weights_check.py TANDEM DATA [PART...]: weights of other programs give the answers of their own program.

DATA is the folder with weights/ and datasets/; what it lacks is said and passed over. PARTs (default all):

    imagenet  MobileNetV2 1.0 reproduces expected_top5.csv in both paddings: same best class, logits within 0.05
    cifar     ResNet-20 .th and LeNet .pth: logits of PyTorch within 1e-4 on 2,000 pictures
    keras     a Teachable Machine and a mini-Xception .h5: outputs of Keras within 1e-4 on 100 pictures
    torch     torchvision's networks with seeded weights, .pth (zip and legacy) and .safetensors: logits within 1e-4
    apps      keras.applications with seeded weights, .h5, .keras, .weights.h5, without top: logits within 1e-4

Exit code 1 when one of them differs. Differences are of logits, or of probabilities where a network of the
files prints no logits; they are reported relative to 1 + |value|."""
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
from PIL import Image

TANDEM, DATA = os.path.abspath(sys.argv[1]), sys.argv[2]
PARTS = sys.argv[3:] or ["imagenet", "cifar", "keras", "torch", "apps"]
WORK = tempfile.TemporaryDirectory()
bad = 0


def tandem(model, pictures, *options):
    """Logits and probabilities, a row a picture, in the order of the names."""
    command = [TANDEM, "predict", model, pictures, "--json", "--logits", "--top", "1000", *options]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{ran.stderr}")
    rows = sorted(json.loads(ran.stdout)["predictions"], key=lambda row: row["path"])
    logits = np.array([row["logits"] for row in rows], np.float64)
    chances = np.zeros_like(logits)
    for i, row in enumerate(rows):
        for guess in row["top"]:
            chances[i, guess["index"]] = guess["probability"]
    return logits, chances


def report(name, ours, theirs, tolerance=1e-4):
    global bad
    theirs = np.asarray(theirs, np.float64)
    worst = np.abs(ours - theirs).max() if ours.shape == theirs.shape else np.inf
    relative = (np.abs(ours - theirs) / (1 + np.abs(theirs))).max() if np.isfinite(worst) else np.inf
    same = (ours.argmax(1) == theirs.argmax(1)).sum() if np.isfinite(worst) else 0
    fine = relative <= tolerance
    bad += not fine
    print(f"{'ok  ' if fine else 'BAD '} {name:58s} worst {relative:.1e} (values to {np.abs(theirs).max():.3g}, "
          f"{theirs.std(0).mean():.2g} between pictures), same best class {same} of {len(theirs)}", flush=True)


def folder(pictures):
    """Pictures (uint8, height × width × channels) as PNG files of a new folder."""
    where = tempfile.mkdtemp(dir=WORK.name)
    for i, picture in enumerate(pictures):
        Image.fromarray(picture.squeeze()).save(f"{where}/{i:05d}.png", compress_level=1)
    return where


def noise(n, size, channels=3):
    """Smooth pictures, the same for the same arguments."""
    random = np.random.default_rng(size)
    coarse = random.integers(0, 256, (n, 9, 9, channels)).astype(np.uint8)
    return np.stack([np.asarray(Image.fromarray(c.squeeze()).resize((size, size), Image.BICUBIC)).reshape(
        size, size, channels) for c in coarse])


def missing(path):
    if os.path.exists(path):
        return False
    print(f"skip {path} is not there")
    return True


# ---- published weights ----------------------------------------------------------------------------

def imagenet():
    global bad
    weights, pictures = f"{DATA}/weights/mobilenetv2_1.0_224_imagenet.safetensors", f"{DATA}/datasets/imagenet_check"
    if missing(weights) or missing(pictures):
        return
    rows = list(csv.DictReader(open(f"{pictures}/expected_top5.csv")))
    names = sorted(row["file"] for row in rows)
    for padding in ("same", "symmetric"):
        logits, _ = tandem(weights, pictures, "--model", "mobilenetv2", "--fit", "crop", "--crop-fraction", "0.875",
                           "--resample", "bilinear", "--scale", "tf", "--padding", padding)
        worst, same = 0.0, 0
        for row in rows:
            wanted = [pair.split(":") for pair in row[f"top5_logits_{padding}_padding"].split()]
            ours = logits[names.index(row["file"])]
            worst = max(worst, *(abs(ours[int(i)] - float(value)) for i, value in wanted))
            same += ours.argmax() == int(wanted[0][0])
        fine = worst <= 0.05 and same == len(rows)
        bad += not fine
        print(f"{'ok  ' if fine else 'BAD '} MobileNetV2 1.0, {padding} padding: logits within {worst:.4f}, "
              f"same best class {same} of {len(rows)}", flush=True)


def cifar_pictures():
    raw = np.frombuffer(gzip.open(f"{DATA}/datasets/cifar10-bin/data_batch_1_first2000.bin.gz").read(), np.uint8)
    return raw.reshape(-1, 3073)[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


def cifar():
    import torch
    from torch import nn
    import torch.nn.functional as F
    if missing(f"{DATA}/datasets/cifar10-bin") or missing(f"{DATA}/weights/resnet20-cifar10-12fca82f.th"):
        return

    class Block(nn.Module):
        def __init__(self, ins, outs, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(ins, outs, 3, stride, 1, bias=False), nn.BatchNorm2d(outs)
            self.conv2, self.bn2 = nn.Conv2d(outs, outs, 3, 1, 1, bias=False), nn.BatchNorm2d(outs)

        def forward(self, x):
            y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
            if y.shape != x.shape:
                grown = y.shape[1] - x.shape[1]
                x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, grown // 2, grown // 2))
            return F.relu(x + y)

    class ResNet20(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
            self.layer1 = nn.Sequential(*[Block(16, 16, 1) for _ in range(3)])
            self.layer2 = nn.Sequential(Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1))
            self.layer3 = nn.Sequential(Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1))
            self.linear = nn.Linear(64, 10)

        def forward(self, x):
            x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))))
            return self.linear(x.mean((2, 3)))

    class LeNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5)
            self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.conv1(x)), 2)
            x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
            return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))

    pictures = cifar_pictures()
    where = folder(pictures)
    x = torch.from_numpy(pictures.transpose(0, 3, 1, 2).copy()).double() / 255
    means, deviations = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    for name, network, file, model, inputs in [
            ("ResNet-20 .th", ResNet20(), "resnet20-cifar10-12fca82f.th", "resnet20-cifar",
             (x - means.view(1, 3, 1, 1)) / deviations.view(1, 3, 1, 1)),
            ("LeNet .pth", LeNet(), "cifar_net_lenet.pth", "lenet5", (x - 0.5) / 0.5)]:
        loaded = torch.load(f"{DATA}/weights/{file}", map_location="cpu", weights_only=True)
        loaded = {key.removeprefix("module."): value for key, value in loaded.get("state_dict", loaded).items()}
        network.load_state_dict(loaded, strict=True)
        with torch.no_grad():
            theirs = network.eval()(inputs.float()).numpy()
        report(f"{name}, {len(pictures)} pictures", tandem(f"{DATA}/weights/{file}", where, "--model", model)[0], theirs)


def photos(n, size, grey):
    files = sorted(os.path.join(at, name) for at, _, names in os.walk(f"{DATA}/datasets/caltech101_10")
                   for name in names if name.endswith(".jpg"))
    opened = [Image.open(file).convert("L" if grey else "RGB") for file in files[:: len(files) // n][:n]]
    return np.stack([np.asarray(p.resize((size, size), Image.BICUBIC)).reshape(size, size, -1) for p in opened])


def open_old_keras(file):
    """A model of Keras 2 in Keras 3, which refuses the groups that depthwise layers had."""
    import h5py
    import keras
    copy = f"{WORK.name}/{os.path.basename(file)}.h5"
    open(copy, "wb").write(open(file, "rb").read())

    def clean(value):
        if isinstance(value, list):
            return [clean(v) for v in value]
        if not isinstance(value, dict):
            return value
        if value.get("class_name") in ("DepthwiseConv2D", "SeparableConv2D"):
            value["config"].pop("groups", None)
        if value.get("class_name") == "Model":
            value["class_name"] = "Functional"
        for ends in ("input_layers", "output_layers"):  # else lists of one tensor go from model to model
            if len(value.get(ends, ())) == 1:
                value[ends] = value[ends][0]
        return {key: clean(v) for key, v in value.items()}

    with h5py.File(copy, "r+") as opened:
        opened.attrs["model_config"] = json.dumps(clean(json.loads(opened.attrs["model_config"])))
    return keras.models.load_model(copy, compile=False)


def keras_files():
    for name, file, size, grey in [("Teachable Machine, MobileNetV2 0.35", "tm_waste_4class_keras_model.h5", 224, False),
                                   ("mini-Xception of faces", "fer2013_mini_XCEPTION.119-0.65.hdf5", 48, True)]:
        path = f"{DATA}/weights/{file}"
        if missing(path) or missing(f"{DATA}/datasets/caltech101_10"):
            continue
        pictures = photos(100, size, grey)
        theirs = open_old_keras(path).predict(pictures / 127.5 - 1.0, verbose=0)
        report(f"{name}, {len(pictures)} pictures, outputs", tandem(path, folder(pictures), "--scale", "tf")[1], theirs)


# ---- seeded weights -------------------------------------------------------------------------------

def torch_networks():
    import torch
    import torchvision
    from safetensors.torch import save_file
    means, deviations = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    pictures = noise(4, 224)
    where = folder(pictures)
    x = torch.from_numpy(((pictures / 255 - means) / deviations).transpose(0, 3, 1, 2).astype(np.float32))
    for name, ours in [("mobilenet_v2", "mobilenetv2"), ("resnet18", "resnet18"), ("resnet50", "resnet50"),
                       ("alexnet", "alexnet")]:
        torch.manual_seed(7)
        network = getattr(torchvision.models, name)(weights=None)
        with torch.no_grad():
            for module in network.modules():
                if isinstance(module, torch.nn.BatchNorm2d):
                    module.weight.uniform_(0.5, 1.0)
                    module.bias.uniform_(-0.2, 0.2)
                    module.momentum = 1.0
            if name != "alexnet":
                network.train()(x)  # statistics of these pictures, or deep networks hardly see them
            theirs = network.eval()(x).numpy()
        state = {key: value.contiguous() for key, value in network.state_dict().items()}
        torch.save(state, f"{WORK.name}/{name}.pth")
        torch.save({"epoch": 3, "state_dict": {f"module.{k}": v for k, v in state.items()}},
                   f"{WORK.name}/{name}-legacy.pth", _use_new_zipfile_serialization=False)
        save_file(state, f"{WORK.name}/{name}.safetensors")
        for file in (f"{name}.pth", f"{name}-legacy.pth", f"{name}.safetensors"):
            report(f"torchvision {file}", tandem(f"{WORK.name}/{file}", where, "--model", ours, "--fit", "stretch")[0],
                 theirs)
            os.remove(f"{WORK.name}/{file}")


def seed_keras(model, inputs):
    """He's spread for kernels, and the statistics of these inputs, so that values stay near 1 and see them."""
    random = np.random.default_rng(11)
    for layer in model.layers:
        values = []
        for weight in layer.weights:
            shape, name = tuple(weight.shape), weight.name
            if "kernel" in name:
                fan_in = np.prod(shape[:2]) if "depthwise" in layer.__class__.__name__.lower() or "depthwise" in name \
                    else np.prod(shape[:-1])
                values.append(random.normal(0, np.sqrt(1.7 / fan_in), shape))
            elif "gamma" in name or "variance" in name:
                values.append(random.uniform(0.7, 1.2, shape))
            else:
                values.append(random.uniform(-0.1, 0.1, shape))
        layer.set_weights(values)
    norms = [layer for layer in model.layers if layer.__class__.__name__ == "BatchNormalization"]
    momenta = [layer.momentum for layer in norms]
    for layer in norms:
        layer.momentum = 0.0
    model(inputs, training=True)
    for layer, momentum in zip(norms, momenta):
        layer.momentum = momentum


def apps():
    import h5py
    import keras
    from keras.src.legacy.saving import legacy_h5_format
    made = keras.applications
    for name, make, size, ours in [
            ("Xception", made.Xception, 299, "xception"),
            ("MobileNetV2", made.MobileNetV2, 224, "mobilenetv2"),
            ("MobileNetV2-0.35", lambda **k: made.MobileNetV2(alpha=0.35, **k), 224, "mobilenetv2-0.35"),
            ("ResNet50", made.ResNet50, 224, "resnet50")]:
        keras.utils.clear_session()
        pictures = noise(3, size)
        where = folder(pictures)
        model = make(weights=None, input_shape=(size, size, 3))
        # The preprocessing of keras.applications, which a model of its name expects.
        bgr = pictures[..., ::-1] - np.array([103.939, 116.779, 123.68])
        inputs = (bgr if ours == "resnet50" else pictures / 127.5 - 1.0).astype(np.float32)
        seed_keras(model, inputs)
        stem = f"{WORK.name}/{name}"
        model.save(f"{stem}.h5")
        model.save(f"{stem}.keras")
        model.save_weights(f"{stem}.weights.h5")
        with h5py.File(f"{stem}-weights.h5", "w") as file:
            legacy_h5_format.save_weights_to_hdf5_group(file, model)
        model.layers[-1].activation = keras.activations.linear
        theirs = model.predict(inputs, verbose=0)
        for file, options in [(f"{stem}.h5", ()), (f"{stem}.keras", ()), (f"{stem}.h5", ("--model", ours)),
                              (f"{stem}.weights.h5", ("--model", ours)), (f"{stem}-weights.h5", ("--model", ours))]:
            report(f"Keras {os.path.basename(file)} {' '.join(options)}",
                 tandem(file, where, "--fit", "stretch", *options)[0], theirs)
        bare = make(weights=None, input_shape=(size, size, 3), include_top=False, pooling="avg")
        bare.set_weights(model.get_weights()[:-2])
        bare.save(f"{stem}-notop.h5")
        report(f"Keras {name}-notop.h5, features",
             tandem(f"{stem}-notop.h5", where, "--fit", "stretch")[0], bare.predict(inputs, verbose=0))


for part, run in [("imagenet", imagenet), ("cifar", cifar), ("keras", keras_files), ("torch", torch_networks),
                  ("apps", apps)]:
    if part in PARTS:
        run()
print("weights_check:", "FAILED" if bad else "all equal")
sys.exit(1 if bad else 0)
