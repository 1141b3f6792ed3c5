"""Discrete Fourier transforms."""

from __future__ import annotations

from tests.torch.facts import Case

COMPLEX = {"a": ((4, 3), "complex")}
REAL = {"a": (4, 3)}


def transforms() -> list[Case]:
    found = []
    for f in ("fft", "ifft", "hfft", "irfft", "rfft", "ihfft"):
        end = " + 0" if f == "ihfft" else ""
        real = f in ("rfft", "ihfft")
        inputs = REAL if real else COMPLEX
        found += [
            Case(f, f"torch.fft.{f}(a){end}", inputs, second=False),
            Case(f"{f} over 0", f"torch.fft.{f}(a, dim=0){end}", inputs, second=False),
            Case(f"{f} cut", f"torch.fft.{f}(a, 2){end}", inputs, second=False),
            Case(f"{f} padded", f"torch.fft.{f}(a, n=5, norm='ortho'){end}", inputs, second=False),
            Case(f"{f} forward", f"torch.fft.{f}(a, norm='forward'){end}", inputs, second=False),
            Case(f"{f} of a number", f"torch.fft.{f}(a)", {"a": ()}),
            Case(f"{f} beyond", f"torch.fft.{f}(a, dim=2)", inputs),
            Case(f"{f} of an unknown norm", f"torch.fft.{f}(a, norm='big')", inputs),
            Case(f"{f} of no points", f"torch.fft.{f}(a, n=0)", inputs),
        ]
    for f in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
        inputs = REAL if f.startswith("r") else COMPLEX
        found += [
            Case(f, f"torch.fft.{f}(a)", inputs, second=False),
            Case(f"{f} of sizes", f"torch.fft.{f}(a, s=(2, 4), norm='ortho')", inputs, second=False),
            Case(f"{f} of dims", f"torch.fft.{f}(a, dim=(1, 0))", inputs, second=False),
        ]
    return found


OTHERS = [
    Case("hfft2", "torch.fft.hfft2(a) + 0", {"a": ((2, 3), "complex")}, second=False),
    Case("hfftn of sizes", "torch.fft.hfftn(a, s=(2, 4), norm='ortho') + 0", {"a": ((2, 3), "complex")}, second=False),
    Case("ihfft2", "torch.fft.ihfft2(a) + 0", {"a": (2, 3)}, second=False),
    Case("ihfftn forward", "torch.fft.ihfftn(a, norm='forward') + 0", {"a": (2, 3)}, second=False),
    Case("fftn of a number", "torch.fft.fftn(a)", {"a": ()}, grad=False),
    Case("rfftn of a number", "torch.fft.rfftn(a)", {"a": ()}, grad=False),
    Case("fft of half precision", "torch.fft.fft(a.half())", {"a": ((4,), "float32")}),
    Case("fft of a real tensor", "torch.fft.fft(a)", {"a": (4,)}),
    Case("fft of float32", "torch.fft.fft(a)", {"a": ((4,), "float32")}, second=False),
    Case("fft of ints", "torch.fft.fft(i)", {"i": ((4,), "int")}),
    Case("rfft of ints", "torch.fft.rfft(i)", {"i": ((4,), "int")}),
    Case("rfft of complex", "torch.fft.rfft(a)", COMPLEX),
    Case("rfft there and back", "torch.fft.irfft(torch.fft.rfft(a), n=3)", {"a": (3,)}),
    Case("fftfreq", "torch.fft.fftfreq(5)"),
    Case("fftfreq of a step", "torch.fft.fftfreq(4, 0.5, dtype=torch.float64)"),
    Case("rfftfreq", "torch.fft.rfftfreq(5, d=2.0)"),
    Case("fftshift", "torch.fft.fftshift(a)", {"a": (3, 4)}),
    Case("fftshift over 1", "torch.fft.fftshift(a, dim=1)", {"a": (3, 4)}),
    Case("ifftshift", "torch.fft.ifftshift(a)", {"a": (5,)}),
]

CASES: list[Case] = [*transforms(), *OTHERS]
