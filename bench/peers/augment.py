"""augment.py SECONDS: pictures of 224 x 224 a second that Pillow augments on one thread.

The steps of flip,crop:8,rotate:15,jitter:0.4 as torchvision takes them on Pillow pictures.
"""
import random
import sys
import time

from PIL import Image, ImageEnhance, ImageOps

SIDE = 224
CHANGES = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)


def change(picture, draw):
    grown = ImageOps.expand(picture, 8)
    x, y = draw.randrange(17), draw.randrange(17)
    picture = grown.crop((x, y, x + SIDE, y + SIDE))
    if draw.random() < 0.5:
        picture = ImageOps.mirror(picture)
    picture = picture.rotate(draw.uniform(-15, 15), Image.Resampling.BILINEAR)
    for enhance in draw.sample(CHANGES, 3):
        picture = enhance(picture).enhance(draw.uniform(0.6, 1.4))
    return picture


def main():
    raw = bytes((i * 7 + i // 671) & 255 for i in range(SIDE * SIDE * 3))
    picture = Image.frombytes("RGB", (SIDE, SIDE), raw)
    draw = random.Random(1)
    seconds, n, start = float(sys.argv[1]), 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        change(picture, draw)
        n += 1
    print(f"{n / (time.perf_counter() - start):.0f} images/s")


main()
