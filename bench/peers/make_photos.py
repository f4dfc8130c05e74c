"""make_photos.py DATA FOLDER: photos of 500 x 375 as cameras and web sites store them (JPEG, quality
88, 4:2:0), made from the larger photos of the test data: the largest 4:3 part of each, reduced, and
nine windows of pictures that are twice as large or more. Prints what it made. Always the same."""
import glob
import os
import sys

from PIL import Image

WIDTH, HEIGHT = 500, 375


def windows(picture):
    """Boxes of 4:3: the largest one, then a 3 x 3 grid of windows where there is room for them."""
    scale = min(picture.width / WIDTH, picture.height / HEIGHT)
    w, h = WIDTH * scale, HEIGHT * scale
    yield (picture.width - w) / 2, (picture.height - h) / 2, w, h
    if scale < 2:
        return
    w, h = 1.25 * WIDTH, 1.25 * HEIGHT
    for row in range(3):
        for column in range(3):
            yield (picture.width - w) * column / 2, (picture.height - h) * row / 2, w, h


def main():
    data, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    n, n_bytes = 0, 0
    for path in sorted(glob.glob(os.path.join(data, "datasets/imagenet_check/*.JPEG")) +
                       glob.glob(os.path.join(data, "images/exif/Landscape_1.jpg"))):
        picture = Image.open(path).convert("RGB")
        if min(picture.width / WIDTH, picture.height / HEIGHT) < 0.74:
            continue  # enlarging much would make smooth pictures that decode too easily
        for x, y, w, h in windows(picture):
            made = os.path.join(folder, f"{n:03}.jpg")
            picture.resize((WIDTH, HEIGHT), Image.LANCZOS, box=(x, y, x + w, y + h)).save(
                made, quality=88, subsampling=2)
            n, n_bytes = n + 1, n_bytes + os.path.getsize(made)
    print(f"{n} photos of {WIDTH} x {HEIGHT}, {n_bytes / max(n, 1):.0f} bytes each")


if __name__ == "__main__":
    main()
