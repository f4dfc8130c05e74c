"""make_large.py DATA FOLDER [N]: N (8) photos of 4000 x 3000 (12 megapixels, JPEG, quality 90, 4:2:0) as
telephones store them, each a mosaic of 1000 x 750 windows of the test data's larger photos, not
enlarged, so that their detail takes as long to decode as that of real ones. In FOLDER/odd sixteen
smaller ones whose sides no reduction divides, of all orientations, in colour and grey. Prints what it
made. Always the same."""
import glob
import os
import random
import sys

from PIL import Image, ImageOps

WIDTH, HEIGHT, TILES = 4000, 3000, 4
ORIENTATION = 274  # the tag


def window(pictures, choose):
    picture = choose.choice(pictures)
    w, h = WIDTH // TILES, HEIGHT // TILES
    x, y = choose.randint(0, picture.width - w), choose.randint(0, picture.height - h)
    tile = picture.crop((x, y, x + w, y + h))
    return ImageOps.mirror(tile) if choose.random() < 0.5 else tile


def make_odd(pictures, folder, choose):
    os.makedirs(folder, exist_ok=True)
    for n in range(16):
        tile = window(pictures, choose).resize((983 + 101 * n, 1555 - 37 * n), Image.LANCZOS)
        exif = Image.Exif()
        exif[ORIENTATION] = n % 8 + 1
        (tile.convert("L") if n in (3, 13) else tile).save(
            os.path.join(folder, f"{n:02}.jpg"), quality=90, subsampling=n % 3, exif=exif,
            progressive=n % 5 == 0)


def main():
    data, folder = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    os.makedirs(folder, exist_ok=True)
    pictures = []
    for path in sorted(glob.glob(os.path.join(data, "datasets/imagenet_check/*.JPEG")) +
                       glob.glob(os.path.join(data, "images/exif/Landscape_1.jpg"))):
        picture = Image.open(path).convert("RGB")
        if picture.width >= WIDTH // TILES and picture.height >= HEIGHT // TILES:
            pictures.append(picture)
    choose = random.Random(12)
    n_bytes = 0
    for n in range(count):
        made = Image.new("RGB", (WIDTH, HEIGHT))
        for row in range(TILES):
            for column in range(TILES):
                made.paste(window(pictures, choose),
                           (column * WIDTH // TILES, row * HEIGHT // TILES))
        path = os.path.join(folder, f"{n:03}.jpg")
        made.save(path, quality=90, subsampling=2)
        n_bytes += os.path.getsize(path)
    make_odd(pictures, os.path.join(folder, "odd"), choose)
    print(f"{count} photos of {WIDTH} x {HEIGHT} from {len(pictures)} pictures, "
          f"{n_bytes / count:.0f} bytes each")


if __name__ == "__main__":
    main()
