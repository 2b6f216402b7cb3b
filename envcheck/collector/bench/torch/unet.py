"""U-Net in two and in three dimensions, which finds what is bright in an image."""

from .. import architecture

CLASSES = 2
RATE = (0.001, 0.0001)
_COARSE = 8  # cells of an image on a side


def make(torch, row):
    nn = torch.nn
    size = architecture.unet(row)
    flat = size.dimensions == 2
    convolution = nn.Conv2d if flat else nn.Conv3d
    up = nn.ConvTranspose2d if flat else nn.ConvTranspose3d
    pool = nn.MaxPool2d if flat else nn.MaxPool3d
    widths = [size.filters << level for level in range(size.levels + 1)]

    def twice(inputs, outputs):
        return nn.Sequential(
            convolution(inputs, outputs, 3, padding=1),
            nn.ReLU(inplace=True),
            convolution(outputs, outputs, 3, padding=1),
            nn.ReLU(inplace=True),
        )

    class TorchUNet(nn.Module):
        def __init__(self):
            nn.Module.__init__(self)
            self.down = nn.ModuleList([twice(a, b) for a, b in zip([1] + widths[:-2], widths[:-1])])
            self.bottom = twice(widths[-2], widths[-1])
            pairs = list(zip(widths[:0:-1], widths[-2::-1]))
            self.up = nn.ModuleList([up(a, b, 2, 2) for a, b in pairs])
            self.beside = nn.ModuleList([twice(2 * b, b) for _a, b in pairs])
            self.pool = pool(2)
            self.out = convolution(widths[0], CLASSES, 1)

        def forward(self, x):
            kept = []
            for part in self.down:
                kept.append(part(x))
                x = self.pool(kept[-1])
            x = self.bottom(x)
            for number in range(len(self.up)):
                x = torch.cat([kept[-1 - number], self.up[number](x)], 1)
                x = self.beside[number](x)
            return self.out(x)

    return TorchUNet(), nn.functional.cross_entropy


def optimizer(torch, parameters, rate):
    return torch.optim.Adam(parameters, lr=rate)


def samples(torch, row, device, random):
    dimensions, _levels, _filters, edge = architecture.unet(row)

    def fresh():
        shape = [row["batch"], 1] + [min(_COARSE, edge)] * dimensions
        coarse = torch.rand(shape, device=device, generator=random)
        bright = torch.nn.functional.interpolate(coarse, size=[edge] * dimensions) > 0.5
        noise = torch.randn(bright.shape, device=device, generator=random)
        return (bright.float() + 0.5 * noise,), bright[:, 0].long()

    return fresh
