"""py.typed promises type hints: every function of the package has them, for each argument and for what it gives."""

import ast
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "dispatcher" / "python"


def unhinted(source):
    """(functions, names of those that lack a hint)."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    lacking = []
    for function in functions:
        given = function.args
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        hinted = all(argument.annotation or argument.arg in ("self", "cls") for argument in arguments)
        if not hinted or (function.returns is None and function.name != "__init__"):
            lacking.append(function.name)
    return len(functions), lacking


class Hints(unittest.TestCase):
    def test_every_function_has_them(self):
        total = 0
        for file in sorted(PACKAGE.glob("fmha*/**/*.py")) + sorted(PACKAGE.glob("*.py")):
            count, lacking = unhinted(file.read_text(encoding="utf-8"))
            self.assertEqual(lacking, [], file)
            total += count
        self.assertGreater(total, 250)

    def test_a_missing_one_is_noticed(self):
        self.assertEqual(unhinted("def f(a: int, *b, c: int = 1) -> int: ..."), (1, ["f"]))
        self.assertEqual(unhinted("def f(a: int): ..."), (1, ["f"]))
        self.assertEqual(unhinted("class C:\n def __init__(self, a: int): ..."), (1, []))


if __name__ == "__main__":
    unittest.main()
