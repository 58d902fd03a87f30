"""The animated picture of the README: its encoding, and the file that the README shows."""

from __future__ import annotations

import random
from io import BytesIO
from pathlib import Path

from PIL import Image

from examples.pictures.live_page import (
    MAX_BYTES,
    PICTURE,
    STYLE,
    Frame,
    encode_gif,
    fit_gif,
    read_colours,
)

README = (Path(__file__).parents[2] / "README.md").read_text()
WHITE, GREEN = (255, 255, 255), (47, 158, 95)


def frame(at: float, place: int) -> Frame:
    """Return a white frame with a small green square."""
    image = Image.new("RGB", (200, 100), WHITE)
    image.paste(GREEN, (place, 40, place + 4, 44))
    return Frame(image, at)


def noise(at: float, seed: int) -> Frame:
    """Return a frame that can't be compressed."""
    pixels = random.Random(seed).randbytes(100 * 60 * 3)
    return Frame(Image.frombytes("RGB", (100, 60), pixels), at)


def decode(gif: bytes) -> list[tuple[Image.Image, int]]:
    """Return the frames of a GIF with their durations in ms."""
    decoded: list[tuple[Image.Image, int]] = []
    with Image.open(BytesIO(gif)) as animation:
        for place in range(getattr(animation, "n_frames", 1)):
            animation.seek(place)
            decoded.append((animation.convert("RGB"), animation.info["duration"]))
    return decoded


def test_each_frame_is_shown_until_the_next_was_taken() -> None:
    frames = [frame(10.0, 20), frame(10.2, 60), frame(10.75, 100)]
    decoded = decode(encode_gif(frames, last=0.5))
    assert [duration for _, duration in decoded] == [200, 550, 500]
    assert [
        image.getpixel((place, 42))
        for (image, _), place in zip(decoded, (21, 61, 101), strict=True)
    ] == [GREEN] * 3
    assert decoded[2][0].getpixel((21, 42)) == WHITE


def test_rare_colours_are_kept() -> None:
    image, _ = decode(encode_gif([noise(0.0, 1), frame(0.1, 20)], [GREEN, WHITE]))[1]
    assert image.getpixel((21, 42)) == GREEN


def test_frames_are_left_out_of_a_large_file() -> None:
    frames = [noise(seed / 10, seed) for seed in range(12)]
    large = encode_gif(frames)
    small = fit_gif(frames, [], len(large) // 2)
    assert len(small) <= len(large) // 2
    decoded = decode(small)
    assert 2 < len(decoded) < 12
    assert sum(duration for _, duration in decoded) == 2100, "the whole time is shown"


def test_the_colours_of_the_light_scheme_are_read() -> None:
    colours = read_colours(STYLE.read_text())
    assert (0x2F, 0x9E, 0x5F) in colours
    assert (0x0D, 0x11, 0x17) not in colours, "a colour of the dark scheme"


def test_the_readme_shows_the_picture() -> None:
    assert f"](examples/pictures/{PICTURE.name})" in README
    assert PICTURE.stat().st_size <= MAX_BYTES
    decoded = decode(PICTURE.read_bytes())
    assert len(decoded) > 20
    assert 10_000 < sum(duration for _, duration in decoded) < 30_000
