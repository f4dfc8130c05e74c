"""decode_pillow.py SIDE SECONDS FILE...: the steps of tandem's preprocessing with Pillow, one thread:
decode, orient, thumbnail (Lanczos), centre on white. Prints images a second by the clock and of
processor time."""
import io
import sys
import time

from PIL import Image, ImageOps


def prepare(data, side, reducing_gap=2.0):
    picture = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    if picture.mode != "RGB":
        picture = picture.convert("RGB")
    picture.thumbnail((side, side), Image.LANCZOS, reducing_gap=reducing_gap)
    out = Image.new("RGB", (side, side), (255, 255, 255))
    out.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2))
    return out


def main():
    side, seconds = int(sys.argv[1]), float(sys.argv[2])
    files = []
    for path in sys.argv[3:]:
        with open(path, "rb") as file:
            files.append(file.read())
    for data in files[:50]:
        prepare(data, side)
    began, worked, n = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - began < seconds:
        for data in files:
            prepare(data, side)
        n += len(files)
    print(f"{len(files)} files; images/s: {n / (time.perf_counter() - began):.1f}; "
          f"images/s of processor time: {n / (time.process_time() - worked):.1f}")


if __name__ == "__main__":
    main()
