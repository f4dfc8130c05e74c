"""make_prepared.py FROM TO SIZE: every JPEG below FROM as `prepare` will store it: shrunk to fit
(Lanczos), centred on white, SIZE x SIZE, quality 95 without subsampling. Always the same."""
import glob
import os
import sys

from PIL import Image

source, target, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.makedirs(target, exist_ok=True)
for number, path in enumerate(sorted(glob.glob(os.path.join(source, "**/*.jp*g"), recursive=True))):
    picture = Image.open(path).convert("RGB")
    picture.thumbnail((size, size), Image.LANCZOS)
    white = Image.new("RGB", (size, size), (255, 255, 255))
    white.paste(picture, ((size - picture.width) // 2, (size - picture.height) // 2))
    white.save(os.path.join(target, f"{number:05}.jpg"), quality=95, subsampling=0)
