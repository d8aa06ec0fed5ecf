"""The wheel stands alone: installed into a new environment, it derives a gradient far from the source tree."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BIN = "Scripts" if os.name == "nt" else "bin"
DERIVE = "import combdiff as cd; print(cd.__file__); print(cd.grad('(x::RV) -> sum(i, x(i)^2)'))"


def run(*command: str | Path, cwd: Path, text: str = "") -> str:
    """What `command` prints; nothing of this process's import path reaches it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{command} ends with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("combdiff-*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the wheel in it, which sees the present packages for its dependencies."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    python = folder / BIN / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=folder)
    # After the installation only, lest pip finds a combdiff there and takes the wheel for installed. Paths in a .pth
    # come last and their own .pth files are not read, so neither an installed nor an editable combdiff gets before it.
    present = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    own = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip()
    Path(own, "present.pth").write_text("\n".join(present), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_the_wheel_carries_the_grammar_the_rules_and_the_type_marker(wheel: Path) -> None:
    wanted = {f"combdiff/_resources/grammar/{path.name}" for path in (ROOT / "grammar").iterdir()}
    wanted |= {f"combdiff/_resources/rules/{path.name}" for path in (ROOT / "rules").glob("*.egg")}
    assert len(wanted) > 2
    assert wanted | {"combdiff/py.typed"} <= set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.slow
def test_the_installed_wheel_derives_a_gradient_outside_the_repository(environment: Path, tmp_path: Path) -> None:
    place, *result = run(environment / BIN / "python", "-c", DERIVE, cwd=tmp_path).splitlines()
    assert Path(place).resolve().is_relative_to(environment.resolve())
    assert "2 * x(" in " ".join(result)


@pytest.mark.slow
def test_the_installed_command_derives_a_gradient_outside_the_repository(environment: Path, tmp_path: Path) -> None:
    result = run(environment / BIN / "combdiff", "grad", "-", cwd=tmp_path, text="(x::RV) -> sum(i, x(i)^2)\n")
    assert "2 * x(" in result
