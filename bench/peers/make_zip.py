"""make_zip.py PATH stored|deflated ENTRIES BYTES: a zip of files that shrink by about a third."""
import random
import sys
import zipfile

path, method, entries, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rng = random.Random(1)
letters = bytes(range(32, 72))
with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED if method == "stored" else zipfile.ZIP_DEFLATED) as out:
    for i in range(entries):
        out.writestr(f"class{i % 100:03}/picture{i:06}.bin", bytes(rng.choices(letters, k=size)))
