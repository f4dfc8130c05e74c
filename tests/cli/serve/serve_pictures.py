"""Writes pictures/<colour>/<n>.ppm to train with, and the same ones as shown/<colour><n>.ppm to ask about."""
import os

os.makedirs("shown")
for c, colour in enumerate(["red", "green", "blue"]):
    os.makedirs(f"pictures/{colour}")
    for n in range(8):
        pixels = bytes(200 - 9 * n + 3 * i % 7 if i % 3 == c else 20 + i % 11 for i in range(3 * 64))
        for path in f"pictures/{colour}/{n}.ppm", f"shown/{colour}{n}.ppm":
            open(path, "wb").write(b"P6 8 8 255\n" + pixels)
