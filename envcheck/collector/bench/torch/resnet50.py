"""ResNet-50 v1.5: the stride of a bottleneck is in its 3x3 convolution."""

from . import patterns

BLOCKS = (
    (64, 3, 1),
    (128, 4, 2),
    (256, 6, 2),
    (512, 3, 2),
)  # channels, how many, stride of the first
WIDER = 4  # times the channels leave a bottleneck
CLASSES = 1000
RATE = (0.01, 0.01)
_SEEN = 10  # classes that the images are of


def make(torch, row):
    nn = torch.nn

    def convolution(inputs, outputs, kernel, stride=1):
        return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)

    class TorchBottleneck(nn.Module):
        def __init__(self, inputs, channels, stride):
            nn.Module.__init__(self)
            outputs = WIDER * channels
            self.conv1 = convolution(inputs, channels, 1)
            self.bn1 = nn.BatchNorm2d(channels)
            self.conv2 = convolution(channels, channels, 3, stride)
            self.bn2 = nn.BatchNorm2d(channels)
            self.conv3 = convolution(channels, outputs, 1)
            self.bn3 = nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU(inplace=True)
            self.shortcut = None
            if stride != 1 or inputs != outputs:
                parts = convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)
                self.shortcut = nn.Sequential(*parts)

        def forward(self, x):
            y = self.relu(self.bn1(self.conv1(x)))
            y = self.relu(self.bn2(self.conv2(y)))
            y = self.bn3(self.conv3(y))
            return self.relu(y + (x if self.shortcut is None else self.shortcut(x)))

    parts = [convolution(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    parts.append(nn.MaxPool2d(3, 2, 1))
    inputs = 64
    for channels, count, stride in BLOCKS:
        for number in range(count):
            parts.append(TorchBottleneck(inputs, channels, stride if number == 0 else 1))
            inputs = WIDER * channels
    parts += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES)]
    net = nn.Sequential(*parts)
    for part in net.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
    return net, nn.functional.cross_entropy


def optimizer(torch, parameters, rate):
    return torch.optim.SGD(parameters, lr=rate, momentum=0.9)


def samples(torch, row, device, random):
    known = patterns.of_classes(torch, _SEEN, (3, row["image"]), device, random)

    def fresh():
        images, targets = patterns.classified(torch, known, row["batch"], 1.0, random)
        return (images,), targets

    return fresh
