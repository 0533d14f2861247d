"""A module in C that does not declare that it can do without the GIL: importing it turns the GIL on."""

import subprocess
from pathlib import Path

from ffilab.run import machine
from ffilab.setup import interpreters
from ffilab.setup.catalogue import FREE_THREADED
from tests.helpers.environment import python_of

SOURCE = """
#include <Python.h>
static PyModuleDef definition = {{PyModuleDef_HEAD_INIT, .m_name = "{name}"}};
PyMODINIT_FUNC PyInit_{name}(void) {{ return PyModuleDef_Init(&definition); }}
"""


def undeclared(folder: Path, name: str) -> str:
    """Compile it into a folder, for the free-threaded build of the chapter pair; return that Python."""
    python = str(python_of(FREE_THREADED))
    include = interpreters.probe(python)["include"]
    (folder / f"{name}.c").write_text(SOURCE.format(name=name))
    command = [machine.compiler(), "-shared", "-fPIC", f"-I{include}", f"{name}.c", "-o", f"{name}.so"]
    subprocess.run(command, cwd=folder, check=True)
    return python
