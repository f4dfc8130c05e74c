"""decode_pillow.py SIDE SECONDS FILE...: the steps of tandem's preprocessing with Pillow, one thread:
decode, orient, thumbnail (Lanczos), centre on white. With the word draft before SIDE thumbnail()
comes first, so that it may decode a reduced JPEG. Prints images a second by the clock and of
processor time."""
import io
import sys
import time

from PIL import Image, ImageOps


ORIENTATION = 274  # the tag


def prepare(data, side, reducing_gap=2.0):
    picture = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    if picture.mode != "RGB":
        picture = picture.convert("RGB")
    picture.thumbnail((side, side), Image.LANCZOS, reducing_gap=reducing_gap)
    return centre(picture, side)


def prepare_draft(data, side):
    """Turned or converted first, a picture would be decoded whole; so thumbnail() comes first. But where
    blocks begin and which pass comes first can be seen afterwards: what has to be turned is turned
    between the two steps of thumbnail(), draft() and resize()."""
    picture = Image.open(io.BytesIO(data))
    orientation = picture.getexif().get(ORIENTATION, 1)
    if orientation <= 1:
        picture.thumbnail((side, side), Image.LANCZOS)
        return centre(picture.convert("RGB"), side)
    final = Image.new("L", picture.size[::-1] if orientation >= 5 else picture.size)
    final.thumbnail((side, side))
    _, (_, _, wide, high) = picture.draft(None, (2 * side, 2 * side))
    if orientation >= 5:
        wide, high = high, wide
    picture = ImageOps.exif_transpose(picture)
    left = picture.width - wide if orientation in (2, 3, 6, 7) else 0
    top = picture.height - high if orientation in (3, 4, 7, 8) else 0
    picture = picture.resize(final.size, Image.LANCZOS, (left, top, left + wide, top + high), 2.0)
    return centre(picture.convert("RGB"), side)


def centre(picture, side):
    out = Image.new("RGB", (side, side), (255, 255, 255))
    out.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2))
    return out


def main():
    words = sys.argv[1:]
    steps = prepare_draft if words[0] == "draft" else prepare
    words = words[words[0] == "draft":]
    side, seconds = int(words[0]), float(words[1])
    files = []
    for path in words[2:]:
        with open(path, "rb") as file:
            files.append(file.read())
    for data in files[:50]:
        steps(data, side)
    began, worked, n = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - began < seconds:
        for data in files:
            steps(data, side)
        n += len(files)
    print(f"{len(files)} files; images/s: {n / (time.perf_counter() - began):.1f}; "
          f"images/s of processor time: {n / (time.process_time() - worked):.1f}")


if __name__ == "__main__":
    main()
