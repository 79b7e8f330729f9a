"""Uses an installed wheel as a stranger would, with nothing but its base dependencies.

python use_wheel.py DIST/priorkit-….whl, outside the checkout.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path


def priorkit(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("priorkit")), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == code, (command, ran.stdout, ran.stderr)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran


def main() -> None:
    import numpy as np
    import priorkit_data

    import priorkit as package

    where = Path(package.__file__).resolve()
    assert "site-packages" in where.parts, f"not the installed package: {where}"
    held = zipfile.ZipFile(sys.argv[1]).namelist()
    assert not [name for name in held if name.startswith(("tests", "cli/", "benchmarks"))], held
    assert (Path(priorkit_data.__file__).parent / "pool.parquet").is_file()

    facts = json.loads(priorkit("pool", "show", "--json").stdout)
    assert facts["prompts"] == {"eval": 280, "train": 250}
    priorkit("pool", "make", "--size", "70", "--out", "pool.parquet")
    pool = package.read_pool("pool.parquet")
    rates = {key: (row % 17) / 16 for row, key in enumerate(pool.prompt_id)}
    Path("rates.json").write_text(json.dumps(rates))
    priorkit("prior", "import", "rates.json", "--pool", "pool.parquet")
    priorkit("prior", "check", "--pool", "pool.parquet")
    assert "E[U]" in priorkit("prior", "show").stdout
    priorkit("evaluate", "--prior", "priors.parquet", "--reference", "priors.parquet")

    selector = package.make_selector("thinkprior", package.read_prior("priors.parquet"))
    rows = selector.select(8)
    selector.observe(rows, np.full(8, 4), np.full(8, 8))
    assert set(rows.tolist()) != set(range(8))

    from priorkit.verify import make_verifier

    verifier = make_verifier("math")
    assert verifier.check("so \\boxed{\\frac{1}{2}}", "0.5").correct
    assert verifier.check("so \\boxed{\\sqrt{8}}", "2\\sqrt{2}").correct

    priorkit("lab", "tasks")
    assert package.read_pool("lab.parquet").prompt[0]
    for name in ("anchor", "policy"):
        assert (Path(priorkit_data.__file__).parent / "lab" / name / "model.safetensors").is_file()

    # Without torch, the error says what is missing and how to get it.
    for command in (
        ["probe", "--anchor", "smollm2"],
        ["train", "--policy", "lab-policy", "--pool", "lab.parquet"],
        ["evaluate", "lab-policy", "--pool", "lab.parquet"],
        ["demo"],
        ["lab", "build"],
    ):
        ran = priorkit(*command, code=1)
        assert ran.stderr.startswith("error: "), ran.stderr
        assert ran.stderr.count("\n") == 1, ran.stderr
        assert "pip install 'priorkit[train]'" in ran.stderr, ran.stderr
    print("the wheel works outside the checkout: 1 passed, 0 failed")


if __name__ == "__main__":
    main()
