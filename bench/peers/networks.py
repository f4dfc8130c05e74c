"""The networks of src/models as PyTorch modules, written from the papers' tables: what users of PyTorch
would build. Modules carry the names of tandem's nodes, so that fixtures can pair the tensors. padding is
"symmetric" (as torchvision and timm pad) or "same" (as Keras does: one more after than before).
"""
import torch
import torch.nn.functional as F
from torch import nn


def same(x, kernel, stride, value=0.0):
    """x padded so that a window without padding gives ceil(side / stride) pixels a side."""
    pads = []
    for side in (x.shape[3], x.shape[2]):
        total = max((-(-side // stride) - 1) * stride + kernel - side, 0)
        pads += [total // 2, total - total // 2]
    return F.pad(x, pads, value=value)


class Conv(nn.Conv2d):
    def __init__(self, inputs, outputs, kernel, stride=1, pad=None, groups=1, bias=False, padding="symmetric"):
        self.is_same = padding == "same" and pad is None and stride > 1
        if pad is None:
            pad = 0 if self.is_same else kernel // 2
        super().__init__(inputs, outputs, kernel, stride, pad, groups=groups, bias=bias)

    def forward(self, x):
        if self.is_same:
            x = same(x, self.kernel_size[0], self.stride[0])
        return super().forward(x)


class Xception(nn.Module):
    """Chollet 2017, figure 5; names of keras.applications."""

    def __init__(self, classes, padding="symmetric"):
        super().__init__()
        self.padding = padding
        self.block1_conv1, self.block1_conv1_bn = Conv(3, 32, 3, 2, 0), self.norm(32)
        self.block1_conv2, self.block1_conv2_bn = Conv(32, 64, 3, 1, 0), self.norm(64)
        inputs = 64
        self.shortcuts = {}
        for block, outputs in ((2, 128), (3, 256), (4, 728)):
            self.separable(block, 1, inputs, outputs)
            self.separable(block, 2, outputs, outputs)
            self.shortcut(block, inputs, outputs)
            inputs = outputs
        for block in range(5, 13):
            for number in (1, 2, 3):
                self.separable(block, number, 728, 728)
        self.separable(13, 1, 728, 728)
        self.separable(13, 2, 728, 1024)
        self.shortcut(13, 728, 1024)
        self.separable(14, 1, 1024, 1536)
        self.separable(14, 2, 1536, 2048)
        self.predictions = nn.Linear(2048, classes) if classes else nn.Identity()

    @staticmethod
    def norm(channels):
        return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)

    def separable(self, block, number, inputs, outputs):
        name = f"block{block}_sepconv{number}"
        setattr(self, name, nn.Sequential())
        getattr(self, name).add_module("depthwise", Conv(inputs, inputs, 3, groups=inputs))
        getattr(self, name).add_module("pointwise", Conv(inputs, outputs, 1))
        setattr(self, name + "_bn", self.norm(outputs))

    def shortcut(self, block, inputs, outputs):
        setattr(self, f"block{block}_shortcut", Conv(inputs, outputs, 1, 2))
        setattr(self, f"block{block}_shortcut_bn", self.norm(outputs))

    def apply_separable(self, block, number, x):
        name = f"block{block}_sepconv{number}"
        return getattr(self, name + "_bn")(getattr(self, name)(x))

    def apply_shortcut(self, block, x):
        return getattr(self, f"block{block}_shortcut_bn")(getattr(self, f"block{block}_shortcut")(x))

    def pool(self, x):
        if self.padding == "same":
            return F.max_pool2d(same(x, 3, 2, value=float("-inf")), 3, 2)
        return F.max_pool2d(x, 3, 2, 1)

    def features(self, x):
        x = F.relu(self.block1_conv1_bn(self.block1_conv1(x)))
        x = F.relu(self.block1_conv2_bn(self.block1_conv2(x)))
        for block in (2, 3, 4, 13):
            if block == 13:
                for middle in range(5, 13):
                    y = x
                    for number in (1, 2, 3):
                        y = self.apply_separable(middle, number, F.relu(y))
                    x = x + y
            y = self.apply_separable(block, 1, x if block == 2 else F.relu(x))
            y = self.apply_separable(block, 2, F.relu(y))
            x = self.pool(y) + self.apply_shortcut(block, x)
        x = F.relu(self.apply_separable(14, 1, x))
        x = F.relu(self.apply_separable(14, 2, x))
        return x.mean((2, 3))

    def forward(self, x):
        return self.predictions(self.features(x))


def divisible(value, by=8):
    """Channels of a narrower MobileNet: the nearest multiple, never below 90 % of what was meant."""
    rounded = max(by, int(value + by / 2) // by * by)
    return rounded + by if rounded < 0.9 * value else rounded


class MobileNetV2(nn.Module):
    """Sandler et al. 2018, table 2; names of keras.applications."""

    TABLE = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
             (6, 320, 1, 1))

    def __init__(self, classes, padding="symmetric", width=1.0, momentum=0.001, eps=1e-3):
        super().__init__()
        self.momentum, self.eps, self.padding = momentum, eps, padding
        inputs = divisible(32 * width)
        self.Conv1, self.bn_Conv1 = Conv(3, inputs, 3, 2, padding=padding), self.norm(inputs)
        self.blocks = []
        for expansion, channels, repeats, stride in self.TABLE:
            outputs = divisible(int(channels * width))
            for i in range(repeats):
                self.block(inputs, outputs, expansion, stride if i == 0 else 1)
                inputs = outputs
        last = divisible(1280 * width) if width > 1 else 1280
        self.Conv_1, self.Conv_1_bn = Conv(inputs, last, 1), self.norm(last)
        self.predictions = nn.Linear(last, classes) if classes else nn.Identity()

    def norm(self, channels):
        return nn.BatchNorm2d(channels, eps=self.eps, momentum=self.momentum)

    def block(self, inputs, outputs, expansion, stride):
        name = f"block_{len(self.blocks)}_" if self.blocks else "expanded_conv_"
        hidden = inputs * expansion
        if expansion > 1:
            setattr(self, name + "expand", Conv(inputs, hidden, 1))
            setattr(self, name + "expand_BN", self.norm(hidden))
        setattr(self, name + "depthwise",
                Conv(hidden, hidden, 3, stride, groups=hidden, padding=self.padding))
        setattr(self, name + "depthwise_BN", self.norm(hidden))
        setattr(self, name + "project", Conv(hidden, outputs, 1))
        setattr(self, name + "project_BN", self.norm(outputs))
        self.blocks.append((name, expansion > 1, stride == 1 and inputs == outputs))

    def step(self, name, x):
        return getattr(self, name + "_BN")(getattr(self, name)(x))

    def features(self, x):
        x = F.relu6(self.bn_Conv1(self.Conv1(x)))
        for name, expands, adds in self.blocks:
            y = F.relu6(self.step(name + "expand", x)) if expands else x
            y = F.relu6(self.step(name + "depthwise", y))
            y = self.step(name + "project", y)
            x = x + y if adds else y
        return F.relu6(self.Conv_1_bn(self.Conv_1(x))).mean((2, 3))

    def forward(self, x):
        return self.predictions(self.features(x))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = Conv(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = Conv(outputs, outputs, 3), nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(Conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


class Bottleneck(nn.Module):
    """The stride lies on the 3 x 3 convolution ("v1.5"), as everywhere today."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        hidden = outputs // 4
        self.conv1, self.bn1 = Conv(inputs, hidden, 1), nn.BatchNorm2d(hidden)
        self.conv2, self.bn2 = Conv(hidden, hidden, 3, stride), nn.BatchNorm2d(hidden)
        self.conv3, self.bn3 = Conv(hidden, outputs, 1), nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(Conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
    """He et al. 2015, table 1; names of torchvision."""

    def __init__(self, classes, block, repeats, widths):
        super().__init__()
        self.conv1, self.bn1 = Conv(3, 64, 7, 2), nn.BatchNorm2d(64)
        inputs = 64
        for i, (n, outputs) in enumerate(zip(repeats, widths)):
            layers = []
            for j in range(n):
                layers.append(block(inputs, outputs, 2 if i > 0 and j == 0 else 1))
                inputs = outputs
            setattr(self, f"layer{i + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(inputs, classes) if classes else nn.Identity()

    def features(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean((2, 3))

    def forward(self, x):
        return self.fc(self.features(x))


class CifarBlock(nn.Module):
    """The shortcut has no weights (the paper's option A): every second pixel, new channels of zeros."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = Conv(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = Conv(outputs, outputs, 3), nn.BatchNorm2d(outputs)
        self.stride, self.grows = stride, (outputs - inputs) // 2

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.grows:
            x = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.grows, self.grows))
        return F.relu(y + x)


class CifarResNet(nn.Module):
    """He et al. 2015, section 4.2: 6n + 2 layers on 32 x 32 pixels."""

    def __init__(self, classes, layers):
        super().__init__()
        self.conv1, self.bn1 = Conv(3, 16, 3), nn.BatchNorm2d(16)
        inputs = 16
        for i, outputs in enumerate((16, 32, 64)):
            blocks = []
            for j in range((layers - 2) // 6):
                blocks.append(CifarBlock(inputs, outputs, 2 if i > 0 and j == 0 else 1))
                inputs = outputs
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.linear = nn.Linear(64, classes) if classes else nn.Identity()

    def features(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        return self.layer3(self.layer2(self.layer1(x))).mean((2, 3))

    def forward(self, x):
        return self.linear(self.features(x))


class AlexNet(nn.Module):
    """Krizhevsky 2014 ("one weird trick"), names of torchvision. dropout 0 compares without chance."""

    def __init__(self, classes, dropout=0.5, side=6):
        super().__init__()
        layers, inputs = [], 3
        for outputs, kernel, stride, pad, pools in ((64, 11, 4, 2, True), (192, 5, 1, 2, True),
                                                    (384, 3, 1, 1, False), (256, 3, 1, 1, False),
                                                    (256, 3, 1, 1, True)):
            layers += [Conv(inputs, outputs, kernel, stride, pad, bias=True), nn.ReLU()]
            layers += [nn.MaxPool2d(3, 2)] if pools else []
            inputs = outputs
        self.features_ = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(256 * side * side, 4096), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, classes))
        self.classifier[1].flattens = (256, side, side)

    def features(self, x):
        return self.classifier[:6](self.features_(x).flatten(1))

    def forward(self, x):
        return self.classifier[6](self.features(x))


class ConvNet7(nn.Module):
    """tandem's own small network."""

    def __init__(self, classes):
        super().__init__()
        inputs = 3
        for number, outputs in enumerate((32, 32, 64, 64, 128, 128), 1):
            setattr(self, f"conv{number}", Conv(inputs, outputs, 3))
            setattr(self, f"bn{number}", nn.BatchNorm2d(outputs))
            inputs = outputs
        self.dense = nn.Linear(inputs, classes) if classes else nn.Identity()

    def features(self, x):
        for number in range(1, 7):
            x = F.relu(getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(x)))
            x = F.max_pool2d(x, 2) if number in (1, 3, 5) else x
        return x.mean((2, 3))

    def forward(self, x):
        return self.dense(self.features(x))


class LeNet5(nn.Module):
    """LeCun et al. 1998 as it is trained today: ReLU and max pooling."""

    def __init__(self, classes):
        super().__init__()
        self.conv1, self.conv2 = Conv(1, 6, 5, 1, 2, bias=True), Conv(6, 16, 5, 1, 0, bias=True)
        self.dense1, self.dense2 = nn.Linear(400, 120), nn.Linear(120, 84)
        self.dense1.flattens = (16, 5, 5)  # what its inputs were: channels, height, width
        self.dense3 = nn.Linear(84, classes) if classes else nn.Identity()

    def features(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return F.relu(self.dense2(F.relu(self.dense1(x.flatten(1)))))

    def forward(self, x):
        return self.dense3(self.features(x))


KNOWN = ("xception", "mobilenetv2", "mobilenetv2-0.35", "resnet18", "resnet50", "resnet20-cifar", "convnet7",
         "alexnet", "lenet5")


def build(name, classes, padding="symmetric", image=None):
    """By tandem's name of the network; image, if it is not the usual size, matters to some."""
    if name == "xception":
        return Xception(classes, padding)
    if name.startswith("mobilenetv2"):
        return MobileNetV2(classes, padding, float(name[12:] or 1))
    if name == "resnet18":
        return ResNet(classes, BasicBlock, (2, 2, 2, 2), (64, 128, 256, 512))
    if name == "resnet50":
        return ResNet(classes, Bottleneck, (3, 4, 6, 3), (256, 512, 1024, 2048))
    if name.startswith("resnet") and name.endswith("-cifar"):
        return CifarResNet(classes, int(name[6:-6]))
    if name == "convnet7":
        return ConvNet7(classes)
    if name == "alexnet":
        return AlexNet(classes, side=((((image or 224) - 7) // 4 - 1) // 2 - 1) // 2 // 2)
    if name == "lenet5":
        return LeNet5(classes)
    raise SystemExit(f"no network {name}; there are {', '.join(KNOWN)}")


def input_channels(name):
    return 1 if name == "lenet5" else 3


if __name__ == "__main__":
    for known in KNOWN:
        print(known, sum(p.numel() for p in build(known, 10 if known == "lenet5" else 1000).parameters()))
