"""Keyword spotting, from a folder of recordings to a data set that `benn-fpga train` takes.

    python examples/keywords.py [FOLDER | FILE.wav ...] [-o FILE.npz] [--force]

FOLDER has a folder for each word, with WAV files of about a second in it (Google's Speech Commands
are laid out like that). Without one, words are synthesised: each is a melody of three tones, spoken
at its own pitch, speed, loudness and moment, in noise. A recording becomes an image of 49 steps x
10 MFCCs. Every fifth recording of a word is for testing. Of WAV files the images alone are written,
for `benn-fpga predict`.
"""

import argparse
import io
import sys
from pathlib import Path

import numpy as np
from scipy import fft, signal
from scipy.io import wavfile

from benn_fpga.cli.guard import guard
from benn_fpga.cli.parser import with_options
from benn_fpga.errors import BennError
from benn_fpga.output import check_file, write_atomically

RATE = 8000  # samples per second that the features are made from
WINDOW, HOP, STEPS = 320, 160, 49  # 40 ms every 20 ms, of one second
BANDS, COEFFICIENTS = 20, 10
WORDS = {  # tones of a synthetic word, in Hz
    "yes": (400, 900, 1400), "no": (1400, 900, 400), "up": (300, 600, 1200),
    "down": (1200, 600, 300), "left": (800, 800, 400), "right": (400, 800, 800),
    "on": (600, 1000, 600), "off": (1000, 600, 1000),
}


def speak(word, rng):
    """A second of sound, int16."""
    pitch, loudness = rng.uniform(0.9, 1.1), rng.uniform(0.05, 0.3)
    length = int(rng.uniform(0.12, 0.18) * RATE)
    start = rng.integers(0, RATE - 3 * length)
    sound = rng.normal(scale=0.02, size=RATE)
    t = np.arange(length) / RATE
    for n, tone in enumerate(WORDS[word]):
        at = start + n * length
        sound[at:at + length] += loudness * np.hanning(length) * np.sin(
            2 * np.pi * pitch * tone * t)
    return (sound.clip(-1, 1) * 32767).astype(np.int16)


def read(path):
    """A recording as one second at RATE, in -1..1."""
    try:
        rate, sound = wavfile.read(path)
    except (ValueError, OSError) as error:
        raise BennError(f"{path} is not a WAV file that can be read ({error}); leave it out, or "
                        f"save it as PCM") from None
    if not len(sound):
        raise BennError(f"{path} is empty; leave it out")
    if sound.dtype.kind in "iu":  # 8 bits are unsigned, around 128
        sound = (sound - (128. if sound.dtype == np.uint8 else 0)) / -float(
            np.iinfo(f"i{sound.itemsize}").min)
    sound = sound.reshape(len(sound), -1).mean(axis=1)
    if rate != RATE:
        sound = signal.resample_poly(sound, RATE, rate)
    return np.pad(sound[:RATE], (0, max(0, RATE - len(sound))))


def mel_bands():
    """(BANDS, frequencies) triangles that are evenly spaced as one hears."""
    def hertz(mel):
        return 700 * (10 ** (mel / 2595) - 1)
    top = 2595 * np.log10(1 + RATE / 2 / 700)
    edges = hertz(np.linspace(0, top, BANDS + 2))
    at = fft.rfftfreq(WINDOW, 1 / RATE)
    rise = (at - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - at) / (edges[2:] - edges[1:-1])[:, None]
    return np.minimum(rise, fall).clip(0)


def mfcc(sound):
    """(STEPS, COEFFICIENTS) of a second of sound."""
    parts = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[::HOP][:STEPS]
    power = np.abs(fft.rfft(parts * np.hanning(WINDOW))) ** 2
    return fft.dct(np.log(power @ mel_bands().T + 1e-6), norm="ortho")[:, :COEFFICIENTS]


def recordings(folder):
    """Words, and for each recording its number and its sound."""
    if folder is None:
        rng = np.random.default_rng(0)
        return list(WORDS), [(n, speak(word, rng) / 32767) for n, word in enumerate(WORDS)
                             for _ in range(150)]
    if not folder.is_dir():
        raise BennError(f"{folder} is not a folder; give one with a folder of WAV files per word")
    words = sorted(each.name for each in folder.iterdir()
                   if each.is_dir() and any(each.glob("*.wav")))
    if len(words) < 2:
        raise BennError(f"{folder} must have a folder of WAV files for each of at least 2 words, "
                        f"not {len(words)}")
    return words, [(n, read(path)) for n, word in enumerate(words)
                   for path in sorted((folder / word).glob("*.wav"))]


def dataset(folder):
    """The arrays of the .npz file."""
    words, sounds = recordings(folder)
    labels = np.array([label for label, _ in sounds])
    x = images(sound for _, sound in sounds)
    test = np.concatenate([np.arange(count) % 5 == 4 for count in np.bincount(labels)])
    return {"x_train": x[~test], "y_train": labels[~test], "x_test": x[test],
            "y_test": labels[test], "class_names": np.array(words)}


def images(sounds):
    return np.stack([mfcc(sound) for sound in sounds]).astype(np.float32)


def made(paths):
    """The arrays of the .npz file, and what is in it."""
    if paths and not any(path.is_dir() for path in paths) and paths[0].suffix == ".wav":
        return {"x": images(map(read, paths))}, f"{len(paths)} recordings to ask about"
    if len(paths) > 1:
        raise BennError("give one folder, or WAV files, not several folders")
    arrays = dataset(paths[0] if paths else None)
    return arrays, (f"{len(arrays['x_train'])} recordings to train and {len(arrays['x_test'])} to "
                    f"test, of {', '.join(arrays['class_names'])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, metavar="FOLDER or FILE.wav")
    parser.add_argument("-o", "--output", type=Path, default=Path("keywords.npz"),
                        metavar="FILE.npz")
    parser.add_argument("--force", action="store_true", help="replace FILE.npz")
    args = parser.parse_args()
    try:
        check_file(args.output, args.force)
    except BennError as error:
        raise BennError(with_options(str(error), args)) from None
    arrays, text = made(args.paths)
    content = io.BytesIO()
    np.savez(content, **arrays)
    write_atomically(args.output, content.getvalue(), args.force)
    print(f"{args.output}: {text}")
    return 0


if __name__ == "__main__":
    sys.exit(guard("keywords", main))
